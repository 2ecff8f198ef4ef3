//! Compiles one program in one way and compares everything that can run it with the reference.
//!
//! The reference is the interpreter of the HIR, or that of the IR for a program that is IR text. Compared are the IR that has
//! left SSA form, the allocated machine code in its final order, and the executable; where asked, what every stage leaves,
//! with all verifiers and judges, and what another compiler makes of the exported C.
//!
//! **in**: a program, an input, a configuration. **out**: the first thing that is wrong. Cost: a compilation, two
//! interpretations and a process.

use crate::execution::Limits;
use crate::ir::{self, Form};
use crate::pipeline::observe::{Event, Observer, Recording};
use crate::pipeline::{self, Failure, Language, Options, Stage, State};
use crate::ssa::OutOfSsa;
use crate::ssa::construct::{Copies, Pruning};
use crate::support::span::{Positions, Source};
use crate::verify::native::{Bounds, Runner};
use crate::verify::observe::{self, VerifyLimits};
use crate::verify::{Ended, Shown, Verifier};
use crate::{check, hir, regalloc, syntax};
use serde::Serialize;
use std::process::Command;
use std::time::Duration;

/// What kind of thing is wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// The compiler does not take the program.
    Rejected,
    /// A stage panicked, or a verifier or a judge found fault.
    Internal,
    /// Something that it became does not show what the program means.
    Miscompiled,
    /// Something ran too long.
    TimedOut,
}

/// What is wrong with a program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fault {
    /// The kind.
    pub kind: Kind,
    /// What was expected and what was found, in sentences.
    pub message: String,
}

/// How to compile and compare.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The optimization level.
    pub level: u8,
    /// How φs are placed.
    pub pruning: Pruning,
    /// Whether copies are values.
    pub copies: Copies,
    /// The way out of SSA form.
    pub out_of_ssa: OutOfSsa,
    /// How many registers; `None` for all.
    pub registers: Option<usize>,
    /// All values in memory.
    pub spill_all: bool,
    /// Run every stage, with all judges.
    pub every_stage: bool,
}

impl Config {
    /// The three ways, one for each level, in which a campaign compiles the program of a seed. All combinations come up in 54
    /// seeds in a row; renaming, which refuses some programs otherwise, only without optimization and with copies kept.
    pub fn of_seed(seed: u64) -> Vec<Config> {
        Config::of_way(seed % 54, seed / 54 % 6, seed.is_multiple_of(17))
    }

    /// Every way: all combinations for each level, with a number of registers that the seed chooses where they are few.
    pub fn all(seed: u64) -> Vec<Config> {
        let mut all = Vec::new();
        for way in 0..54 {
            for config in Config::of_way(way, seed % 6, false) {
                if config.out_of_ssa == OutOfSsa::Rename {
                    all.push(Config { out_of_ssa: OutOfSsa::Isolate, ..config.clone() });
                }
                all.push(config);
            }
        }
        all
    }

    fn of_way(way: u64, more_registers: u64, every_stage: bool) -> Vec<Config> {
        let copies = if (way / 3).is_multiple_of(2) { Copies::Fold } else { Copies::Keep };
        let config = |level| Config {
            level,
            pruning: [Pruning::Pruned, Pruning::SemiPruned, Pruning::Minimal][(way % 3) as usize],
            copies,
            out_of_ssa: match way / 18 {
                0 => OutOfSsa::Split,
                1 => OutOfSsa::Boissinot,
                _ if level == 0 && copies == Copies::Keep => OutOfSsa::Rename,
                _ => OutOfSsa::Isolate,
            },
            registers: (way / 6 % 3 == 1).then_some(regalloc::FEWEST_REGISTERS + more_registers as usize),
            spill_all: way / 6 % 3 == 2,
            every_stage,
        };
        [0, 1, 2].map(config).to_vec()
    }

