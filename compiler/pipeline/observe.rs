//! What hangs on the loop over the stages: timing, recording for dumps, verifying. No stage knows that it is watched.
//!
//! Cost: recording prints the program once per recorded stage; verifying is linear in the program, stage by stage.

use super::facts::{self, FactKind};
use super::stages::{self, Judge, Stage};
use super::state::{Counts, Language, State};
use crate::ir;
use crate::support::internal::Internal;
use crate::support::listing::Listing;
use crate::support::span::Source;
use crate::x64::{self, VReg};
use std::fmt::Write;
use std::time::Duration;

/// A stage has run.
pub struct Event<'a> {
    /// The stage.
    pub stage: &'static Stage,
    /// What it left.
    pub state: &'a State,
    /// The source.
    pub source: &'a Source,
    /// How long it took.
    pub elapsed: Duration,
    /// How many changes it made, if it counts them.
    pub changes: Option<usize>,
    /// Is it the last that leaves SSA form?
    pub last_ssa: bool,
}

/// Something that watches the loop.
pub trait Observer: Send {
    /// A stage is about to run on this state.
    fn before(&mut self, _stage: &'static Stage, _state: &State) {}

    /// A stage has run.
    fn after(&mut self, event: &Event<'_>);
}

/// Collects times and counts for `--time-passes`.
#[derive(Default)]
pub struct Timing {
    rows: Vec<Row>,
}

struct Row {
    name: &'static str,
    elapsed: Duration,
    changes: Option<usize>,
    before: Option<Counts>,
    after: Option<Counts>,
}

impl Timing {
    /// Nothing yet.
    pub fn new() -> Timing {
        Timing::default()
    }

    /// The table: a row for each stage, then the sum, and the most memory that the process had.
    pub fn table(&self) -> String {
        let total: Duration = self.rows.iter().map(|row| row.elapsed).sum();
        let mut out = format!(
            "{:<20} {:>9} {:>6} {:>9}  {:>20} {:>16} {:>16}\n",
            "stage", "ms", "%", "changes", "instructions", "phis", "copies"
        );
        for row in &self.rows {
            let changes = row.changes.map_or(String::new(), |changes| changes.to_string());
            let counts =
                |count: fn(&Counts) -> usize| match (row.before.as_ref().map(count), row.after.as_ref().map(count)) {
                    (Some(before), Some(after)) if before == after => after.to_string(),
                    (Some(before), Some(after)) => format!("{before} -> {after}"),
                    (None, Some(after)) => after.to_string(),
                    (Some(_) | None, None) => String::new(),
                };
            let _ = writeln!(
                out,
                "{:<20} {:>9.3} {:>6.1} {changes:>9}  {:>20} {:>16} {:>16}",
                row.name,
                milliseconds(row.elapsed),
                100.0 * row.elapsed.as_secs_f64() / total.as_secs_f64().max(1e-9),
                counts(|counts| counts.instructions),
                counts(|counts| counts.phis),
                counts(|counts| counts.copies),
            );
        }
        let _ = writeln!(out, "{:<20} {:>9.3}  100.0", "total", milliseconds(total));
        if let Some(peak) = peak_memory() {
            let _ = writeln!(out, "{:<20} {:>9.1} MB", "peak memory", peak as f64 / 1024.0);
        }
        out
    }
}

fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

/// The most memory that this process has had, in kB, as Linux tells it.
fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

impl Observer for Timing {
    fn before(&mut self, stage: &'static Stage, state: &State) {
        self.rows.push(Row {
            name: stage.name,
            elapsed: Duration::ZERO,
            changes: None,
            before: state.counts(),
            after: None,
        });
    }

    fn after(&mut self, event: &Event<'_>) {
        if let Some(row) = self.rows.last_mut() {
            row.elapsed = event.elapsed;
            row.changes = event.changes;
            row.after = event.state.counts();
        }
    }
}

/// A listing of what a stage left, or of a fact about it.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// The name of the stage or fact.
    pub name: &'static str,
    /// The listing.
    pub listing: Listing,
    /// What starts a comment in it.
    pub comment: &'static str,
    /// May its lines be announced by the source line that they came from?
    pub shows_source: bool,
}

/// Keeps the listings of the stages and facts that are wanted.
#[derive(Default)]
pub struct Recording {
    wanted: Vec<&'static str>,
    recorded: Vec<Recorded>,
}

impl Recording {
    /// Will keep the stages and facts with these names.
    pub fn of(names: &[&'static str]) -> Recording {
        Recording { wanted: names.to_vec(), recorded: Vec::new() }
    }

    /// What was recorded under a name.
    pub fn get(&self, name: &str) -> Option<&Recorded> {
        self.recorded.iter().find(|recorded| recorded.name == name)
    }

    /// Everything, in the order of the pipeline.
    pub fn listings(&self) -> impl Iterator<Item = &Recorded> {
        self.recorded.iter()
    }

    /// Has nothing been recorded?
    pub fn is_empty(&self) -> bool {
        self.recorded.is_empty()
    }
}

impl Observer for Recording {
    fn after(&mut self, event: &Event<'_>) {
        let from_source = !event.source.name.ends_with(".ir");
        let language = event.state.language();
        if self.wanted.contains(&event.stage.name) {
            // Tokens and the tree are the source; it need not stand there twice.
            let is_source =
                matches!(language, Language::Tokens | Language::Ast | Language::Object | Language::Executable);
            self.recorded.push(Recorded {
                name: event.stage.name,
                listing: event.state.print(event.source),
                comment: language.comment(),
                shows_source: from_source && !is_source,
            });
        }
        for fact in stages::facts() {
            let here = if fact.kind.is_of_ssa() { event.last_ssa } else { fact.after == event.stage.name };
            if here && self.wanted.contains(&fact.name) {
                self.recorded.push(Recorded {
                    name: fact.name,
                    listing: facts::print(fact.kind, event.state, event.source),
                    comment: ";",
                    shows_source: fact.kind == FactKind::Ir && from_source,
                });
            }
        }
    }
}

/// Checks what each stage left: the language's own verifier, then the stage's judge, who sees what it was before.
#[derive(Default)]
pub struct Verifying {
    ssa: Option<ir::Program>,
    unallocated: Option<x64::Program<VReg>>,
}

impl Verifying {
    /// Has seen nothing yet.
    pub fn new() -> Verifying {
        Verifying::default()
    }

