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
fn passes_keep_what_programs_do() {
    use crate::execution::Limits;
    use crate::ir::random::{Shape, generate};
    use crate::support::random::Random;
    let count: u64 = std::env::var("SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(300);
    let start: u64 = std::env::var("SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(0);
    let limits = Limits { steps: 200_000, output: 1 << 16, depth: 200, memory: 1 << 20 };
    let mut totals = vec![0; PASSES.len()];
    for seed in start..start + count {
        let base = match seed % 4 {
            0 => Shape::default(),
            1 => Shape::webs(),
            2 => Shape::tiny(),
            _ => Shape::pressure(),
        };
        let shape = Shape { traps: seed / 4 % 2 == 0, ..base };
        let mut got = generate(seed, &shape);
        let before = interp_tmp::run(&got, b"", limits);
        // The sequence as it is, or any passes in any order.
        let mut random = Random::new(seed);
        let sequence: Vec<usize> = match seed % 3 {
            0 => (0..PASSES.len()).collect(),
            _ => (0..12).map(|_| random.below(PASSES.len())).collect(),
        };
        for index in sequence {
            let pass = &PASSES[index];
            let old = got.clone();
            let changes = (pass.run)(&mut got, &mut Fuel::UNLIMITED.clone());
            totals[index] += changes;
            if changes == 0 {
                assert_eq!(print::print(&old).to_string(), print::print(&got).to_string(), "{} lies", pass.name);
                continue;
            }
            let after = std::panic::catch_unwind(|| interp_tmp::run(&got, b"", limits));
            match after {
                Ok(after) if before.agrees(&after) => {}
                other => panic!(
                    "seed {seed} pass {}\n{}\n---\n{}\n{before:?}\n{other:?}",
                    pass.name,
                    print::print(&old),
                    print::print(&got)
                ),
            }
        }
    }
    for (pass, total) in PASSES.iter().zip(totals) {
        eprintln!("{} {total}", pass.name);
    }
}
