//! Random machine code before and after allocation shows the same on a machine stricter than the real one.

use super::*;
use crate::execution::Limits;
use crate::support::listing::Listing;
use crate::x64::random::{Shape, generate};
use crate::x64::{Program, interpret, print, verify};
use cranelift_entity::PrimaryMap;

fn allocate(program: &Program<VReg>, options: &Options) -> Result<Program<PReg>, Internal> {
    let mut functions = PrimaryMap::new();
    for function in program.functions.values() {
        functions.push(run(function, options)?.0);
    }
    Ok(Program {
        functions,
        entry: program.entry,
        strings: program.strings.clone(),
        source_name: program.source_name.clone(),
        positions: program.positions.clone(),
    })
}

fn listing(program: &Program<impl print::Shown>) -> Listing {
    print::print(program, None)
}

/// All ways of allocating that tests try.
fn ways() -> Vec<(String, Options)> {
    let mut ways = vec![("all registers".to_string(), Options::default())];
    for count in [FEWEST_REGISTERS, 5, 6, 8, 11] {
        ways.push((format!("{count} registers"), Options::with_registers(count).expect("a count that works")));
    }
    ways.push(("spill all".to_string(), Options { spill_all: true, ..Options::default() }));
    let few = Options { spill_all: true, ..Options::with_registers(FEWEST_REGISTERS).expect("a count that works") };
    ways.push(("spill all, few registers".to_string(), few));
    ways
}

fn compare(seed: u64, shape: &Shape) {
    let program = generate(seed, shape);
    let limits = Limits::default();
    let expected = interpret::run(&program, b"1 2 3", limits);
    let expected = expected.unwrap_or_else(|error| panic!("seed {seed}: {error}\n{}", listing(&program)));
    for (name, options) in ways() {
        let allocated = allocate(&program, &options)
            .unwrap_or_else(|error| panic!("seed {seed}, {name}: {error}\n{}", listing(&program)));
        let fail = |message: String| -> ! {
            panic!("seed {seed}, {name}: {message}\n{}\n{}", listing(&program), listing(&allocated))
        };
        if let Err(error) = verify::verify_program(&allocated) {
            fail(error.to_string());
        }
        match interpret::run(&allocated, b"1 2 3", limits) {
            Err(error) => fail(error.to_string()),
            Ok(run) if run.outcome != expected.outcome => {
                fail(format!("{:?} became {:?}", expected.outcome, run.outcome))
            }
            Ok(_) => {}
        }
    }
}

#[test]
fn random_code_shows_the_same_after_allocation() {
    for seed in 0..30 {
        compare(seed, &Shape::default());
        compare(seed, &Shape::tiny());
    }
}

#[test]
fn random_code_under_pressure_shows_the_same_after_allocation() {
    for seed in 0..12 {
        compare(seed, &Shape::pressure());
    }
}

#[test]
fn random_code_with_traps_shows_the_same_after_allocation() {
    for seed in 0..12 {
        compare(seed, &Shape { traps: true, ..Shape::default() });
    }
}

#[test]
#[ignore = "a long search for seeds that fail; run by hand"]
fn random_code_search() {
    let number = |name: &str, default: u64| std::env::var(name).map_or(default, |text| text.parse().expect("a number"));
    let (from, count) = (number("SEED", 1000), number("COUNT", 1000));
    for seed in from..from + count {
        compare(seed, &Shape::default());
        compare(seed, &Shape::tiny());
        compare(seed, &Shape::pressure());
        compare(seed, &Shape { traps: true, ..Shape::default() });
    }
}
