//! What the testing commands do: `verify`, `fuzz`, `reduce`, `bisect`. The tools themselves are in `verify` and `fuzz`; here is
//! what they read and what is shown of what they find.

use super::Status;
use super::commands::{Colour, Stop, failed, read};
use super::output::{self, describe, write_stderr, write_stdout};
use super::progress::Progress;
use super::tool_args::{Bisect, Fuzz, Reduce, RunLimits, Verify};
use crate::execution::Limits;
use crate::fuzz::campaign::{self, Event, Finding, Settings};
use crate::fuzz::examine::{self, Config};
use crate::fuzz::{reduce, reduce_ir};
use crate::pipeline::observe::{self, Observer};
use crate::pipeline::{self, Failure, Options, State};
use crate::support::span::Source;
use crate::verify::bisect::{self, Attempt, Found, Pass};
use crate::verify::native::{Bounds, Runner};
use crate::verify::observe::{VerifyLimits, run_machine};
use crate::verify::{Verifier, mutants};
use std::io::{self, IsTerminal, Read};
use std::ops::Range;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// The program's input: standard input, if the program can read and the program itself is not there.
pub fn program_input(file: &Path, source: &Source) -> Result<Vec<u8>, Stop> {
    let reads = source.text.contains("read") || source.text.contains("eof");
    if file.as_os_str() == "-" || !reads || io::stdin().is_terminal() {
        return Ok(Vec::new());
    }
    let mut bytes = Vec::new();
    io::stdin()
        .lock()
        .read_to_end(&mut bytes)
        .map_err(|error| Stop::Error(format!("cannot read standard input: {}", describe(&error))))?;
    Ok(bytes)
}

fn limits(limits: &RunLimits) -> VerifyLimits {
    VerifyLimits {
        interpreted: Limits { steps: limits.steps, output: limits.output_limit, ..Limits::default() },
        native: Bounds { output: limits.output_limit, ..Bounds::default() },
    }
}

fn runner() -> Result<Runner, Stop> {
    Runner::new().map_err(|error| Stop::Error(format!("cannot make a temporary folder: {}", describe(&error))))
}

/// The version of the JSON that these commands write; docs/json.md has the schemas.
const VERSION: u32 = 1;

#[derive(serde::Serialize)]
struct Document<'a, T> {
    version: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    event: Option<&'static str>,
    #[serde(flatten)]
    what: &'a T,
}

fn line(event: Option<&'static str>, what: &impl serde::Serialize) -> String {
    let document = Document { version: VERSION, event, what };
    serde_json::to_string(&document).expect("reports have string keys only") + "\n"
}

fn json(what: &impl serde::Serialize) -> String {
    line(None, what)
}

/// `atlc verify`
pub fn run_verify(arguments: &Verify, colour: Colour) -> Result<(), Stop> {
    let options = arguments.code.options().map_err(Stop::Usage)?;
    let mutant = match &arguments.fault {
        None => None,
        Some(name) => Some(mutants::named(name).ok_or_else(|| {
            let names: Vec<&str> = mutants::all().map(|mutant| mutant.name).collect();
            Stop::Usage(format!("`--break {name}` is not known; the faults are {}", names.join(", ")))
        })?),
    };
    let source = read(&arguments.file, colour)?;
    let bytes = program_input(&arguments.file, &source)?;
    let mut verifier = Verifier::new(&bytes, limits(&arguments.limits), Some(runner()?));
    if let Some(mutant) = mutant {
        verifier = verifier.with_mutant(mutant);
    }
    let compiled = pipeline::compile(&source, &options, "executable", &mut [&mut verifier]);
    let report = verifier.into_report();
    if compiled.is_ok() || !report.runs.is_empty() {
        let text = if arguments.json { json(&report) } else { report.text() };
        write_stdout(text.as_bytes()).map_err(Stop::Stdout)?;
    }
    compiled.map_err(|failure| failed(failure, &source, colour))?;
    let good = match &report.broken {
        None => report.agrees(),
        Some(broken) => report.difference.is_some() || !broken.caught_by.is_empty(),
    };
    if good { Ok(()) } else { Err(Stop::Status(Status::FAILURE)) }
}

