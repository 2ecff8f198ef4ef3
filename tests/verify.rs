//! `atlc verify`: every stage of every example agrees; and faults that are put in on purpose are caught, by whom docs/testing.md
//! says.

mod harness;

use atlc::execution::Limits;
use atlc::fuzz::campaign;
use atlc::fuzz::generate::{Shape, generate};
use atlc::pipeline::{self, Options};
use atlc::regalloc;
use atlc::support::span::Source;
use atlc::verify::observe::VerifyLimits;
use atlc::verify::{Report, Verifier, mutants};
use harness::{atlc, programs, quick, root, with_input};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;

const COMPARISON: &str = "the comparison of runs";

/// Who catches each fault, of all that could: the verifiers and judges without running anything, and the comparison of runs.
const CAUGHT: [(&str, &[&str]); 36] = [
    ("load-over-store", &["the comparison of runs"]),
    ("stale-load", &["the comparison of runs"]),
    ("dropped-store", &["the comparison of runs"]),
    ("dropped-bounds", &["the comparison of runs"]),
    ("dropped-assert", &["the comparison of runs"]),
    ("swapped-sub", &["the comparison of runs"]),
    ("off-by-one-compare", &["the comparison of runs"]),
    ("wrong-fold", &["the comparison of runs"]),
    ("wrong-branch", &["the comparison of runs"]),
    ("swapped-phi-args", &["the comparison of runs"]),
    ("hoisted-trap", &["the IR verifier", "the comparison of runs"]),
    ("lost-position", &["the comparison of runs"]),
    ("naive-order", &["the comparison of runs", "the validator of SSA destruction"]),
    ("rescue-source", &["the comparison of runs", "the validator of SSA destruction"]),
    ("no-split", &["the comparison of runs", "the validator of SSA destruction"]),
    ("coalesce-interfering", &["the comparison of runs", "the validator of SSA destruction"]),
    ("stale-liveness", &["the comparison of runs", "the validator of SSA destruction"]),
    ("wrong-condition", &["the comparison of runs"]),
    ("unsigned-condition", &["the comparison of runs"]),
    ("reversed-sub", &["the comparison of runs"]),
    ("dropped-trap", &["the comparison of runs"]),
    ("wrong-displacement", &["the comparison of runs"]),
    ("wrong-scale", &["the comparison of runs"]),
    ("wrong-magic", &["the comparison of runs"]),
    ("narrow-compare", &["the comparison of runs"]),
    ("wrong-shift", &["the comparison of runs"]),
    ("no-sign-extension", &["the comparison of runs"]),
    ("swapped-arguments", &["the comparison of runs"]),
    ("lost-trap-position", &["the comparison of runs"]),
    ("missing-spill-store", &["the allocation checker", "the comparison of runs", "the verifier of machine code"]),
    ("wrong-spill-slot", &["the allocation checker", "the comparison of runs"]),
    ("missing-move", &["the allocation checker", "the comparison of runs", "the verifier of machine code"]),
    ("swapped-moves", &["the allocation checker", "the comparison of runs"]),
    ("clobbered-register", &["the allocation checker", "the comparison of runs", "the verifier of machine code"]),
    ("unsaved-register", &["the comparison of runs", "the verifier of machine code"]),
    ("wrong-source", &["the allocation checker", "the comparison of runs", "the verifier of machine code"]),
];

const LIMITS: VerifyLimits = VerifyLimits {
    interpreted: Limits { steps: 30_000, output: 1 << 16, depth: 1_000, memory: 1 << 24 },
    native: atlc::verify::native::Bounds { time: std::time::Duration::from_secs(5), output: 1 << 16 },
};

/// Arrays that are read behind writes, and run-time errors of each kind behind output.
const WITH_ARRAYS_AND_ERRORS: [&str; 4] = [
    "let a = [3, 1, 2]; let i = 0;
while (i < 3) { let v = a[i]; a[i] = v + 1; print(v, a[i]); i += 1; }
let b = [0; 5]; b[3] = a[1]; print(b[3] - a[0]); print(a[i]);",
    "let n = 3; while (n > -2) { print(n); print(12 / n, n / 7); n -= 1; }",
    "let n = 0; while (n < 5) { print(n); assert(n < 3); n += 1; }",
    "let a = [5; 4]; let i = 0; while (i < 9) { print(i); a[i] = i; print(a[i] >> 1, a[3]); i += 1; }",
];

