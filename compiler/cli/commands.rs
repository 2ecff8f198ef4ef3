//! What each command does: reads the source, calls the pipeline, writes what was asked for.

use super::args::{self, Build, Check, Cli, CodeOptions, Command, Dump, EmitKind, Format, Output, Run, When};
use super::input::{self, Unreadable};
use super::output::{self, write_stderr, write_stdout};
use super::{Status, dump, process, render, tools};
use crate::emit;
use crate::pipeline::observe::{Observer, Recording, Timing};
use crate::pipeline::{self, Compiled, Failure, Options, State, stages};
use crate::support::diagnostics::Diagnostic;
use crate::support::span::Source;
use std::io::{self, IsTerminal};
use std::path::Path;

/// Runs the command.
pub fn run(cli: Cli) -> Status {
    let colour = Colour::choose(cli.color);
    let done = match cli.command {
        Command::Build(build) => run_build(&build, colour),
        Command::Run(run) => run_run(&run, colour),
        Command::Check(check) => run_check(&check, colour),
        Command::Dump(dump) => run_dump(&dump, colour),
        Command::Verify(verify) => tools::run_verify(&verify, colour),
        Command::Fuzz(fuzz) => tools::run_fuzz(&fuzz),
        Command::Reduce(reduce) => tools::run_reduce(&reduce, colour),
        Command::Bisect(bisect) => tools::run_bisect(&bisect, colour),
        Command::Explain(explain) => super::explain::run(&explain, colour),
        Command::Compare(compare) => super::compare::run(&compare, colour),
        Command::Explore(explore) => super::explore::run(&explore, colour),
    };
    match done {
        Ok(()) => Status::SUCCESS,
        Err(Stop::Usage(message)) => {
            write_stderr(&format!("error: {message}\n\nFor more information, try '--help'.\n"));
            Status::USAGE
        }
        Err(Stop::Error(message)) => {
            write_stderr(&format!("error: {message}\n"));
            Status::FAILURE
        }
        Err(Stop::Reported(text)) => {
            write_stderr(&text);
            Status::FAILURE
        }
        Err(Stop::Stdout(error)) => broken_stdout(&error),
        Err(Stop::Status(status)) => status,
    }
}

/// Writes a text to standard output.
pub fn print(text: &str) -> Status {
    match write_stdout(text.as_bytes()) {
        Ok(()) => Status::SUCCESS,
        Err(error) => broken_stdout(&error),
    }
}

fn broken_stdout(error: &io::Error) -> Status {
    if error.kind() == io::ErrorKind::BrokenPipe {
        process::die_of_broken_pipe();
    }
    write_stderr(&format!("error: cannot write to standard output: {}\n", output::describe(error)));
    Status::FAILURE
}

/// Why a command ends early.
pub enum Stop {
    /// Wrong usage, in a sentence.
    Usage(String),
    /// An error without a place in the source, in a sentence.
    Error(String),
    /// Errors as they are to be shown.
    Reported(String),
    /// Standard output does not take more.
    Stdout(io::Error),
    /// Everything has been said; this is the status.
    Status(Status),
}

/// Where to use colour.
#[derive(Clone, Copy)]
pub struct Colour {
    pub stdout: bool,
    pub stderr: bool,
}

impl Colour {
    fn choose(when: When) -> Colour {
        let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        match when {
            When::Always => Colour { stdout: true, stderr: true },
            When::Never => Colour { stdout: false, stderr: false },
            When::Auto => {
                Colour { stdout: !plain && io::stdout().is_terminal(), stderr: !plain && io::stderr().is_terminal() }
            }
        }
    }
}

/// Reads the source, or says what keeps it from being read.
pub fn read(path: &Path, colour: Colour) -> Result<Source, Stop> {
    input::read(path).map_err(|error| match error {
        Unreadable::File(message) => Stop::Error(message),
        Unreadable::NotUtf8(source, diagnostic) => {
            Stop::Reported(render::render(&[*diagnostic], &source, colour.stderr))
        }
    })
}

/// Compiles as far as `until`, shows warnings and times, and turns a failure into what is shown of it.
fn compile(
    source: &Source,
    options: &Options,
    until: &str,
    code: Option<&CodeOptions>,
    recording: Option<&mut Recording>,
    colour: Colour,
) -> Result<Compiled, Stop> {
    let mut timing = code.is_some_and(|code| code.time_passes).then(Timing::new);
    let mut observers: Vec<&mut dyn Observer> = Vec::new();
    if let Some(timing) = &mut timing {
        observers.push(timing);
    }
    if let Some(recording) = recording {
        observers.push(recording);
    }
    let result = pipeline::compile(source, options, until, &mut observers);
    if let Some(timing) = &timing {
        write_stderr(&timing.table());
    }
    match result {
        Ok(compiled) => {
            show(&compiled.warnings, source, colour);
            Ok(compiled)
        }
        Err(failure) => Err(failed(failure, source, colour)),
    }
}

fn show(diagnostics: &[Diagnostic], source: &Source, colour: Colour) {
    if !diagnostics.is_empty() {
        write_stderr(&render::render(diagnostics, source, colour.stderr));
    }
}

