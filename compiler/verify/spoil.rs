//! What a program would do if a stage made the classic mistakes, one after the other: a report for each fault.
//!
//! **in**: a source, its input, limits. **out**: for each fault of the stage `sequence` the runs on the way out of SSA form (see
//! [`Verifier`]); nothing of it reaches an executable. Cost: for each fault a compilation up to that stage, and a few runs.

use super::observe::VerifyLimits;
use super::{Report, Verifier, mutants};
use crate::ir::Form;
use crate::pipeline::observe::{Event, Observer};
use crate::pipeline::{self, Failure, Language, Options, State};
use crate::support::span::Source;

/// The stage whose faults are the classic ones.
const STAGE: &str = "sequence";

/// Runs the program with each fault.
pub fn run(source: &Source, options: &Options, input: &[u8], limits: VerifyLimits) -> Result<Vec<Report>, Failure> {
    let mut reports = Vec::new();
    for mutant in mutants::all().filter(|mutant| mutant.stage == STAGE) {
        let mut late = Late(Verifier::new(input, limits, None).with_mutant(mutant));
        pipeline::compile(source, options, STAGE, &mut [&mut late])?;
        reports.push(late.0.into_report());
    }
    Ok(reports)
}

/// Leaves out the stages before the last SSA form: nothing of them is in question.
struct Late<'a>(Verifier<'a>);

impl Observer for Late<'_> {
    fn after(&mut self, event: &Event<'_>) {
        let is_late =
            matches!(event.state.language(), Language::Ir(Form::SplitSsa | Form::ParallelCopies | Form::Sequenced));
        match event.state {
            State::Ir(_) if is_late || event.last_ssa => self.0.after(event),
            State::Ir(program) if event.state.language() == Language::Ir(Form::Ssa) => self.0.keep_ssa(program),
            State::Ir(_)
            | State::Source
            | State::Tokens(_)
            | State::Ast(_)
            | State::Hir(_)
            | State::Virtual(_)
            | State::Physical(..)
            | State::Bytes(_)
            | State::Object(_)
            | State::Executable(_) => {}
        }
    }
}
