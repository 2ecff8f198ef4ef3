//! Finds the optimization pass, and the one change within it, that makes a program behave differently.
//!
//! Every change that a pass makes takes one unit of fuel, and each is right by itself, so a program is right after any number
//! of them, unless one is wrong. Bisection over the limit finds a change that is: with one less the program still did
//! what it should.
//!
//! ```text
//! limit 0: right    limit 412: wrong    limit 206: right    …    limit 231: right, limit 232: wrong    →    change 232
//! ```
//!
//! **in**: a function that compiles and runs with a limit. **out**: the change, its pass, what the pass made of the IR.
//! Cost: a compilation and a run for each doubling of the number of changes.

use super::shown::Shown;
use crate::ir;
use crate::support::diff::{self, Change};
use crate::support::listing::{Line, Section};
use serde::Serialize;

/// A compilation with a limit, and its run.
#[derive(Clone, Debug)]
pub struct Attempt {
    /// What the run showed; an error of the compiler or of an interpreter as its message.
    pub shown: Result<Shown, String>,
    /// The passes in order, with the number of changes of each and what it left.
    pub passes: Vec<Pass>,
}

/// What a pass did.
#[derive(Clone, Debug)]
pub struct Pass {
    /// Its name.
    pub name: &'static str,
    /// How many changes it made.
    pub changes: u64,
    /// What it left.
    pub program: ir::Program,
}

/// What was found.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(tag = "found", rename_all = "kebab-case")]
pub enum Found {
    /// With every change the program does what it should.
    NoDifference,
    /// Without any change it is wrong already.
    NotInOptimization {
        /// What it shows.
        shows: String,
    },
    /// A change makes the difference.
    Change {
        /// Its number over all passes, from 1: `--opt-limit` with it is wrong, with one less right.
        number: u64,
        /// The pass.
        pass: &'static str,
        /// Its number within the pass, from 1.
        within: u64,
        /// What it does to the listing: lines with `-` and `+`.
        lines: Vec<String>,
    },
}

/// Finds a change that makes a run disagree with the reference. `attempt` gets the limit.
pub fn run(reference: &Shown, mut attempt: impl FnMut(u64) -> Attempt) -> Found {
    let wrong = |attempt: &Attempt| !attempt.shown.as_ref().is_ok_and(|shown| shown.agrees(reference));
    let all = attempt(u64::MAX);
    if !wrong(&all) {
        return Found::NoDifference;
    }
    let none = attempt(0);
    if wrong(&none) {
        let shows = match none.shown {
            Ok(shown) => format!("{} bytes of output, {}", shown.output.len(), shown.end),
            Err(message) => message,
        };
        return Found::NotInOptimization { shows };
    }
    // A compilation that fails in the middle of the passes tells of some of them only; then double.
    let counted: u64 = all.passes.iter().map(|pass| pass.changes).sum();
    let mut right = (0, none);
    let mut limit = counted.max(1);
    let mut bad = loop {
        let tried = attempt(limit);
        if wrong(&tried) {
            break (limit, tried);
        }
        right = (limit, tried);
        limit = match limit.checked_mul(2) {
            Some(limit) if limit < 1 << 40 => limit,
            Some(_) | None => return Found::NoDifference,
        };
    };
    while bad.0 - right.0 > 1 {
        let middle = right.0 + (bad.0 - right.0) / 2;
        let tried = attempt(middle);
        if wrong(&tried) {
            bad = (middle, tried);
        } else {
            right = (middle, tried);
        }
    }
    let number = bad.0;
    let mut before = 0;
    // The change may be that of a pass that failed and so told nothing.
    let mut guilty = ("the pass behind those that ended", 1);
    let mut lines = Vec::new();
    for (index, pass) in bad.1.passes.iter().enumerate() {
        if before + pass.changes >= number {
            guilty = (pass.name, number - before);
            if let Some(old) = right.1.passes.get(index) {
                lines = difference(&old.program, &pass.program);
            }
            break;
        }
        before += pass.changes;
    }
    Found::Change { number, pass: guilty.0, within: guilty.1, lines }
}

