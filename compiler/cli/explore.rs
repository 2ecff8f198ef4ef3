//! `atlc explore`: writes the page, opens it, or serves it on the loopback interface and makes it again on each save. The
//! only door to `tiny_http`.

use super::args::Explore;
use super::commands::{Colour, Stop, failed, read};
use super::input;
use super::output::{self, describe, write_stderr, write_stdout};
use crate::execution::Limits;
use crate::explorer::page::{Row, Table};
use crate::explorer::{page, record};
use crate::pipeline::{Failure, Options};
use crate::support::span::Source;
use crate::verify::observe::{HARMLESS, VerifyLimits};
use crate::verify::{Report, spoil};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};
use tiny_http::{Header, Response, Server};

/// Writes or serves the page.
pub fn run(arguments: &Explore, colour: Colour) -> Result<(), Stop> {
    let options = arguments.code.options().map_err(Stop::Usage)?;
    if arguments.watch {
        return watch(arguments, &options, colour);
    }
    let html = make(arguments, &options, false, colour)?;
    let path = match &arguments.output {
        Some(path) if path.as_os_str() == "-" => return write_stdout(html.as_bytes()).map_err(Stop::Stdout),
        Some(path) => path.clone(),
        None if arguments.file.as_os_str() == "-" => PathBuf::from("a.html"),
        None => arguments.file.with_extension("html"),
    };
    if output::same_file(&path, &arguments.file) {
        return Err(Stop::Error(format!("the output `{}` is the source itself", path.display())));
    }
    output::write_file(&path, html.as_bytes(), false).map_err(Stop::Error)?;
    write_stderr(&format!("wrote {}\n", path.display()));
    if arguments.open { open(&path.to_string_lossy()) } else { Ok(()) }
}

fn make(arguments: &Explore, options: &Options, watch: bool, colour: Colour) -> Result<String, Stop> {
    let source = read(&arguments.file, colour)?;
    let input = arguments.input.as_deref().map_or(Ok(Vec::new()), input::read_bytes)?;
    let mut page = record::page(&source, options, watch).map_err(|failure| failed(failure, &source, colour))?;
    page.tables.push(faults(&source, options, &input).map_err(|failure| failed(failure, &source, colour))?);
    Ok(page::render(&page))
}

/// Programs of more lines are not run for the table of faults: it would keep the page waiting.
const MOST_LINES: usize = 600;

/// What the classic mistakes on the way out of SSA form would do to the program.
fn faults(source: &Source, options: &Options, input: &[u8]) -> Result<Table, Failure> {
    let limits = Limits { steps: 200_000, output: 1 << 16, depth: 10_000, memory: 64 << 20 };
    let limits = VerifyLimits { interpreted: limits, ..VerifyLimits::default() };
    let small = source.text.lines().count() <= MOST_LINES;
    let reports = if small { spoil::run(source, options, input, limits)? } else { Vec::new() };
    Ok(Table {
        id: "faults",
        title: "Broken on purpose",
        note:
            "What each classic mistake on the way out of SSA form would do to this program, in the interpreters alone; \
               `atlc verify --break FAULT` tells more."
                .to_string(),
        empty: if small {
            "This program has no place for any of the classic mistakes."
        } else {
            "Left out for long programs: `atlc verify --break FAULT` shows it."
        },
        columns: vec!["fault", "what is done wrong", "the program", "correct", "first difference", "caught by"],
        rows: reports.iter().filter_map(fault_row).collect(),
    })
}

/// The row of a fault; none if the program has no place for it.
fn fault_row(report: &Report) -> Option<Row> {
    let broken = report.broken.as_ref().filter(|broken| broken.site.is_some())?;
    let (shows, correct, place) = match &report.difference {
        None => (HARMLESS.to_string(), String::new(), String::new()),
        Some(difference) => {
            let place = difference.parting.wrong.as_ref().map_or(String::new(), |wrong| {
                let (place, name) = (&wrong.place, &wrong.name);
                format!("{} of {}: {name} is {}, not {}", place.block, place.function, wrong.after, wrong.before)
            });
            (difference.would_show(), difference.before.clone(), place)
        }
    };
    let (fault, title, caught) = (broken.mutant.to_string(), broken.title.to_string(), report.caught_by().join(", "));
    Some(Row {
        function: String::new(),
        cells: vec![fault, title, shows, correct, place, caught],
        entities: Vec::new(),
    })
}

/// Asks the desktop to open a file or an address.
fn open(what: &str) -> Result<(), Stop> {
    let started =
        Command::new("xdg-open").arg(what).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    match started {
        Ok(_) => Ok(()),
        Err(error) => Err(Stop::Error(format!("cannot open {what} with `xdg-open`: {}", describe(&error)))),
    }
}

/// Serves `/` and `/version` until the process is ended.
fn watch(arguments: &Explore, options: &Options, colour: Colour) -> Result<(), Stop> {
    if arguments.file.as_os_str() == "-" {
        return Err(Stop::Usage("`--watch` needs a file: standard input does not change".to_string()));
    }
    let server = Server::http(("127.0.0.1", arguments.port))
        .map_err(|error| Stop::Error(format!("cannot serve on port {}: {error}", arguments.port)))?;
    let address = format!("http://{}/", server.server_addr());
    let mut version = 0_u64;
    let mut seen = changed(&arguments.file);
    let mut html = make(arguments, options, true, colour)?;
    write_stderr(&format!("serving {} at {address}, until interrupted\n", arguments.file.display()));
    if arguments.open {
        open(&address)?;
    }
    loop {
        let request = server
            .recv_timeout(Duration::from_millis(250))
            .map_err(|error| Stop::Error(format!("cannot serve: {}", describe(&error))))?;
        let now = changed(&arguments.file);
        if now != seen && now.is_some() {
            seen = now;
            // A program with errors leaves the last good page; the errors stand on the terminal.
            match make(arguments, options, true, colour) {
                Ok(page) => {
                    html = page;
                    version += 1;
                    write_stderr("made the page again\n");
                }
                Err(Stop::Reported(text) | Stop::Error(text)) => write_stderr(&text),
                Err(stop @ (Stop::Usage(_) | Stop::Stdout(_) | Stop::Status(_))) => return Err(stop),
            }
        }
        if let Some(request) = request {
            let (body, kind, status) = match request.url() {
                "/" => (html.clone(), "text/html; charset=utf-8", 200),
                "/version" => (version.to_string(), "text/plain", 200),
                _ => ("there is only the page\n".to_string(), "text/plain", 404),
            };
            let header: Header = format!("Content-Type: {kind}").parse().expect("a header is a name and a value");
            // A reader that has gone is no reason to stop serving.
            let _ = request.respond(Response::from_string(body).with_status_code(status).with_header(header));
        }
    }
}

fn changed(file: &Path) -> Option<SystemTime> {
    std::fs::metadata(file).and_then(|metadata| metadata.modified()).ok()
}