    /// Keeps the program for the judge of the stage, if it has one.
    pub fn before(&mut self, stage: &'static Stage, state: &State) {
        match (stage.judge, state) {
            (Some(Judge::OutOfSsa(_)), State::Ir(program)) => {
                if program.functions[program.entry].form.is_ssa() {
                    self.ssa = Some(program.clone());
                }
            }
            (Some(Judge::Allocation(_)), State::Virtual(program)) => self.unallocated = Some(program.clone()),
            (Some(Judge::OutOfSsa(_) | Judge::Allocation(_)) | None, _) => {}
        }
    }

    /// The first thing that does not hold.
    pub fn after(&mut self, event: &Event<'_>) -> Result<(), Internal> {
        event.state.verify()?;
        match (event.stage.judge, event.state) {
            (Some(Judge::OutOfSsa(judge)), State::Ir(after)) => {
                // IR text may start behind SSA; then there is nothing to compare with.
                self.ssa.as_ref().map_or(Ok(()), |ssa| judge(ssa, after))
            }
            (Some(Judge::Allocation(judge)), State::Physical(after, _)) => {
                self.unallocated.take().map_or(Ok(()), |before| judge(&before, after))
            }
            (None, _) => Ok(()),
            (Some(Judge::OutOfSsa(_) | Judge::Allocation(_)), _) => {
                Err(Internal::new("", "the stage's judge cannot judge what the stage gives"))
            }
        }
    }
}
