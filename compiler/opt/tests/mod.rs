//! Tests of the passes: over IR text, by hand (`golden`), and by running programs before and after (`behaviour`).

mod behaviour;
mod golden;

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
    let lines = text.lines().map(|line| line.split(" ;").next().unwrap_or("").trim());
    lines.filter(|line| !line.is_empty() && !line.starts_with("form")).collect::<Vec<_>>().join("\n")
}

/// Checks that a pass turns one program into another.
fn check_program(run: impl Fn(&mut Program, &mut Fuel) -> usize, before: &str, after: &str) {
    let mut got = program(&format!("form ssa\n{before}"));
    run(&mut got, &mut Fuel::UNLIMITED.clone());
    let want: Vec<&str> = after.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    assert_eq!(text(&got), want.join("\n"));
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