/// `A..B`, `A..` or `A`.
fn seeds(text: &str) -> Option<Range<u64>> {
    match text.split_once("..") {
        Some((start, "")) => Some(start.parse().ok()?..u64::MAX),
        Some((start, end)) => {
            let (start, end) = (start.parse().ok()?, end.parse().ok()?);
            (start <= end).then_some(start..end)
        }
        None => {
            let seed: u64 = text.parse().ok()?;
            Some(seed..seed.checked_add(1)?)
        }
    }
}

/// `atlc fuzz`
pub fn run_fuzz(arguments: &Fuzz) -> Result<(), Stop> {
    let range = seeds(&arguments.seeds)
        .ok_or_else(|| Stop::Usage(format!("`--seeds {}`: seeds are `A..B`, `A..` or one number", arguments.seeds)))?;
    let begin = Instant::now();
    let settings = Settings {
        seeds: range.clone(),
        jobs: arguments.jobs,
        until: arguments.time.map(|seconds| begin + Duration::from_secs(seconds)),
        against: arguments.against.clone(),
        every_way: arguments.every_way,
        reduce: true,
    };
    if let Some(folder) = &arguments.save {
        output::make_folder(folder).map_err(Stop::Error)?;
    }
    let progress = Progress::new((range.end != u64::MAX).then(|| range.end - range.start));
    // Findings that cannot be written, or standard output that takes no more: told at the end.
    let trouble: Mutex<Option<Stop>> = Mutex::new(None);
    let told = Mutex::new(Instant::now());
    let note = |stop: Stop| drop(trouble.lock().expect("no thread panics here").replace(stop));
    let tell = |event: Event<'_>| match event {
        Event::Done(counts) => {
            progress.set(&counts);
            let mut last = told.lock().expect("no thread panics here");
            if arguments.json && last.elapsed() >= Duration::from_secs(10) {
                *last = Instant::now();
                if let Err(error) = write_stdout(event_line("progress", &counts).as_bytes()) {
                    note(Stop::Stdout(error));
                }
            }
        }
        Event::Found(finding) => {
            if let Some(folder) = &arguments.save
                && let Err(message) = save(finding, folder)
            {
                note(Stop::Error(message));
            }
            if arguments.json {
                if let Err(error) = write_stdout(event_line("finding", finding).as_bytes()) {
                    note(Stop::Stdout(error));
                }
            } else {
                progress.suspend(|| write_stderr(&describe_finding(finding)));
            }
        }
    };
    let counts = campaign::run(&settings, &tell)
        .map_err(|error| Stop::Error(format!("the campaign cannot run: {}", describe(&error))))?;
    progress.finish();
    if let Some(stop) = trouble.into_inner().expect("no thread panics here") {
        return Err(stop);
    }
    let text = if arguments.json {
        event_line("end", &counts)
    } else {
        let seconds = begin.elapsed().as_secs_f64();
        format!(
            "{} seeds, {} programs, {} compilations in {seconds:.1} s ({:.0} programs/s): {} findings; next seed {}\n",
            counts.seeds,
            counts.programs,
            counts.compilations,
            counts.programs as f64 / seconds.max(1e-9),
            counts.findings,
            counts.next_seed
        )
    };
    write_stdout(text.as_bytes()).map_err(Stop::Stdout)?;
    if counts.findings == 0 { Ok(()) } else { Err(Stop::Status(Status::FAILURE)) }
}

fn event_line(event: &'static str, what: &impl serde::Serialize) -> String {
    line(Some(event), what)
}

