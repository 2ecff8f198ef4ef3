//! Runs a program at every stage of its compilation and compares each run with those before.
//!
//! A [`Verifier`] watches the pipeline's loop. After each stage that leaves something runnable (HIR, IR, machine code, the
//! executable) it runs that on the same input, counts, and compares with the run that has shown most so far. At the first
//! difference it says where the runs part (see `locate`). With a mutant, the result of the mutant's stage is spoiled before it
//! is run, at the site that shows most, and the judges are asked as well; the compilation itself goes on unspoiled.
//!
//! ```text
//! stage             instructions  copies …   shows
//! parallel-copies             52      12     2 lines, exit status 0
//! sequence                    54      14     2 lines, exit status 0     <- differs
//! ```
//!
//! **in**: the events of a compilation. **out**: a [`Report`]. Cost: a run per stage, under limits, and a copy of the program.

use super::locate::{self, Parting, Program};
use super::mutants::{self, Mutant, Past};
use super::native::{Bounds, Runner};
use super::shown::{self, Shown};
use crate::execution::Limits;
use crate::hir;
use crate::ir::{self, Form};
use crate::pipeline::observe::{Event, Observer};
use crate::pipeline::{Language, State};
use crate::support::internal::Internal;
use crate::support::span::Positions;
use crate::x64;
use serde::Serialize;
use std::fmt::Write;

/// What a run executed, where that is counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Counts {
    /// Instructions, with terminators and each copy of a parallel copy.
    pub instructions: u64,
    /// Copies between values or registers.
    pub copies: u64,
    /// Operands that φs took on.
    pub phis: u64,
    /// Array elements (and lengths, in machine code) read.
    pub loads: u64,
    /// Array elements written.
    pub stores: u64,
    /// Jumps, conditional and not.
    pub branches: u64,
    /// Calls, in machine code those of the runtime included.
    pub calls: u64,
    /// Reads of stack slots.
    pub reloads: u64,
    /// Writes of stack slots.
    pub spills: u64,
}

/// The run of what a stage left.
#[derive(Clone, Debug, Serialize)]
pub struct StageRun {
    /// The stage.
    pub stage: &'static str,
    /// How the run ended, in words; for a broken invariant what broke.
    pub end: String,
    /// Lines of output.
    pub lines: usize,
    /// What it executed.
    pub counts: Option<Counts>,
    /// Does it show what the others before it show?
    pub agrees: bool,
    /// Was it cut off by a limit?
    pub cut: bool,
}

/// The first stage whose run differs.
#[derive(Clone, Debug, Serialize)]
pub struct Difference {
    /// The stage.
    pub stage: &'static str,
    /// The stage before it.
    pub previous: &'static str,
    /// What was shown before it, where they differ.
    pub before: String,
    /// What is shown after it.
    pub after: String,
    /// Where the runs part.
    pub parting: Parting,
}

/// What became of a fault that was put in.
#[derive(Clone, Debug, Serialize)]
pub struct Broken {
    /// The mutant's name.
    pub mutant: &'static str,
    /// What is done wrong.
    pub title: &'static str,
    /// The stage that it spoils.
    pub stage: &'static str,
    /// The number of the site in this program; `None` if the program has none.
    pub site: Option<usize>,
    /// Who finds fault without running it, and what they say.
    pub caught_by: Vec<Caught>,
}

/// A judge with what it says.
#[derive(Clone, Debug, Serialize)]
pub struct Caught {
    /// The judge.
    pub judge: &'static str,
    /// What it says.
    pub message: String,
}

/// Everything that was found.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Report {
    /// The runs, in order.
    pub runs: Vec<StageRun>,
    /// The first difference.
    pub difference: Option<Difference>,
    /// The fault that was put in.
    pub broken: Option<Broken>,
}

/// What bounds the runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct VerifyLimits {
    /// The interpreters'.
    pub interpreted: Limits,
    /// The executable's.
    pub native: Bounds,
}

/// How many sites of a mutant are tried for one that shows.
const SITES: usize = 200;

/// Runs what stages leave.
pub struct Verifier<'a> {
    input: &'a [u8],
    limits: VerifyLimits,
    /// Runs executables, if they are to be run.
    runner: Option<Runner>,
    mutant: Option<&'static Mutant>,
    report: Report,
    /// The run that has shown most.
    reference: Option<Shown>,
    previous: Option<(&'static str, Option<Program>)>,
    past: Past,
}