    /// The flags that compile in this way.
    pub fn flags(&self) -> String {
        let mut flags = format!("-O{}", self.level);
        match self.pruning {
            Pruning::Minimal => flags.push_str(" --ssa minimal"),
            Pruning::SemiPruned => flags.push_str(" --ssa semi-pruned"),
            Pruning::Pruned => {}
        }
        if self.copies == Copies::Keep {
            flags.push_str(" --ssa-copies keep");
        }
        if self.out_of_ssa != OutOfSsa::Split {
            flags.push_str(&format!(" --out-of-ssa {}", self.out_of_ssa.name()));
        }
        if let Some(registers) = self.registers {
            flags.push_str(&format!(" -C regs={registers}"));
        }
        if self.spill_all {
            flags.push_str(" -C spill-all");
        }
        flags
    }

    /// The pipeline's options.
    pub fn options(&self) -> Options {
        let mut options = Options { level: self.level, threads: 1, spill_all: self.spill_all, ..Options::default() };
        options.ssa.pruning = self.pruning;
        options.ssa.copies = self.copies;
        options.out_of_ssa = self.out_of_ssa;
        options.verify |= self.every_stage;
        if let Some(registers) = self.registers {
            options.registers = regalloc::Options::with_registers(registers)
                .unwrap_or_else(|message| panic!("a configuration of a campaign is invalid: {message}"))
                .registers;
        }
        options
    }
}

/// Limits for the reference. A random program that takes more is left out: it would only take time.
pub const REFERENCE: Limits = Limits { steps: 500_000, output: 1 << 20, depth: 10_000, memory: 64 << 20 };

/// Limits for what programs become whose reference ends: machine code takes several steps for one of the IR.
pub const LIMITS: VerifyLimits = VerifyLimits {
    interpreted: Limits { steps: 50_000_000, output: 1 << 20, depth: 10_000, memory: 64 << 20 },
    native: Bounds { time: Duration::from_secs(10), output: 1 << 20 },
};

/// What the program means: what its reference interpreter shows.
pub fn reference(source: &Source, input: &[u8], limits: Limits) -> Result<Shown, Fault> {
    let rejected = |message: String| Fault { kind: Kind::Rejected, message };
    if source.name.ends_with(".ir") {
        let program = ir::parse::parse(source).map_err(|errors| rejected(format!("{:?}", errors.first())))?;
        ir::verify::verify(&program).map_err(|internal| rejected(internal.to_string()))?;
        return observe::run_ir(&program, input, limits).0.map_err(|internal| rejected(internal.to_string()));
    }
    let parsed = syntax::parse(source);
    let tree = match parsed.ast {
        Some(tree) if parsed.diagnostics.is_empty() => tree,
        Some(_) | None => return Err(rejected(format!("{:?}", parsed.diagnostics.first()))),
    };
    let program = check::run(&tree, source).map_err(|errors| rejected(format!("{:?}", errors.first())))?;
    let outcome = hir::interpret::run(&program, input, limits);
    Ok(Shown::of_outcome(outcome, &Positions::of_source(source)))
}

/// Runs the two last states that can be interpreted.
struct Last<'a> {
    input: &'a [u8],
    ran: Vec<(&'static str, Result<Shown, String>)>,
}

impl Observer for Last<'_> {
    fn before(&mut self, stage: &'static Stage, state: &State) {
        if stage.to == Language::Bytes
            && let State::Physical(program, _) = state
        {
            let ran = observe::run_machine(program, self.input, LIMITS.interpreted).0;
            self.ran.push(("allocated code", ran.map_err(|internal| internal.to_string())));
        }
    }

    fn after(&mut self, event: &Event<'_>) {
        if event.state.language() == Language::Ir(Form::Sequenced)
            && let State::Ir(program) = event.state
        {
            let ran = observe::run_ir(program, self.input, LIMITS.interpreted).0;
            self.ran.push((event.stage.name, ran.map_err(|internal| internal.to_string())));
        }
    }
}

