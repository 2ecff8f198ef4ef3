//! What a program would do if a stage made the classic mistakes, one after the other: a report for each fault.
//!
//! **in**: a source, its input, limits, and a stage. **out**: for each fault of that stage the runs up to it (see [`Verifier`]);
//! nothing of it reaches an executable. Cost: for each fault a compilation up to the stage, and a run of what each stage leaves.

use super::observe::VerifyLimits;
use super::{Report, Verifier, mutants};
use crate::pipeline::{self, Failure, Options};
use crate::support::span::Source;

/// Runs the program with each fault of the stage.
pub fn run(
    source: &Source,
    options: &Options,
    input: &[u8],
    limits: VerifyLimits,
    stage: &'static str,
) -> Result<Vec<Report>, Failure> {
    let mut reports = Vec::new();
    for mutant in mutants::all().filter(|mutant| mutant.stage == stage) {
        let mut verifier = Verifier::new(input, limits, None).with_mutant(mutant);
        pipeline::compile(source, options, stage, &mut [&mut verifier])?;
        reports.push(verifier.into_report());
    }
    Ok(reports)
}