/// A run: what it showed, or what broke.
type Ran = (Result<Shown, Internal>, Option<Counts>);

impl<'a> Verifier<'a> {
    /// Will run everything on this input; executables only with a runner.
    pub fn new(input: &'a [u8], limits: VerifyLimits, runner: Option<Runner>) -> Verifier<'a> {
        Verifier {
            input,
            limits,
            runner,
            mutant: None,
            report: Report::default(),
            reference: None,
            previous: None,
            past: Past::default(),
        }
    }

    /// The same, with a fault put in.
    pub fn with_mutant(self, mutant: &'static Mutant) -> Verifier<'a> {
        let broken =
            Broken { mutant: mutant.name, title: mutant.title, stage: mutant.stage, site: None, caught_by: Vec::new() };
        let report = Report { broken: Some(broken), ..self.report };
        Verifier { mutant: Some(mutant), report, ..self }
    }

    /// What was found.
    pub fn into_report(self) -> Report {
        self.report
    }

    /// Records a run and compares it.
    fn record(&mut self, stage: &'static str, (result, counts): Ran, program: Option<Program>) {
        let (end, lines, cut) = match &result {
            Ok(shown) => {
                let lines = shown.output.iter().filter(|byte| **byte == b'\n').count();
                (shown.end.to_string(), lines, shown.is_cut())
            }
            Err(internal) => (format!("broken: {internal}"), 0, false),
        };
        let agrees = match (&result, &self.reference) {
            (Ok(shown), Some(reference)) => shown.agrees(reference),
            (Ok(_), None) => true,
            (Err(_), _) => false,
        };
        self.report.runs.push(StageRun { stage, end, lines, counts, agrees, cut });
        if !agrees && self.report.difference.is_none() {
            self.report.difference = Some(self.difference(stage, &result, program.as_ref()));
        }
        if let Ok(shown) = result
            && agrees
        {
            let fuller = |reference: &Shown| {
                reference.is_cut() && (!shown.is_cut() || shown.output.len() > reference.output.len())
            };
            if self.reference.as_ref().is_none_or(fuller) {
                self.reference = Some(shown);
            }
        }
    }

    fn difference(
        &self,
        stage: &'static str,
        result: &Result<Shown, Internal>,
        program: Option<&Program>,
    ) -> Difference {
        let (previous, before) = match &self.previous {
            Some((previous, program)) => (*previous, program.as_ref()),
            None => ("", None),
        };
        let reference = self.reference.clone().unwrap_or(Shown { output: Vec::new(), end: shown::Ended::Normal });
        let (at, after) = match result {
            Ok(shown) => {
                let at = shown.first_difference(&reference);
                (at, shown::excerpt(shown, at.unwrap_or(shown.output.len())))
            }
            Err(internal) => (None, format!("breaks an invariant: {internal}")),
        };
        let parting = program.map_or_else(Parting::default, |program| {
            locate::run(before, program, self.input, self.limits.interpreted, at)
        });
        let before = match (at, result) {
            (None, Err(_)) => format!("ends: {}", reference.end),
            (at, _) => shown::excerpt(&reference, at.unwrap_or(reference.output.len())),
        };
        Difference { stage, previous, before, after, parting }
    }

    /// The program with the fault, at the site that shows most: another output, else a broken invariant, else a judge.
    fn break_it(&mut self, mutant: &Mutant, program: &Program) -> Option<Program> {
        let reference = self.reference.clone();
        let mut best: Option<(u8, usize, Program)> = None;
        for site in 0..SITES {
            let Some(mutated) = mutant.apply(&self.past, program, site) else { break };
            let shows = match (run_program(&mutated, self.input, self.limits.interpreted).0, &reference) {
                (Ok(shown), Some(reference)) if shown.is_cut() && !reference.is_cut() => 1,
                (Ok(shown), Some(reference)) if !shown.agrees(reference) => 3,
                (Err(_), _) => 2,
                (Ok(_), _) => u8::from(!mutants::judges(&self.past, &mutated).is_empty()),
            };
            if best.as_ref().is_none_or(|(before, _, _)| shows > *before) {
                best = Some((shows, site, mutated));
            }
            if shows == 3 {
                break;
            }
        }
        let (_, site, mutated) = best?;
        let say = |(judge, message)| Caught { judge, message };
        let caught_by = mutants::judges(&self.past, &mutated).into_iter().map(say).collect();
        if let Some(broken) = &mut self.report.broken {
            broken.site = Some(site);
            broken.caught_by = caught_by;
        }
        Some(mutated)
    }
}

/// Runs IR or machine code.
pub fn run_program(program: &Program, input: &[u8], limits: Limits) -> (Result<Shown, Internal>, Option<Counts>) {
    match program {
        Program::Ir(program) => run_ir(program, input, limits),
        Program::Virtual(program) => run_machine(program, input, limits),
        Program::Physical(program) => run_machine(program, input, limits),
    }
}

/// Runs IR.
pub fn run_ir(program: &ir::Program, input: &[u8], limits: Limits) -> Ran {
    match ir::interpret::run(program, input, limits) {
        Ok(run) => {
            let counts = Counts {
                instructions: run.counts.instructions,
                copies: run.counts.copies,
                phis: run.counts.phis,
                loads: run.counts.loads,
                stores: run.counts.stores,
                branches: run.counts.branches + run.counts.jumps,
                calls: run.counts.calls,
                ..Counts::default()
            };
            (Ok(Shown::of_outcome(run.outcome, &program.positions)), Some(counts))
        }
        Err(internal) => (Err(internal), None),
    }
}

/// Runs machine code.
pub fn run_machine<R: x64::Reg>(program: &x64::Program<R>, input: &[u8], limits: Limits) -> Ran {
    match x64::interpret::run(program, input, limits) {
        Ok(run) => {
            let counts = Counts {
                instructions: run.counts.instructions,
                copies: run.counts.moves,
                phis: 0,
                loads: run.counts.loads,
                stores: run.counts.stores,
                branches: run.counts.branches,
                calls: run.counts.calls,
                reloads: run.counts.reloads,
                spills: run.counts.spills,
            };
            (Ok(Shown::of_outcome(run.outcome, &program.positions)), Some(counts))
        }
        Err(internal) => (Err(internal), None),
    }
}

impl Observer for Verifier<'_> {
    fn after(&mut self, event: &Event<'_>) {
        let stage = event.stage.name;
        let program = match event.state {
            State::Hir(program) => {
                let outcome = hir::interpret::run(program, self.input, self.limits.interpreted);
                let shown = Shown::of_outcome(outcome, &Positions::of_source(event.source));
                self.record(stage, (Ok(shown), None), None);
                self.previous = Some((stage, None));
                return;
            }
            State::Executable(bytes) => {
                if let Some(runner) = &self.runner {
                    let ran = runner.run(bytes, self.input, &self.limits.native);
                    let ran = ran.map_err(|error| Internal::new("", format!("the executable cannot be run: {error}")));
                    self.record(stage, (ran, None), None);
                }
                return;
            }
            State::Ir(program) => Program::Ir(program.clone()),
            State::Virtual(program) => Program::Virtual(program.clone()),
            State::Physical(program, _) => Program::Physical(program.clone()),
            State::Source | State::Tokens(_) | State::Ast(_) | State::Bytes(_) | State::Object(_) => return,
        };
        if self.mutant.is_some() {
            self.remember(event.state.language(), &program);
        }
        let broken = match self.mutant {
            Some(mutant) if mutant.stage == stage || mutant.of_ssa() && event.last_ssa => {
                if let Some(broken) = &mut self.report.broken {
                    broken.stage = stage;
                }
                self.break_it(mutant, &program)
            }
            Some(_) | None => None,
        };
        let run = broken.unwrap_or(program);
        let ran = run_program(&run, self.input, self.limits.interpreted);
        // What comes after a broken stage was made from what it should have been, so it is compared with that.
        self.record(stage, ran, Some(run.clone()));
        self.previous = Some((stage, Some(run)));
    }
}

impl Verifier<'_> {
    /// Keeps SSA form that need not be run.
    pub(super) fn keep_ssa(&mut self, program: &ir::Program) {
        self.past.ssa = Some(program.clone());
    }

