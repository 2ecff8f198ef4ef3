//! Random programs through the back end: what the IR's interpreter shows, the machine's must show at every stage, on
//! virtual registers, on physical ones, and with blocks laid out; and every stage must pass its verifier.

use atlc::execution::Limits;
use atlc::ir::random::{Shape, generate};
use atlc::ir::{self, interpret as ir_interpret};
use atlc::opt::{self, fuel::Fuel};
use atlc::ssa::{destruct, sequence, split_edges};
use atlc::support::internal::Internal;
use atlc::x64::{self, interpret, print, verify};
use atlc::{emit, isel, regalloc};

const LIMITS: Limits = Limits { steps: 20_000, output: 1 << 16, depth: 200, memory: 1 << 20 };

fn leave_ssa(program: &mut ir::Program) {
    for function in program.functions.values_mut() {
        split_edges::run(function);
        destruct::run(function);
        sequence::run(function);
    }
}

/// Shows the IR and the machine code of a program that went wrong.
#[track_caller]
fn fail<R: print::Shown>(seed: u64, what: &str, ir: &ir::Program, code: &x64::Program<R>) -> ! {
    panic!("seed {seed}: {what}\n{}\n{}", ir::print::print(ir), print::print(code, None));
}

fn check(seed: u64, shape: &Shape, level: Option<u8>) {
    let mut program = generate(seed, shape);
    if let Some(level) = level {
        opt::run(&mut program, level, &mut Fuel::new(u64::MAX));
    }
    leave_ssa(&mut program);
    let input = b"1 -2 3 40000 5 x";
    let expected = ir_interpret::run(&program, input, LIMITS).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    // Selection makes several instructions of one, and a call may take the place of its caller.
    let limits = Limits { steps: 40 * LIMITS.steps, ..LIMITS };
    let selected = isel::run(&program, "random.atl");
    if let Err(error) = verify::verify_program(&selected) {
        fail(seed, &error.to_string(), &program, &selected);
    }
    match interpret::run(&selected, input, limits) {
        Err(error) => fail(seed, &error.to_string(), &program, &selected),
        Ok(run) if !expected.outcome.agrees(&run.outcome) => {
            let what = format!("{:?}\nis not\n{:?}", run.outcome, expected.outcome);
            fail(seed, &what, &program, &selected);
        }
        Ok(_) => {}
    }
    let allocated: Result<_, Internal> = selected
        .functions
        .values()
        .map(|function| regalloc::run(function, &regalloc::Options::default()).map(|(function, _)| function))
        .collect();
    let mut allocated = x64::Program {
        functions: allocated.unwrap_or_else(|error| fail(seed, &error.to_string(), &program, &selected)),
        entry: selected.entry,
        strings: selected.strings.clone(),
        source_name: selected.source_name.clone(),
        positions: selected.positions.clone(),
    };
    for pass in [|_: &mut x64::Function<_>| 0, emit::peephole::run, emit::shrink_wrap::run, emit::layout::run] {
        for function in allocated.functions.values_mut() {
            pass(function);
        }
        if let Err(error) = verify::verify_program(&allocated) {
            fail(seed, &error.to_string(), &program, &allocated);
        }
        match interpret::run(&allocated, input, limits) {
            Err(error) => fail(seed, &error.to_string(), &program, &allocated),
            Ok(run) if !expected.outcome.agrees(&run.outcome) => {
                let what = format!("{:?}\nis not\n{:?}", run.outcome, expected.outcome);
                fail(seed, &what, &program, &allocated);
            }
            Ok(_) => {}
        }
    }
    emit::encode::run(&allocated).unwrap_or_else(|error| fail(seed, &error.to_string(), &program, &allocated));
}

#[test]
fn random_programs() {
    for seed in 0..80 {
        check(seed, &Shape::default(), None);
        check(seed, &Shape::tiny(), None);
    }
}

#[test]
fn random_programs_that_trap() {
    let shape = Shape { traps: true, input: true, ..Shape::default() };
    for seed in 1000..1080 {
        check(seed, &shape, None);
    }
}

#[test]
fn random_programs_under_pressure() {
    for seed in 2000..2030 {
        check(seed, &Shape::pressure(), None);
        check(seed, &Shape::webs(), None);
    }
}

#[test]
fn random_programs_optimized() {
    let shape = Shape { traps: true, ..Shape::default() };
    for seed in 3000..3050 {
        check(seed, &Shape::default(), Some(1));
        check(seed, &shape, Some(2));
        check(seed, &Shape::pressure(), Some(2));
    }
}