/// What is shown of a failed compilation.
pub fn failed(failure: Failure, source: &Source, colour: Colour) -> Stop {
    match failure {
        Failure::Source(diagnostics) => Stop::Reported(render::render(&diagnostics, source, colour.stderr)),
        Failure::Internal(internal) => Stop::Error(format!(
            "internal compiler error: {internal}\n  this is a fault of atlc, not of `{}`; please report it with the source and the command line",
            source.name
        )),
        Failure::Stage(message) => Stop::Error(message),
        Failure::NotConventional(why) => Stop::Error(format!(
            "`--out-of-ssa rename` needs conventional SSA form: {why}\n  at -O0, `--ssa-copies keep` gives it; the other ways out need none"
        )),
    }
}

fn run_build(build: &Build, colour: Colour) -> Result<(), Stop> {
    let mut options = build.code.options().map_err(Stop::Usage)?;
    let outputs = build.outputs().map_err(Stop::Usage)?;
    let stop_after = match &build.stop_after {
        Some(name) => Some(stages::named(name).ok_or_else(|| {
            let names: Vec<&str> = stages::all().iter().map(|stage| stage.name).collect();
            Stop::Usage(format!("`--stop-after {name}` is not known; the stages are {}", names.join(", ")))
        })?),
        None => None,
    };
    refuse_clashes(&build.file, &outputs)?;
    let source = read(&build.file, colour)?;
    if let Some(stage) = stop_after {
        compile(&source, &options, stage.name, Some(&build.code), None, colour)?;
        return Ok(());
    }

    // A function that the body does not reach may be what the object is made for; an executable has no use for it.
    options.keep_functions |= outputs.iter().all(|output| output.kind != EmitKind::Executable);
    let executable = outputs.iter().any(|output| output.kind == EmitKind::Executable);
    let object = outputs.iter().any(|output| output.kind == EmitKind::Object);
    let dumps: Vec<&'static str> = outputs.iter().filter_map(|output| output.kind.dump()).collect();
    let until = if object || build.linker.is_some() && executable {
        "object"
    } else if executable {
        "executable"
    } else {
        stages::last_of(&dumps, &options).unwrap_or("tokens")
    };
    let mut recording = Recording::of(&dumps);
    let compiled = match outputs.iter().all(|output| output.kind == EmitKind::Runtime) {
        true => None,
        false => Some(compile(&source, &options, until, Some(&build.code), Some(&mut recording), colour)?),
    };

    // Everything is made before anything is written, so that an error leaves all outputs as they were.
    let mut files: Vec<(&Output, Vec<u8>)> = Vec::new();
    for output in &outputs {
        let bytes = match &output.kind {
            EmitKind::Runtime => emit::RUNTIME.to_vec(),
            EmitKind::Object => object_of(compiled.as_ref()).to_vec(),
            EmitKind::Executable => match (compiled.as_ref().map(|compiled| &compiled.state), &build.linker) {
                (Some(State::Executable(bytes)), None) => bytes.clone(),
                (_, None) => pipeline::run::link_object(object_of(compiled.as_ref()))
                    .map_err(|failure| failed(failure, &source, colour))?,
                (_, Some(linker)) => {
                    let inputs = pipeline::run::link_inputs(object_of(compiled.as_ref()));
                    emit::external::link_with(linker, &inputs).map_err(|error| Stop::Error(error.to_string()))?
                }
            },
            EmitKind::Dump(name) => {
                let terminal = output.path.is_none() && colour.stdout;
                recorded_text(&recording, name, &source, terminal, None)?.into_bytes()
            }
        };
        files.push((output, bytes));
    }
    for (output, bytes) in files {
        match &output.path {
            None => write_stdout(&bytes).map_err(Stop::Stdout)?,
            Some(path) => output::write_file(path, &bytes, output.kind == EmitKind::Executable).map_err(Stop::Error)?,
        }
    }
    Ok(())
}

fn object_of(compiled: Option<&Compiled>) -> &[u8] {
    match compiled.map(|compiled| &compiled.state) {
        Some(State::Object(bytes)) => bytes,
        state => panic!("the pipeline was to stop at the object, not at {:?}", state.map(State::language)),
    }
}

/// No output may be the source, by whatever path, and no two outputs one file.
fn refuse_clashes(file: &Path, outputs: &[Output]) -> Result<(), Stop> {
    let paths: Vec<&Path> = outputs.iter().filter_map(|output| output.path.as_deref()).collect();
    for (index, path) in paths.iter().enumerate() {
        if output::same_file(path, file) {
            return Err(Stop::Error(format!("the output `{}` is the source itself", path.display())));
        }
        if paths[..index].iter().any(|other| output::resolved(other) == output::resolved(path)) {
            return Err(Stop::Usage(format!("two outputs go to `{}`", path.display())));
        }
    }
    Ok(())
}

fn run_run(run: &Run, colour: Colour) -> Result<(), Stop> {
    let options = run.code.options().map_err(Stop::Usage)?;
    let source = read(&run.file, colour)?;
    let compiled = compile(&source, &options, "executable", Some(&run.code), None, colour)?;
    let State::Executable(bytes) = compiled.state else {
        panic!("the pipeline was to make an executable, not {:?}", compiled.state.language());
    };
    let error = process::become_program(&bytes, run.file.as_os_str(), &run.arguments);
    Err(Stop::Error(format!("cannot run the program: {}", output::describe(&error))))
}

