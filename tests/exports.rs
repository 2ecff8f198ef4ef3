//! The exports against their compilers: what gcc, LLVM's verifier, `lli` and `llc` make of examples, cases and random programs.
//! QBE's text is run by an interpreter of our own (`qbe/mod.rs`).
//!
//! Outside tools are found on the path. Where one is missing its tests say so and pass, except in CI, where they fail.

mod harness;
mod qbe;

use atlc::execution::Limits;
use atlc::fuzz::campaign::{self, Event, Settings};
use atlc::ir::random::{Shape, generate};
use atlc::verify::observe::run_ir;
use atlc::verify::{Ended, Shown};
use atlc::{export, ir};
use harness::{Output, atlc, beside, folder, programs, quick, run, tool, with_input};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::time::Duration;

const INPUT: &str = "3 -4 17 x";

/// What the IR interpreter says of a random program; `None` where it met a limit.
fn expected(program: &ir::Program) -> Option<Shown> {
    let limits = Limits { steps: 50_000, output: 1 << 16, depth: 200, memory: 1 << 20 };
    let shown = run_ir(program, INPUT.as_bytes(), limits).0.expect("the IR is right");
    (!shown.is_cut()).then_some(shown)
}

fn random_programs() -> impl Iterator<Item = (u64, ir::Program)> {
    (0..24).map(|seed| {
        let shape = Shape { traps: seed % 3 == 0, input: seed % 4 == 0, ..Shape::default() };
        let shape = if seed % 2 == 0 { shape } else { Shape { phis: 9, insts: 3, ..shape } };
        (seed, generate(seed, &shape))
    })
}

/// What a program has shown, in the same words.
fn shown(ran: &harness::Ran) -> Shown {
    Shown::of_process(ran.stdout.clone(), &ran.stderr, ran.status)
}

/// The program in another language, at a level.
fn export_of(program: &Path, kind: &str, level: &str, to: &Path) {
    let mut build = atlc();
    build.current_dir(program.parent().expect("a folder")).arg("build").arg(program.file_name().expect("a name"));
    let ran = quick(build.args([level, "--emit", &format!("{kind}={}", to.display())]));
    assert_eq!(ran.status, 0, "{}: {}", program.display(), ran.err());
}

/// Is the program one whose output, status and first line of standard error say everything, on any implementation?
fn is_plain(program: &Path) -> bool {
    let has = |extension: &str| program.with_extension(extension).exists();
    let stack =
        beside(program, "stderr1").is_some_and(|text| String::from_utf8_lossy(&text).contains("stack overflow"));
    let memory =
        beside(program, "stderr1").is_some_and(|text| String::from_utf8_lossy(&text).contains("out of memory"));
    let endless = beside(program, "status").is_some_and(|text| text.starts_with(b"timeout"));
    !["pos", "maxrss", "full", "pipe"].into_iter().any(has) && !stack && !memory && !endless
}

/// Runs a translation of a case and compares with what the case says.
fn check_case(program: &Path, command: &mut Command) {
    let input = program.with_extension("input");
    let ran = run(command, input.exists().then_some(&*input), Output::File, Duration::from_secs(60));
    let status =
        beside(program, "status").map_or(0, |text| String::from_utf8_lossy(&text).trim().parse().expect("a status"));
    assert_eq!(ran.status, status, "{}: {}", program.display(), ran.err());
    assert_eq!(ran.stdout, beside(program, "expected").unwrap_or_default(), "{}", program.display());
    if let Some(line) = beside(program, "stderr1") {
        let first = |text: &str| text.lines().next().map(str::to_string);
        assert_eq!(first(&ran.err()), first(&String::from_utf8_lossy(&line)), "{}", program.display());
    }
}

fn examples_and_some_cases(step: usize) -> Vec<PathBuf> {
    let cases = programs("tests/cases").into_iter().step_by(step);
    programs("examples").into_iter().chain(cases).filter(|program| is_plain(program)).collect()
}

#[test]
fn gcc_takes_the_c_and_it_does_what_it_should() {
    if !tool("gcc") {
        return;
    }
    let folder = folder();
    let (c, executable) = (folder.path().join("p.c"), folder.path().join("p"));
    for (number, program) in examples_and_some_cases(6).into_iter().enumerate() {
        export_of(&program, "c", ["-O0", "-O1", "-O2"][number % 3], &c);
        let ran = quick(
            Command::new("gcc").args(["-O2", "-std=gnu11", "-Wall", "-Wno-unused", "-o"]).arg(&executable).arg(&c),
        );
        assert_eq!(ran.status, 0, "{}: {}", program.display(), ran.err());
        check_case(&program, &mut Command::new(&executable));
    }
}

