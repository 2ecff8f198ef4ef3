//! Tests of the passes over IR text: before, after, by hand.

use super::fuel::Fuel;
use super::summaries::Summaries;
use super::*;
use crate::ir::{parse, print};
use crate::support::span::Source;

/// The program of this text.
fn program(text: &str) -> Program {
    match parse::parse(&Source::new("test.ir", text)) {
        Ok(program) => program,
        Err(diagnostics) => panic!("{diagnostics:?}\n{text}"),
    }
}

/// The text of a program, without comments and indentation.
fn text(program: &Program) -> String {
    let text = print::print(program).to_string();
    let lines = text.lines().map(|line| line.split(';').next().unwrap_or("").trim());
    lines.filter(|line| !line.is_empty() && !line.starts_with("form")).collect::<Vec<_>>().join("\n")
}

/// Checks that a pass turns one body into another.
fn check(run: impl Fn(&mut Function, &Summaries, &mut Fuel) -> usize, before: &str, after: &str) {
    let mut got = program(&format!("form ssa\nfn main() {{\n{before}\n}}"));
    let summaries = Summaries::compute(&got);
    for function in got.functions.values_mut() {
        run(function, &summaries, &mut Fuel::UNLIMITED.clone());
    }
    let want: Vec<&str> = after.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    assert_eq!(text(&got), format!("fn main() {{\n{}\n}}", want.join("\n")));
}

#[test]
fn sccp_folds_a_branch_and_the_phi_behind_it() {
    // IR17: the edge from b2 goes together with its operand, and b2 with it.
    check(
        |f, _, fuel| sccp::run(f, fuel),
        "b0:
           branch false ? b1 : b2
         b1:
           %1 = int 1 + 1
           jump b3
         b2:
           jump b3
         b3:
           %2 = phi [%1 from b1, 7 from b2]
           print %2
           return",
        "b0:
           jump b2
         b2:
           jump b3
         b3:
           %2 = phi [7 from b2]
           print 7
           return",
    );
}

#[test]
fn passes_keep_programs_well_formed() {
    use crate::ir::random::{Shape, generate};
    for seed in 0..300 {
        let shape = Shape { traps: seed % 3 == 0, ..if seed % 2 == 0 { Shape::default() } else { Shape::webs() } };
        let mut got = generate(seed, &shape);
        for pass in PASSES {
            (pass.run)(&mut got, &mut Fuel::UNLIMITED.clone());
            let text = print::print(&got).to_string();
            let again = parse::parse(&Source::new("x", text.clone()));
            assert!(again.is_ok(), "seed {seed} after {}: {again:?}\n{text}", pass.name);
        }
    }
}
