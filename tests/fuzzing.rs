//! Random programs, and the tools around them: campaigns, reduction, bisection, the bodies of the coverage-guided fuzzers.

mod harness;

use atlc::execution::Limits;
use atlc::fuzz::campaign::{self, Event, Settings};
use atlc::fuzz::examine::{Config, Kind, reference};
use atlc::fuzz::generate::{Shape, generate};
use atlc::fuzz::{reduce, targets};
use atlc::pipeline::{self, Options};
use atlc::support::random::Random;
use atlc::support::span::Source;
use atlc::verify::observe::VerifyLimits;
use atlc::verify::{Verifier, mutants};
use harness::{atlc, folder, quick, root};
use std::collections::HashSet;
use std::fs;
use std::sync::Mutex;
use std::time::{Duration, Instant};

#[test]
fn a_small_campaign_finds_nothing() {
    let settings = Settings { seeds: 12..24, jobs: 2, until: None, against: None, every_way: false, reduce: false };
    let found = Mutex::new(Vec::new());
    let counts = campaign::run(&settings, &|event| {
        if let Event::Found(finding) = event {
            found
                .lock()
                .unwrap()
                .push(format!("{} {}: {}\n{}", finding.seed, finding.flags, finding.message, finding.program));
        }
    })
    .expect("it runs");
    let found = found.into_inner().unwrap();
    assert!(found.is_empty(), "{}", found.join("\n"));
    assert_eq!((counts.seeds, counts.programs, counts.compilations, counts.next_seed), (12, 12 + 3, 15 * 3, 24));
}

#[test]
fn all_ways_to_compile_come_up() {
    let ways: HashSet<String> = (0..54).flat_map(Config::of_seed).map(|config| config.flags()).collect();
    // Three levels, three ways to place φs, copies kept or not, three ways out of SSA, all registers or few or none.
    assert_eq!(ways.len(), 3 * 3 * 2 * 3 * 3);
    assert!(ways.iter().any(|way| way.contains("rename")), "the fourth way out stands in for another");
    let every: HashSet<String> = Config::all(7).into_iter().map(|config| config.flags()).collect();
    // Without optimization and with copies kept, all four ways out.
    assert_eq!(every.len(), 162 + 3 * 3);
    assert_eq!(Config::all(7).len(), every.len(), "none twice");
}

#[test]
fn one_program_in_every_way() {
    let settings = Settings { seeds: 40..41, jobs: 1, until: None, against: None, every_way: true, reduce: false };
    let counts = campaign::run(&settings, &|event| {
        if let Event::Found(finding) = event {
            panic!("{} {}: {}\n{}", finding.seed, finding.flags, finding.message, finding.program);
        }
    })
    .expect("it runs");
    assert_eq!((counts.programs, counts.compilations), (2, 2 * 171));
}

/// Does the fault show in the program?
fn shows(text: &str, name: &str) -> bool {
    let source = Source::new("t.atl", text);
    let mutant = mutants::named(name).expect("it exists");
    let limits = Limits { steps: 300_000, ..Limits::default() };
    let mut verifier =
        Verifier::new(b"", VerifyLimits { interpreted: limits, ..VerifyLimits::default() }, None).with_mutant(mutant);
    // Without optimization a subtraction of constants stays one.
    let options = Options { level: 0, threads: 1, ..Options::default() };
    let compiled = pipeline::compile(&source, &options, mutant.stage, &mut [&mut verifier]);
    compiled.is_ok() && verifier.into_report().difference.is_some()
}

#[test]
fn an_artificial_fault_is_reduced_to_a_few_lines() {
    let shape = Shape { statements: 14, budget: 4_000, ..Shape::default() };
    let long =
        |seed: &u64| generate(*seed, &shape).lines().count() >= 200 && shows(&generate(*seed, &shape), "swapped-sub");
    let text = generate((0..300).find(long).expect("some program subtracts"), &shape);
    let reduced =
        reduce::run(&text, 5_000, &mut |candidate| shows(candidate, "swapped-sub")).expect("it shows at first");
    assert!(reduced.text.lines().count() <= 5, "{}", reduced.text);
    assert!(reduced.text.contains(" - "), "{}", reduced.text);
    assert!(reduced.tries < 10 * text.lines().count(), "{} tries for {} lines", reduced.tries, text.lines().count());
    // The same again.
    let again = reduce::run(&text, 5_000, &mut |candidate| shows(candidate, "swapped-sub"));
    assert_eq!(again.as_ref(), Some(&reduced));
}

#[test]
fn references_reject_what_is_no_program() {
    let rejected = |name: &str, text: &str| {
        reference(&Source::new(name, text), b"", Limits::default()).expect_err("it is no program").kind
    };
    assert_eq!(rejected("t.atl", "print(a);"), Kind::Rejected);
    assert_eq!(rejected("t.atl", "print(1"), Kind::Rejected);
    assert_eq!(rejected("t.ir", "fn main() {"), Kind::Rejected);
}