fn describe_finding(finding: &Finding) -> String {
    let shown = finding.reduced.as_ref().unwrap_or(&finding.program);
    format!(
        "finding: {:?}, seed {} ({}), {}\n  {}\n{}\n",
        finding.kind, finding.seed, finding.language, finding.flags, finding.message, shown
    )
}

/// Writes `SEED.atl`, `SEED.input`, `SEED.reduced.atl` and `SEED.json`.
fn save(finding: &Finding, folder: &Path) -> Result<(), String> {
    let write = |extension: &str, text: &str| {
        output::write_file(&folder.join(format!("{}.{extension}", finding.seed)), text.as_bytes(), false)
    };
    write(finding.language, &finding.program)?;
    write("input", &finding.input)?;
    if let Some(reduced) = &finding.reduced {
        write(&format!("reduced.{}", finding.language), reduced)?;
    }
    write("json", &json(finding))
}

/// `atlc reduce`
pub fn run_reduce(arguments: &Reduce, colour: Colour) -> Result<(), Stop> {
    let options = arguments.code.options().map_err(Stop::Usage)?;
    let source = read(&arguments.file, colour)?;
    let bytes = program_input(&arguments.file, &source)?;
    let runner = runner()?;
    let extension = if source.name.ends_with(".ir") { "ir" } else { "atl" };
    let path = runner.folder().join(format!("candidate.{extension}"));
    let mut holds = |text: &str| -> bool {
        let candidate = Source::new(source.name.clone(), text);
        match (&arguments.check, &arguments.against) {
            (Some(command), _) => {
                let shell = |()| {
                    let mut shell = Command::new("sh");
                    shell.args(["-c", command, "sh"]).arg(&path).stdin(Stdio::null());
                    shell.stdout(Stdio::null()).stderr(Stdio::null()).status()
                };
                std::fs::write(&path, text).and_then(|()| shell(())).is_ok_and(|status| status.success())
            }
            (None, Some(compiler)) => {
                let config = config_of(&options);
                let reference = examine::reference(&candidate, &bytes, examine::LIMITS.interpreted);
                reference.is_ok_and(|reference| {
                    examine::run(&candidate, &bytes, &reference, &config, &runner, Some(compiler)).is_err()
                })
            }
            (None, None) => {
                let inner = match Runner::new() {
                    Ok(runner) => runner,
                    Err(_) => return false,
                };
                let mut verifier = Verifier::new(&bytes, VerifyLimits::default(), Some(inner));
                match pipeline::compile(&candidate, &options, "executable", &mut [&mut verifier]) {
                    Ok(_) => !verifier.into_report().agrees(),
                    Err(Failure::Internal(_)) => true,
                    Err(Failure::Source(_) | Failure::Stage(_) | Failure::NotConventional(_)) => false,
                }
            }
        }
    };
    let nothing = "the check does not hold of the program as it is, or the program has syntax errors";
    let run = if extension == "ir" { reduce_ir::run } else { reduce::run };
    let reduced = run(&source.text, arguments.tries, &mut holds).ok_or_else(|| Stop::Error(nothing.to_string()))?;
    let (before, after) = (source.text.lines().count(), reduced.text.lines().count());
    write_stderr(&format!("{before} lines became {after} in {} tries\n", reduced.tries));
    let text = reduced.text;
    match &arguments.output {
        Some(path) if output::same_file(path, &arguments.file) => {
            Err(Stop::Error(format!("the output `{}` is the source itself", path.display())))
        }
        Some(path) => output::write_file(path, text.as_bytes(), false).map_err(Stop::Error),
        None => write_stdout(text.as_bytes()).map_err(Stop::Stdout),
    }
}

fn config_of(options: &Options) -> Config {
    let all = crate::x64::RegSet::ALLOCATABLE;
    Config {
        level: options.level,
        pruning: options.ssa.pruning,
        copies: options.ssa.copies,
        out_of_ssa: options.out_of_ssa,
        registers: (options.registers != all).then(|| options.registers.len()),
        spill_all: options.spill_all,
        every_stage: false,
    }
}