#[test]
fn gcc_agrees_on_random_programs() {
    if !tool("gcc") {
        return;
    }
    let settings = Settings {
        seeds: 100..104,
        jobs: 2,
        until: None,
        against: Some("gcc".to_string()),
        every_way: false,
        reduce: false,
    };
    let found = Mutex::new(Vec::new());
    campaign::run(&settings, &|event| {
        if let Event::Found(finding) = event {
            found.lock().unwrap().push(format!("{} {}: {}", finding.seed, finding.flags, finding.message));
        }
    })
    .expect("it runs");
    assert_eq!(found.into_inner().unwrap(), Vec::<String>::new());
}

#[test]
fn the_llvm_ir_is_valid_and_does_what_it_should() {
    if !tool("opt") || !tool("lli") {
        return;
    }
    let folder = folder();
    let ll = folder.path().join("p.ll");
    for (number, program) in examples_and_some_cases(8).into_iter().enumerate() {
        export_of(&program, "llvm-ir", ["-O0", "-O1", "-O2"][number % 3], &ll);
        let ran = quick(Command::new("opt").args(["-passes=verify", "-disable-output"]).arg(&ll));
        assert_eq!(ran.status, 0, "{}: {}", program.display(), ran.err());
        check_case(&program, Command::new("lli").arg(&ll));
    }
    let mut compared = 0;
    for (seed, program) in random_programs() {
        std::fs::write(&ll, export::llvm::run(&program, "prog.atl")).expect("the disk has room");
        let ran = quick(Command::new("opt").args(["-passes=verify", "-disable-output"]).arg(&ll));
        assert_eq!(ran.status, 0, "seed {seed}: {}", ran.err());
        let Some(expected) = expected(&program) else { continue };
        assert_eq!(shown(&with_input(Command::new("lli").arg(&ll), INPUT)), expected, "seed {seed}");
        compared += 1;
    }
    assert!(compared > 12, "most programs end within the limits, not {compared}");
}

#[test]
fn llc_makes_programs_of_the_llvm_ir() {
    if !tool("llc") || !tool("gcc") {
        return;
    }
    let folder = folder();
    let file = |name: &str| folder.path().join(name);
    for (number, program) in programs("examples").into_iter().enumerate() {
        export_of(&program, "llvm-ir", ["-O0", "-O1", "-O2"][number % 3], &file("p.ll"));
        let mut llc = Command::new("llc");
        let ran =
            quick(llc.args(["-O2", "-relocation-model=pic", "-filetype=obj", "-o"]).arg(file("p.o")).arg(file("p.ll")));
        assert_eq!(ran.status, 0, "{}: {}", program.display(), ran.err());
        let ran = quick(Command::new("gcc").arg("-o").arg(file("p")).arg(file("p.o")));
        assert_eq!(ran.status, 0, "{}: {}", program.display(), ran.err());
        check_case(&program, &mut Command::new(file("p")));
    }
}

#[test]
fn the_qbe_text_means_what_it_should() {
    let folder = folder();
    let file = folder.path().join("p.ssa");
    let mut compared = 0;
    for (number, program) in examples_and_some_cases(4).into_iter().enumerate() {
        export_of(&program, "qbe", ["-O0", "-O1", "-O2"][number % 3], &file);
        let text = std::fs::read_to_string(&file).expect("it was written");
        let input = beside(&program, "input").unwrap_or_default();
        let Some(shown) = qbe::run(&text, &input) else { continue };
        assert_eq!(shown.output, beside(&program, "expected").unwrap_or_default(), "{}", program.display());
        let status = beside(&program, "status")
            .map_or(0, |text| String::from_utf8_lossy(&text).trim().parse().expect("a status"));
        assert_eq!(shown.status, status, "{}: {}", program.display(), shown.errors);
        compared += 1;
    }
    assert!(compared > 12, "most programs end within the limits, not {compared}");
}

#[test]
fn the_qbe_text_of_random_programs_means_what_they_do() {
    let mut compared = 0;
    for (seed, program) in random_programs() {
        let Some(expected) = expected(&program) else { continue };
        let text = export::qbe::run(&program, "prog.atl");
        let Some(run) = qbe::run(&text, INPUT.as_bytes()) else { continue };
        assert_eq!(Shown::of_process(run.output, run.errors.as_bytes(), run.status), expected, "seed {seed}\n{text}");
        compared += usize::from(expected.end == Ended::Normal);
    }
    assert!(compared > 6, "some programs end without an error, not {compared}");
}