/// What faults are tried on: the examples, and random programs; with few registers, so that there are slots.
fn corpus() -> Vec<(Source, Vec<u8>, Options)> {
    let mut corpus = Vec::new();
    for path in programs("examples") {
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        if !["swap", "lost_copy", "gcd", "rotate3", "critical_edge"].contains(&name.as_str()) {
            continue;
        }
        let text = fs::read_to_string(&path).expect("it reads");
        let input = fs::read(path.with_extension("input")).unwrap_or_default();
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        for level in [1, 2] {
            corpus.push((
                Source::new(name.clone(), text.clone()),
                input.clone(),
                Options { level, threads: 1, ..Options::default() },
            ));
        }
    }
    for (number, text) in WITH_ARRAYS_AND_ERRORS.into_iter().enumerate() {
        for level in [0, 1] {
            let options = Options { level, threads: 1, ..Options::default() };
            corpus.push((Source::new(format!("errors{number}.atl"), text), Vec::new(), options));
        }
    }
    for seed in 0..20 {
        let registers = regalloc::Options::with_registers(6).expect("so many there are").registers;
        let options = Options { level: (seed % 3) as u8, registers, threads: 1, ..Options::default() };
        let shape = Shape { statements: 5, budget: 800, ..Shape::of_seed(seed) };
        let source = Source::new(format!("{seed}.atl"), generate(seed, &shape));
        corpus.push((source, campaign::input(seed).into_bytes(), options));
    }
    corpus
}

fn broken(source: &Source, input: &[u8], options: &Options, mutant: &'static mutants::Mutant) -> Report {
    let mut verifier = Verifier::new(input, LIMITS, None).with_mutant(mutant);
    pipeline::compile(source, options, mutant.stage, &mut [&mut verifier]).expect("the compiler itself is not broken");
    verifier.into_report()
}

#[test]
fn every_fault_is_caught() {
    let corpus = corpus();
    let mut found = BTreeMap::new();
    let mut wrong = Vec::new();
    for mutant in mutants::all() {
        let mut who: BTreeSet<&str> = BTreeSet::new();
        let mut shown = 0;
        for (source, input, options) in &corpus {
            let report = broken(source, input, options, mutant);
            let fault = report.broken.expect("a fault was put in");
            if fault.site.is_none() {
                continue;
            }
            who.extend(fault.caught_by.iter().map(|caught| caught.judge));
            let Some(difference) = report.difference else { continue };
            assert_eq!(difference.stage, mutant.stage, "{}: the broken stage is named", source.name);
            who.insert(COMPARISON);
            shown += 1;
            // Where a judge exists, it needs no run to see what a run shows. That registers are saved is the verifier's.
            let judges: &[&str] = match mutant.stage {
                "sequence" => &["the validator of SSA destruction"],
                "regalloc" => &["the allocation checker", "the verifier of machine code"],
                _ => &[],
            };
            if !judges.is_empty() && !fault.caught_by.iter().any(|caught| judges.contains(&caught.judge)) {
                wrong.push(format!("{}: {judges:?} do not see {} at {:?}", source.name, mutant.name, fault.site));
            }
            if shown == 3 {
                break;
            }
        }
        if who.is_empty() {
            wrong.push(format!("nobody catches {}", mutant.name));
        }
        found.insert(mutant.name, who);
    }
    let lines: Vec<String> =
        mutants::all().map(|mutant| format!("    (\"{}\", &{:?}),", mutant.name, found[mutant.name])).collect();
    assert!(wrong.is_empty(), "{}\n{}", wrong.join("\n"), lines.join("\n"));
    for (name, who) in CAUGHT {
        let who: BTreeSet<&str> = who.iter().copied().collect();
        assert_eq!(found.get(name), Some(&who), "{name}; all:\n{}", lines.join("\n"));
    }
    assert_eq!(found.len(), CAUGHT.len(), "all:\n{}", lines.join("\n"));
}