#[test]
fn the_command_tells_machines_what_it_did() {
    let ran = quick(atlc().args(["fuzz", "--seeds", "3..6", "--json"]));
    assert_eq!(ran.status, 0, "{}{}", ran.out(), ran.err());
    let last = ran.out().lines().last().expect("a line").to_string();
    let end: serde_json::Value = serde_json::from_str(&last).expect("JSON");
    assert_eq!(end["event"], "end");
    assert_eq!(
        (&end["seeds"], &end["programs"], &end["findings"], &end["next_seed"]),
        (&3.into(), &4.into(), &0.into(), &6.into())
    );
    let ran = quick(atlc().args(["fuzz", "--seeds", "6..3"]));
    assert_eq!(ran.status, 2, "{}", ran.err());
}

#[test]
fn a_campaign_stops_in_time() {
    let begin = Instant::now();
    let ran = quick(atlc().args(["fuzz", "--time", "1"]));
    assert_eq!(ran.status, 0, "{}{}", ran.out(), ran.err());
    assert!(begin.elapsed() < Duration::from_secs(30));
    assert!(ran.out().contains("0 findings; next seed"), "{}", ran.out());
}

#[test]
fn reduces_by_a_command() {
    let folder = folder();
    let path = folder.path().join("p.atl");
    fs::write(&path, "let a = 5;\nlet b = 7;\nif (a < b) {\n  print(a + b, \"x\");\n}\nprint(b);\n")
        .expect("it takes the text");
    let check = format!("{} run \"$1\" | grep -q '^12'", env!("CARGO_BIN_EXE_atlc"));
    let ran = quick(atlc().arg("reduce").arg(&path).args(["--check", &check]));
    assert_eq!(ran.status, 0, "{}", ran.err());
    assert_eq!(ran.out(), "let a = 5;\nlet b = 7;\nprint(a + b);\n");
    let ran = quick(atlc().arg("reduce").arg(&path).args(["--check", "false"]));
    assert_eq!(ran.status, 1);
    assert!(ran.err().contains("does not hold"), "{}", ran.err());
    // Nothing is wrong with it.
    let ran = quick(atlc().arg("reduce").arg(&path).args(["--verify", "-O2"]));
    assert_eq!(ran.status, 1, "{}", ran.out());
    let ran = quick(atlc().arg("reduce").arg(&path));
    assert_eq!(ran.status, 2);
}

#[test]
fn bisection_of_a_right_program() {
    let ran = quick(atlc().arg("bisect").arg(root().join("examples/gcd.atl")).arg("-O2"));
    assert_eq!(
        (ran.status, ran.out().as_str()),
        (0, "no change of optimization makes a difference\n"),
        "{}",
        ran.err()
    );
}

// ---- The bodies of the coverage-guided fuzzers, a second each

fn a_second(mut target: impl FnMut(&mut Random)) {
    let begin = Instant::now();
    let mut random = Random::new(20_26);
    let mut runs = 0;
    while begin.elapsed() < Duration::from_secs(1) || runs < 5 {
        target(&mut random);
        runs += 1;
    }
}

#[test]
fn target_front_end() {
    a_second(|random| {
        let text = generate(random.bits() % 1000, &Shape { statements: 4, depth: 2, ..Shape::default() });
        targets::front_end(text.as_bytes());
        targets::front_end(&targets::mutate(text.as_bytes(), random));
        let noise: Vec<u8> = (0..random.below(60)).map(|_| random.bits() as u8).collect();
        targets::front_end(&noise);
    });
}

#[test]
fn target_ir_text() {
    a_second(|random| {
        let text = campaign::random_ir(random.bits() % 1000);
        let mut bytes = vec![random.bits() as u8];
        bytes.extend(targets::mutate(text.as_bytes(), random));
        targets::ir_text(&bytes);
    });
}

#[test]
fn target_ir_graphs() {
    a_second(|random| {
        let bytes: Vec<u8> = (0..random.below(1_000)).map(|_| random.bits() as u8).collect();
        targets::ir_graphs(&bytes);
    });
}

#[test]
fn target_programs() {
    a_second(|random| {
        let bytes: Vec<u8> = (0..random.below(500)).map(|_| random.bits() as u8).collect();
        targets::programs(&bytes);
    });
}

#[test]
fn target_parallel_copies() {
    a_second(|random| {
        let locations = random.between(2, 40);
        let bytes: Vec<u8> =
            (0..random.below(60)).map(|_| random.below(locations) as u8 * random.pick(&[1, 1, 1, 6])).collect();
        targets::parallel_copies(&bytes);
    });
}

#[test]
fn target_allocation() {
    a_second(|random| {
        let bytes: Vec<u8> = (0..random.below(2_000)).map(|_| random.bits() as u8).collect();
        targets::allocation(&bytes);
    });
}