fn run_check(check: &Check, colour: Colour) -> Result<(), Stop> {
    let source = read(&check.file, colour)?;
    compile(&source, &Options::default(), "hir", None, None, colour)?;
    Ok(())
}

fn run_dump(arguments: &Dump, colour: Colour) -> Result<(), Stop> {
    let options = arguments.code.options().map_err(Stop::Usage)?;
    if arguments.diff.is_some() || arguments.only_changed || arguments.format != Format::Text {
        let source = read(&arguments.file, colour)?;
        let files = super::views::run(arguments, &source, &options, colour)?;
        return write_views(files, arguments);
    }
    let names = match arguments.all {
        true => stages::dump_names(),
        false => args::stage_names(&arguments.stage).map_err(Stop::Usage)?,
    };
    let source = read(&arguments.file, colour)?;
    let mut recording = Recording::of(&names);
    let until = stages::last_of(&names, &options).expect("clap demands a stage or --all");
    let compiled = compile(&source, &options, until, Some(&arguments.code), Some(&mut recording), colour);
    // What the stages before an error gave is worth seeing: it is why one dumps.
    let failure = match compiled {
        Ok(_) => None,
        Err(stop) if recording.is_empty() => return Err(stop),
        Err(stop) => Some(stop),
    };
    let missing: Vec<&str> = names.iter().copied().filter(|name| recording.get(name).is_none()).collect();
    if !arguments.all && failure.is_none() && !missing.is_empty() {
        return Err(Stop::Error(why_missing(&missing, &options, &source)));
    }
    if let Some(function) = &arguments.function {
        let known = recording.listings().any(|recorded| {
            recorded.listing.sections.iter().any(|section| section.function.as_ref() == Some(function))
        });
        if !known && failure.is_none() {
            return Err(Stop::Error(format!(
                "there is no function `{function}` in what is dumped (functions that the body does not reach are dropped, \
                 unless `-C keep-functions` is given)"
            )));
        }
    }

    let function = arguments.function.as_deref();
    let present: Vec<&'static str> = names.iter().copied().filter(|name| recording.get(name).is_some()).collect();
    match &arguments.output {
        Some(folder) => {
            output::make_folder(folder)?;
            for name in present {
                let text = recorded_text(&recording, name, &source, false, function)?;
                let path = folder.join(format!("{:03}.{name}", stages::dump_number(name)));
                if output::same_file(&path, &arguments.file) {
                    return Err(Stop::Error(format!("the output `{}` is the source itself", path.display())));
                }
                output::write_file(&path, text.as_bytes(), false)?;
            }
        }
        None => {
            let several = present.len() > 1;
            let mut all = String::new();
            for name in present {
                if several {
                    let comment = recording.get(name).map_or(";", |recorded| recorded.comment);
                    all.push_str(&format!("{comment} ---- {:03}.{name} ----\n", stages::dump_number(name)));
                }
                all.push_str(&recorded_text(&recording, name, &source, colour.stdout, function)?);
            }
            write_stdout(all.as_bytes()).map_err(Stop::Stdout)?;
        }
    }
    failure.map_or(Ok(()), Err)
}

/// Writes views to the folder of `-o`, or one after the other to standard output.
fn write_views(files: Vec<(String, String)>, arguments: &Dump) -> Result<(), Stop> {
    let Some(folder) = &arguments.output else {
        let all: String = files.into_iter().map(|(_, text)| text).collect();
        return write_stdout(all.as_bytes()).map_err(Stop::Stdout);
    };
    output::make_folder(folder)?;
    for (name, text) in files {
        let path = folder.join(name);
        if output::same_file(&path, &arguments.file) {
            return Err(Stop::Error(format!("the output `{}` is the source itself", path.display())));
        }
        output::write_file(&path, text.as_bytes(), false)?;
    }
    Ok(())
}

fn why_missing(names: &[&str], options: &Options, source: &Source) -> String {
    let list: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    let list = list.join(", ");
    match names.iter().filter_map(|name| stages::named(name)).map(|stage| stage.level).max() {
        Some(level) if level > options.level => {
            format!("there is no {list} at -O{}: it needs -O{level}", options.level)
        }
        Some(_) | None => format!("there is no {list} on the way of `{}`", source.name),
    }
}

fn recorded_text(
    recording: &Recording,
    name: &str,
    source: &Source,
    colour: bool,
    function: Option<&str>,
) -> Result<String, Stop> {
    let Some(recorded) = recording.get(name) else {
        return Err(Stop::Error(format!("there is no `{name}` on the way of `{}` with these options", source.name)));
    };
    let source = recorded.shows_source.then_some(source);
    Ok(dump::text(&recorded.listing, &dump::Style { source, comment: recorded.comment, colour, function }))
}

impl From<String> for Stop {
    fn from(message: String) -> Stop {
        Stop::Error(message)
    }
}
