//! Tests of the generator: its programs are well-typed, end, and show what they compute.

use super::*;
use crate::execution::{End, Limits};
use crate::support::span::Source;
use crate::{build, check, hir, ir, syntax};

fn program(seed: u64) -> (Source, hir::Program) {
    let source = Source::new(format!("{seed}.atl"), generate(seed, &Shape::of_seed(seed)));
    let parsed = syntax::parse(&source);
    assert!(parsed.diagnostics.is_empty(), "seed {seed}: {:?}\n{}", parsed.diagnostics, source.text);
    let tree = parsed.ast.expect("a tree");
    match check::run(&tree, &source) {
        Ok(program) => (source, program),
        Err(diagnostics) => panic!("seed {seed}: {diagnostics:?}\n{}", source.text),
    }
}

#[test]
fn programs_are_well_typed_and_end() {
    let (mut traps, mut lines) = (0, 0);
    for seed in 0..150 {
        let (source, program) = program(seed);
        let ir = build::run(&program);
        let run = ir::interpret::run(&ir, b"5 -3 0 12 9223372036854775807", Limits::default());
        let outcome = run.unwrap_or_else(|internal| panic!("seed {seed}: {internal}\n{}", source.text)).outcome;
        match outcome.end {
            End::Normal => {}
            End::Trap(..) => {
                assert!(Shape::of_seed(seed).traps, "seed {seed}: {:?}\n{}", outcome.end, source.text);
                traps += 1;
            }
            End::Limit(limit) => panic!("seed {seed} meets a limit: {limit:?}\n{}", source.text),
        }
        lines += outcome.output.iter().filter(|byte| **byte == b'\n').count();
    }
    assert!(traps > 5 && lines > 1000, "{traps} traps, {lines} lines: programs must show what they compute");
}