/// `atlc bisect`
pub fn run_bisect(arguments: &Bisect, colour: Colour) -> Result<(), Stop> {
    let options = arguments.code.options().map_err(Stop::Usage)?;
    let source = read(&arguments.file, colour)?;
    let bytes = program_input(&arguments.file, &source)?;
    let limits = limits(&arguments.limits);
    let runner = runner()?;
    // Errors of the source are shown as always.
    if !source.name.ends_with(".ir") {
        pipeline::compile(&source, &options, "hir", &mut []).map_err(|failure| failed(failure, &source, colour))?;
    }
    let reference =
        examine::reference(&source, &bytes, limits.interpreted).map_err(|fault| Stop::Error(fault.message))?;
    let found = bisect::run(&reference, |limit| {
        let options = Options { opt_limit: Some(limit), ..options.clone() };
        attempt(&source, &bytes, &options, &limits, &runner)
    });
    let text = if arguments.json { json(&found) } else { found.text() };
    write_stdout(text.as_bytes()).map_err(Stop::Stdout)?;
    match found {
        Found::NoDifference => Ok(()),
        Found::NotInOptimization { .. } | Found::Change { .. } => Err(Stop::Status(Status::FAILURE)),
    }
}

/// Keeps what each optimization pass did.
#[derive(Default)]
struct Passes(Vec<Pass>);

impl Observer for Passes {
    fn after(&mut self, event: &observe::Event<'_>) {
        if let (pipeline::stages::Step::Optimize(_), State::Ir(program)) = (event.stage.step, event.state) {
            let changes = event.changes.unwrap_or(0) as u64;
            self.0.push(Pass { name: event.stage.name, changes, program: program.clone() });
        }
    }
}

fn attempt(source: &Source, bytes: &[u8], options: &Options, limits: &VerifyLimits, runner: &Runner) -> Attempt {
    let mut passes = Passes::default();
    let mut machine = Machine { bytes, limits: limits.interpreted, shown: None };
    let compiled = pipeline::compile(source, options, "executable", &mut [&mut passes, &mut machine]);
    let native = match compiled {
        Ok(compiled) => match &compiled.state {
            State::Executable(executable) => {
                runner.run(executable, bytes, &limits.native).map_err(|error| error.to_string())
            }
            state => Err(format!("the pipeline has made {:?}", state.language())),
        },
        Err(Failure::Internal(internal)) => Err(internal.to_string()),
        Err(Failure::Source(_)) => Err("the source has errors".to_string()),
        Err(Failure::Stage(message) | Failure::NotConventional(message)) => Err(message),
    };
    // The machine interpreter sees what the machine may forgive.
    let shown = match (native, machine.shown) {
        (Ok(native), Some(Ok(interpreted))) if native.is_cut() && !interpreted.is_cut() => Ok(interpreted),
        (Ok(_), Some(Err(message))) => Err(message),
        (native, _) => native,
    };
    Attempt { shown, passes: passes.0 }
}

/// Interprets the machine code as allocation leaves it.
struct Machine<'a> {
    bytes: &'a [u8],
    limits: Limits,
    shown: Option<Result<crate::verify::Shown, String>>,
}

impl Observer for Machine<'_> {
    fn after(&mut self, event: &observe::Event<'_>) {
        if let ("regalloc", State::Physical(program, _)) = (event.stage.name, event.state) {
            let ran = run_machine(program, self.bytes, self.limits).0;
            self.shown = Some(ran.map_err(|internal| internal.to_string()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_of_seeds() {
        assert_eq!(seeds("0..10"), Some(0..10));
        assert_eq!(seeds("7.."), Some(7..u64::MAX));
        assert_eq!(seeds("7"), Some(7..8));
        assert_eq!(seeds("9..3"), None);
        assert_eq!(seeds("x..3"), None);
        assert_eq!(seeds(""), None);
    }
}