#[test]
fn the_documents_list_every_fault_and_who_caught_it() {
    let text = fs::read_to_string(root().join("docs/testing.md")).expect("docs/testing.md");
    for (name, who) in CAUGHT {
        let mutant = mutants::named(name).expect("the list names faults");
        let row = format!("| `{name}` | {} | {} | {} |", mutant.stage, mutant.title, who.join(", "));
        assert!(text.contains(&row), "docs/testing.md lacks the row\n{row}");
    }
}

#[test]
fn every_stage_of_every_example_agrees() {
    for (number, path) in programs("examples").into_iter().enumerate() {
        let input = fs::read(path.with_extension("input")).unwrap_or_default();
        let level = format!("-O{}", number % 3);
        let ran = with_input(atlc().arg("verify").arg(&path).args([&level, "--steps", "2000000"]), input);
        assert_eq!(ran.status, 0, "{}: {}{}", path.display(), ran.out(), ran.err());
        let out = ran.out();
        for stage in
            ["hir", "cfg", "ssa", "split-edges", "parallel-copies", "sequence", "isel", "regalloc", "executable"]
        {
            assert!(out.lines().any(|line| line.starts_with(&format!("{stage} "))), "no {stage} in {out}");
        }
    }
}

#[test]
fn json_tells_the_same() {
    let ran = quick(atlc().args(["verify", "--json"]).arg(root().join("examples/swap.atl")));
    assert_eq!(ran.status, 0, "{}", ran.err());
    let report: serde_json::Value = serde_json::from_slice(&ran.stdout).expect("JSON");
    let runs = report["runs"].as_array().expect("runs");
    assert_eq!(runs[0]["stage"], "hir");
    assert!(runs.iter().all(|run| run["agrees"] == true && run["lines"] == 2));
    assert!(report["difference"].is_null());
    // The swap runs round three times, and each time both φs take something on.
    let ssa = runs.iter().find(|run| run["stage"] == "ssa").expect("the stage ssa");
    assert_eq!(ssa["counts"]["phis"], 12);
}

#[test]
fn a_swap_in_naive_order_prints_the_wrong_value() {
    let program =
        "let x = 1; let y = 2; let i = 0;\nwhile (i < 3) { let t = x; x = y; y = t; i += 1; }\nprint(x, y);\n";
    let folder = harness::folder();
    let path = folder.path().join("swap.atl");
    fs::write(&path, program).expect("it takes the text");
    let ran = quick(atlc().arg("verify").arg(&path).args(["--break", "naive-order"]));
    let out = ran.out();
    assert_eq!(ran.status, 0, "a fault that is caught is as it should be: {out}");
    assert!(out.contains("would print `2 2`, correct is: prints `2 1`"), "{out}");
    assert!(out.contains("first difference at b2 of main"), "{out}");
    assert!(out.contains("caught by the validator of SSA destruction"), "{out}");
    // The executable is made from unbroken code.
    let last = out.lines().find(|line| line.starts_with("executable")).expect("a row");
    assert!(!last.contains("differs"), "{out}");
}

#[test]
fn a_lost_copy_without_split_edges() {
    let ran =
        quick(atlc().arg("verify").arg(root().join("examples/lost_copy.atl")).args(["-O2", "--break", "no-split"]));
    assert_eq!(ran.status, 0, "{}", ran.err());
    assert!(ran.out().contains("would print `11 11`, correct is: prints `7 11`"), "{}", ran.out());
}

#[test]
fn wrong_usage() {
    let ran = quick(atlc().args(["verify", "examples/swap.atl", "--break", "nothing"]));
    assert_eq!(ran.status, 2);
    assert!(ran.err().contains("naive-order"), "{}", ran.err());
    let ran = quick(atlc().args(["verify", "no-such-file.atl"]));
    assert_eq!(ran.status, 1);
}

#[test]
fn limits_cut_runs_off() {
    let folder = harness::folder();
    let path = folder.path().join("endless.atl");
    fs::write(&path, "let i = 0; while (true) { print(i); i += 1; }").expect("it takes the text");
    let ran = quick(atlc().arg("verify").arg(&path).args(["--steps", "5000", "--output-limit", "10000"]));
    assert_eq!(ran.status, 0, "{}{}", ran.out(), ran.err());
    assert!(ran.out().contains("cut off (steps)") && ran.out().contains("cut off (output)"), "{}", ran.out());
    assert!(ran.out().contains("some were cut off by a limit"));
}