    /// Keeps what a mutant or a judge will want.
    fn remember(&mut self, language: Language, program: &Program) {
        match (language, program) {
            (Language::Ir(Form::Ssa), Program::Ir(program)) => self.past.ssa = Some(program.clone()),
            (Language::Ir(Form::SplitSsa), Program::Ir(program)) => self.past.split = Some(program.clone()),
            (Language::Ir(Form::ParallelCopies), Program::Ir(program)) => self.past.parallel = Some(program.clone()),
            (Language::Virtual, Program::Virtual(program)) => self.past.unallocated = Some(program.clone()),
            (_, Program::Ir(_) | Program::Virtual(_) | Program::Physical(_)) => {}
        }
    }
}

impl Report {
    /// Did all runs show the same?
    pub fn agrees(&self) -> bool {
        self.difference.is_none() && self.runs.iter().all(|run| run.agrees)
    }

    /// The report for people.
    pub fn text(&self) -> String {
        let mut text = format!(
            "{:<20} {:>13} {:>10} {:>8} {:>10} {:>10} {:>10} {:>8} {:>8}  {}\n",
            "stage", "instructions", "copies", "phis", "loads", "stores", "branches", "reloads", "spills", "shows"
        );
        for run in &self.runs {
            let count =
                |pick: fn(&Counts) -> u64| run.counts.map_or("-".to_string(), |counts| pick(&counts).to_string());
            let lines = if run.lines == 1 { "1 line".to_string() } else { format!("{} lines", run.lines) };
            let mark = if run.agrees { "" } else { "  <- differs" };
            let _ = writeln!(
                text,
                "{:<20} {:>13} {:>10} {:>8} {:>10} {:>10} {:>10} {:>8} {:>8}  {lines}, {}{mark}",
                run.stage,
                count(|counts| counts.instructions),
                count(|counts| counts.copies),
                count(|counts| counts.phis),
                count(|counts| counts.loads),
                count(|counts| counts.stores),
                count(|counts| counts.branches),
                count(|counts| counts.reloads),
                count(|counts| counts.spills),
                run.end,
            );
        }
        match &self.broken {
            Some(broken) => broken.describe(self.difference.as_ref(), &mut text),
            None => match &self.difference {
                Some(difference) => difference.describe(&mut text),
                None if self.runs.iter().any(|run| run.cut) => {
                    text.push_str("\nall runs agree as far as they went: some were cut off by a limit\n");
                }
                None => text.push_str("\nall runs agree\n"),
            },
        }
        text
    }
}

