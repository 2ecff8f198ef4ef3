//! Random programs through the whole pipeline: after every stage the program is interpreted, as IR, as machine code over
//! virtual and over physical registers, and at last the executable is run; all must show the same. Every stage's verifier
//! and judge looks on. So it is at every level, with all registers, with few, and with none.

mod harness;

use atlc::execution::{End, Limits, Outcome};
use atlc::ir::random::{Shape, generate};
use atlc::ir::{self, print::print};
use atlc::pipeline::observe::{Event, Observer};
use atlc::pipeline::options::Options;
use atlc::pipeline::run::{Failure, compile};
use atlc::pipeline::state::State;
use atlc::regalloc;
use atlc::support::span::Source;
use atlc::x64;
use harness::{Output, folder, run};
use std::fs;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

const INPUT: &[u8] = b"1 -2 3 40000 5 -9223372036854775808 x";

/// Programs that take longer are left out: they would only take time.
const LIMITS: Limits = Limits { steps: 20_000, output: 1 << 16, depth: 200, memory: 1 << 20 };

/// Machine code takes several steps where the IR takes one.
const MACHINE_LIMITS: Limits = Limits { steps: 2_000_000, output: 1 << 17, depth: 400, memory: 1 << 20 };

/// Interprets the program after each stage.
struct Watcher<'a> {
    expected: &'a Outcome,
    /// The stages that were interpreted.
    seen: Vec<&'static str>,
    wrong: Option<String>,
}

impl Observer for Watcher<'_> {
    fn after(&mut self, event: &Event<'_>) {
        let outcome = match event.state {
            State::Ir(program) => ir::interpret::run(program, INPUT, LIMITS).map(|run| run.outcome),
            State::Virtual(program) => x64::interpret::run(program, INPUT, MACHINE_LIMITS).map(|run| run.outcome),
            State::Physical(program, _) => x64::interpret::run(program, INPUT, MACHINE_LIMITS).map(|run| run.outcome),
            State::Source
            | State::Tokens(_)
            | State::Ast(_)
            | State::Hir(_)
            | State::Bytes(_)
            | State::Object(_)
            | State::Executable(_) => return,
        };
        self.seen.push(event.stage.name);
        let wrong = match outcome {
            Ok(outcome) if outcome.agrees(self.expected) => return,
            Ok(outcome) => format!("shows {outcome:?}, not {:?}", self.expected),
            Err(internal) => internal.to_string(),
        };
        self.wrong.get_or_insert(format!("{} {wrong}\n{}", event.stage.name, event.state.print(event.source)));
    }
}

/// Ways of allocating: all registers, the fewest, some, and memory only.
fn allocations() -> Vec<(&'static str, regalloc::Options)> {
    let few = |count| regalloc::Options::with_registers(count).expect("a count that works");
    vec![
        ("all registers", regalloc::Options::default()),
        ("the fewest registers", few(regalloc::FEWEST_REGISTERS)),
        ("seven registers", few(7)),
        ("memory only", regalloc::Options { spill_all: true, ..regalloc::Options::default() }),
    ]
}

/// What the interpreter of the IR says; nothing if the program takes too long.
fn expected(source: &Source) -> Option<(ir::Program, Outcome)> {
    let program = ir::parse::parse(source).unwrap_or_else(|errors| panic!("{errors:#?}\n{}", source.text));
    let outcome = ir::interpret::run(&program, INPUT, LIMITS).expect("random programs are right").outcome;
    (!matches!(outcome.end, End::Limit(_))).then_some((program, outcome))
}

/// Compiles one way, watching; gives the executable.
fn compile_watched(source: &Source, outcome: &Outcome, options: &Options, until: &str, what: &str) -> Vec<u8> {
    let mut watcher = Watcher { expected: outcome, seen: Vec::new(), wrong: None };
    let compiled = compile(source, options, until, &mut [&mut watcher]);
    if let Some(wrong) = watcher.wrong {
        panic!("{what}: {wrong}\n{}", source.text);
    }
    for stage in ["split-edges", "parallel-copies", "sequence", "isel", "regalloc"] {
        assert!(watcher.seen.contains(&stage), "{what}: {stage} was not watched, only {:?}", watcher.seen);
    }
    match compiled.map(|compiled| compiled.state) {
        Ok(State::Executable(bytes)) => bytes,
        Ok(_) => Vec::new(),
        Err(Failure::Internal(internal)) => panic!("{what}: {internal}\n{}", source.text),
        Err(other) => panic!("{what}: {other:?}\n{}", source.text),
    }
}