/// Compiles the program in this way and compares. `against` is a C compiler.
pub fn run(
    source: &Source,
    input: &[u8],
    reference: &Shown,
    config: &Config,
    runner: &Runner,
    against: Option<&str>,
) -> Result<(), Fault> {
    let options = config.options();
    let mut last = Last { input, ran: Vec::new() };
    let mut verifier = Verifier::new(input, LIMITS, None);
    let mut recording = Recording::of(&["c"]);
    let mut observers: Vec<&mut dyn Observer> = vec![&mut last];
    if config.every_stage {
        observers.push(&mut verifier);
    }
    if against.is_some() {
        observers.push(&mut recording);
    }
    let compiled = pipeline::compile(source, &options, "executable", &mut observers);
    let compiled = compiled.map_err(|failure| match failure {
        Failure::Source(errors) => {
            Fault { kind: Kind::Rejected, message: format!("{:?}", errors.first().map(|error| &error.message)) }
        }
        Failure::Internal(internal) => Fault { kind: Kind::Internal, message: internal.to_string() },
        Failure::Stage(message) | Failure::NotConventional(message) => Fault { kind: Kind::Internal, message },
    })?;
    let report = verifier.into_report();
    if let Some(difference) = &report.difference {
        let message = format!(
            "after {} (before it: {}): {}; {}",
            difference.stage, difference.previous, difference.before, difference.after
        );
        return Err(Fault { kind: Kind::Miscompiled, message });
    }
    for (what, ran) in last.ran {
        match ran {
            Ok(shown) => compare(what, &shown, reference)?,
            Err(message) => {
                return Err(Fault { kind: Kind::Miscompiled, message: format!("{what} breaks: {message}") });
            }
        }
    }
    let State::Executable(bytes) = &compiled.state else {
        panic!("the pipeline was to make an executable");
    };
    let failed = |error: std::io::Error| Fault { kind: Kind::Internal, message: format!("cannot run: {error}") };
    compare("the executable", &runner.run(bytes, input, &LIMITS.native).map_err(failed)?, reference)?;
    if let (Some(compiler), Some(c)) = (against, recording.get("c")) {
        let text: String = c.listing.lines().map(|line| line.text() + "\n").collect();
        let shown = through_c(&text, compiler, input, runner)?;
        compare(&format!("{compiler}'s translation of the exported C"), &shown, reference)?;
    }
    Ok(())
}

/// Compiles C and runs it.
fn through_c(text: &str, compiler: &str, input: &[u8], runner: &Runner) -> Result<Shown, Fault> {
    let failed = |message: String| Fault { kind: Kind::Internal, message };
    let (file, program) = (runner.folder().join("export.c"), runner.folder().join("export"));
    std::fs::write(&file, text).map_err(|error| failed(format!("cannot write the C: {error}")))?;
    let made = Command::new(compiler).args(["-O2", "-w", "-o"]).arg(&program).arg(&file).output();
    let made = made.map_err(|error| failed(format!("cannot run {compiler}: {error}")))?;
    if !made.status.success() {
        let said = String::from_utf8_lossy(&made.stderr);
        return Err(failed(format!("{compiler} does not take the exported C: {}", said.lines().next().unwrap_or(""))));
    }
    let shown = runner.run_command(&mut Command::new(&program), input, &LIMITS.native);
    shown.map_err(|error| failed(format!("cannot run what {compiler} made: {error}")))
}

/// Does the run show what it should? Where the reference came to its end, the run must too.
fn compare(what: &str, shown: &Shown, reference: &Shown) -> Result<(), Fault> {
    if let (Ended::Cut(limit), false) = (&shown.end, reference.is_cut())
        && shown.agrees(reference)
    {
        return Err(Fault {
            kind: Kind::TimedOut,
            message: format!("{what} is cut off ({limit}), the reference ends"),
        });
    }
    if shown.agrees(reference) {
        return Ok(());
    }
    let message = match shown.first_difference(reference) {
        Some(at) => format!(
            "{what} {}, the reference {}",
            crate::verify::shown::excerpt(shown, at),
            crate::verify::shown::excerpt(reference, at)
        ),
        None => format!("{what} ends: {}; the reference: {}", shown.end, reference.end),
    };
    Err(Fault { kind: Kind::Miscompiled, message })
}