/// The lines that differ between two programs, with `-` and `+`.
fn difference(old: &ir::Program, new: &ir::Program) -> Vec<String> {
    let (old, new) = (ir::print::print(old), ir::print::print(new));
    let mut lines = Vec::new();
    for section in &new.sections {
        let same = |other: &&Section| other.function == section.function;
        let Some(before) = old.sections.iter().find(same) else { continue };
        for run in diff::compute(&before.lines, &section.lines) {
            match run.change {
                Change::Same => {}
                Change::Removed => lines.extend(marked('-', &before.lines[run.old..run.old + run.len])),
                Change::Added => lines.extend(marked('+', &section.lines[run.new..run.new + run.len])),
                Change::Renumbered => {
                    lines.extend(marked('-', &before.lines[run.old..run.old + run.len]));
                    lines.extend(marked('+', &section.lines[run.new..run.new + run.len]));
                }
            }
        }
    }
    lines
}

fn marked(mark: char, lines: &[Line]) -> impl Iterator<Item = String> {
    lines.iter().map(move |line| format!("{mark}{}", line.text()))
}

impl Found {
    /// For people.
    pub fn text(&self) -> String {
        match self {
            Found::NoDifference => "no change of optimization makes a difference\n".to_string(),
            Found::NotInOptimization { shows } => {
                format!("the program differs without any optimization: {shows}\n`atlc verify` finds the stage\n")
            }
            Found::Change { number, pass, within, lines } => {
                let mut text = format!(
                    "change {number} makes the difference: change {within} of {pass}\n\
                     --opt-limit {} is right, --opt-limit {number} is wrong\n",
                    number - 1
                );
                for line in lines {
                    text.push_str(line);
                    text.push('\n');
                }
                text
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::execution::Limits;
    use crate::ir::{Op, Operand};
    use crate::opt::{self, fuel::Fuel};
    use crate::semantics::BinaryOp;
    use crate::support::span::Source;
    use crate::verify::observe::run_ir;

    const TEXT: &str = "\
fn main() {
b0:
  %0 = read @1:1
  %1 = int 2 + 3
  %2 = int %0 * %1
  %3 = int %2 - %0
  %4 = int %3 - 4
  print %2, %3, %4
  return
}
";

    /// The real passes with a wrong one among them: it takes subtraction for commutative.
    fn attempt(limit: u64, with_fault: bool) -> Attempt {
        let mut program = ir::parse::parse(&Source::new("t.ir", TEXT)).expect("it parses");
        let mut fuel = Fuel::new(limit);
        let mut passes = Vec::new();
        for pass in opt::PASSES.iter().filter(|pass| pass.level <= 1) {
            let changes = (pass.run)(&mut program, &mut fuel) as u64;
            passes.push(Pass { name: pass.name, changes, program: program.clone() });
            if pass.name == "simplify" && with_fault {
                let changes = commute(&mut program, &mut fuel);
                passes.push(Pass { name: "faulty", changes, program: program.clone() });
            }
        }
        let shown = run_ir(&program, b"7", Limits::default()).0.map_err(|internal| internal.to_string());
        Attempt { shown, passes }
    }

    fn commute(program: &mut ir::Program, fuel: &mut Fuel) -> u64 {
        let mut changes = 0;
        for inst in program.functions[program.entry].insts.values_mut() {
            match &mut inst.op {
                Op::Binary { op: BinaryOp::Sub, args, .. } if fuel.take() => {
                    // The first of these changes is to a constant and would be seen at once; both are wrong.
                    args.swap(0, 1);
                    changes += 1;
                }
                Op::Copy(Operand::Int(_)) => {}
                _ => {}
            }
        }
        changes
    }

    #[test]
    fn finds_the_faulty_pass_and_its_first_wrong_change() {
        let reference = attempt(0, false).shown.expect("it runs");
        assert_eq!(run(&reference, |limit| attempt(limit, false)), Found::NoDifference);
        let Found::Change { number, pass, within, lines } = run(&reference, |limit| attempt(limit, true)) else {
            panic!("the fault is not found")
        };
        assert_eq!((pass, within), ("faulty", 1));
        assert!(number > 1, "the right passes before it change something too");
        assert!(
            lines.iter().any(|line| line.starts_with('-') && line.contains("%2 - %0") || line.contains("- %0")),
            "{lines:?}"
        );
    }

    #[test]
    fn says_when_optimization_is_not_to_blame() {
        let mut reference = attempt(0, false).shown.expect("it runs");
        reference.output.push(b'!');
        assert!(matches!(run(&reference, |limit| attempt(limit, false)), Found::NotInOptimization { .. }));
    }
}