impl Report {
    /// Who finds fault with a program that was broken on purpose.
    pub fn caught_by(&self) -> Vec<&'static str> {
        let judges = self.broken.iter().flat_map(|broken| &broken.caught_by).map(|caught| caught.judge);
        judges.chain(self.difference.iter().map(|_| COMPARISON)).collect()
    }
}

/// What catches a fault by running the program.
const COMPARISON: &str = "the comparison of runs";

/// What is said of a fault that does not show.
pub const HARMLESS: &str = "shows the same all the same";

impl Difference {
    /// What is shown after the stage, where it was broken on purpose.
    pub fn would_show(&self) -> String {
        self.after.replacen("prints", "would print", 1)
    }

    fn describe(&self, text: &mut String) {
        let _ = writeln!(text, "\nfirst difference: after {} (before it: {})", self.stage, self.previous);
        let _ = writeln!(text, "  before: {}", self.before);
        let _ = writeln!(text, "  after:  {}", self.after);
        self.describe_parting(text);
    }

    fn describe_parting(&self, text: &mut String) {
        if let Some(wrong) = &self.parting.wrong {
            let _ = writeln!(
                text,
                "  first difference at {} of {}: {} is {}, before it was {}\n    {}",
                wrong.place.block, wrong.place.function, wrong.name, wrong.after, wrong.before, wrong.place.instruction
            );
        }
        for (when, place) in [("before", &self.parting.printed_before), ("after", &self.parting.printed_after)] {
            if let Some(place) = place {
                let _ =
                    writeln!(text, "  printed {when} by {} of {}: {}", place.block, place.function, place.instruction);
            }
        }
    }
}

impl Broken {
    fn describe(&self, difference: Option<&Difference>, text: &mut String) {
        let _ = writeln!(text, "\nbroken on purpose after {}: {} ({})", self.stage, self.title, self.mutant);
        if self.site.is_none() {
            text.push_str("  this program has no place for it\n");
            return;
        }
        match difference {
            Some(difference) => {
                let _ = writeln!(text, "  {}, correct is: {}", difference.would_show(), difference.before);
                difference.describe_parting(text);
            }
            None => {
                let _ = writeln!(text, "  this program {HARMLESS}");
            }
        }
        for caught in &self.caught_by {
            let _ = writeln!(text, "  caught by {}: {}", caught.judge, caught.message);
        }
        if difference.is_some() {
            let _ = writeln!(text, "  caught by {COMPARISON}");
        }
    }
}