fn random_source(seed: u64, shape: &Shape) -> Source {
    Source::new("random.ir", print(&generate(seed, shape)).to_string())
}

fn shapes() -> [Shape; 4] {
    [Shape::default(), Shape::webs(), Shape::tiny(), Shape { traps: true, input: true, ..Shape::default() }]
}

#[test]
fn every_stage_shows_the_same() {
    let mut compared = 0;
    for seed in 0..25 {
        for (number, shape) in shapes().into_iter().enumerate() {
            let source = random_source(seed, &shape);
            let Some((_, outcome)) = expected(&source) else { continue };
            // Each seed takes one way of allocating at each level, so that all meet.
            for level in 0..=2 {
                let allocations = allocations();
                let (way, allocation) = allocations[(seed as usize + number + level) % allocations.len()];
                let options = Options {
                    level: level as u8,
                    registers: allocation.registers,
                    spill_all: allocation.spill_all,
                    verify: true,
                    ..Options::default()
                };
                let what = format!("seed {seed}, {shape:?}, level {level}, {way}");
                compile_watched(&source, &outcome, &options, "bytes", &what);
                compared += 1;
            }
        }
    }
    assert!(compared > 200, "only {compared} programs end soon enough");
}

/// Many values at once, so that spilling, splitting and rematerialization have much to do.
#[test]
fn every_stage_shows_the_same_under_pressure() {
    for seed in 0..8 {
        let source = random_source(seed, &Shape::pressure());
        let Some((_, outcome)) = expected(&source) else { continue };
        for (way, allocation) in allocations() {
            let options = Options {
                level: (seed % 3) as u8,
                registers: allocation.registers,
                spill_all: allocation.spill_all,
                verify: true,
                ..Options::default()
            };
            compile_watched(&source, &outcome, &options, "bytes", &format!("seed {seed}, pressure, {way}"));
        }
    }
}

/// Writes a file that may be executed.
fn write_executable(path: &Path, bytes: &[u8]) {
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o755).open(path).expect("a new file");
    file.write_all(bytes).expect("it takes the bytes");
}

#[test]
fn the_executable_shows_what_the_interpreters_show() {
    let folder = folder();
    let input = folder.path().join("input");
    fs::write(&input, INPUT).expect("it takes the input");
    let (mut normal, mut trapped) = (0, 0);
    for seed in 100..130 {
        for (number, shape) in shapes().into_iter().enumerate() {
            let source = random_source(seed, &shape);
            let Some((program, outcome)) = expected(&source) else { continue };
            let allocations = allocations();
            let (way, allocation) = allocations[(seed as usize + number) % allocations.len()];
            let options = Options {
                level: (seed % 3) as u8,
                registers: allocation.registers,
                spill_all: allocation.spill_all,
                verify: true,
                ..Options::default()
            };
            let what = format!("seed {seed}, {shape:?}, {way}");
            let bytes = compile_watched(&source, &outcome, &options, "executable", &what);
            let path = folder.path().join(format!("program-{seed}-{number}"));
            write_executable(&path, &bytes);
            let ran = run(&mut Command::new(&path), Some(&input), Output::File, Duration::from_secs(20));
            let _ = fs::remove_file(&path);
            assert_eq!(
                String::from_utf8_lossy(&ran.stdout),
                String::from_utf8_lossy(&outcome.output),
                "{what}: {}\n{}",
                ran.err(),
                source.text
            );
            match outcome.end {
                End::Normal => {
                    assert_eq!((ran.status, ran.err().as_str()), (0, ""), "{what}\n{}", source.text);
                    normal += 1;
                }
                End::Trap(trap, span) => {
                    let position = program.positions.position(span).expect("what traps has a position");
                    let message = format!("error: {trap}\n --> random.ir:{position}\n");
                    assert_eq!((ran.status, ran.err()), (101, message), "{what}\n{}", source.text);
                    trapped += 1;
                }
                End::Limit(_) => unreachable!("programs that take too long were left out"),
            }
        }
    }
    assert!(normal > 50 && trapped > 5, "{normal} ended, {trapped} trapped");
}
