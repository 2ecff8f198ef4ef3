//! `atlc explain`: the copy ledger, the hazard report and the reasons of φs, as text, JSON or notes on the source.
//!
//! ```text
//! main: x  line 8  %3 in b1, edge b2→b1  step 2 of 3  %3 = copy %4
//!     survives, rcx to rax: …
//! ```

use super::args::{Explain, What};
use super::commands::{Colour, Stop, failed, read};
use super::output::write_stdout;
use super::render;
use crate::explain::copies::{self, Fate, Row};
use crate::explain::hazards;
use crate::explain::phis::{self, Placement};
use crate::explain::trace;
use crate::ssa::OutOfSsa;
use crate::support::diagnostics::Diagnostic;
use crate::support::span::Source;
use serde::Serialize;
use std::fmt::Write;

/// The version of the JSON that this writes; docs/json.md has its schema.
pub const VERSION: u32 = 1;

/// Explains.
pub fn run(arguments: &Explain, colour: Colour) -> Result<(), Stop> {
    let options = arguments.code.options().map_err(Stop::Usage)?;
    if options.out_of_ssa != OutOfSsa::Split && arguments.what != What::Phis {
        return Err(Stop::Usage(format!(
            "`--out-of-ssa {}` with `explain`: it tells of edges, split where they must be, and their sequences; `atlc compare` shows the other ways beside that one",
            options.out_of_ssa.name()
        )));
    }
    let source = read(&arguments.file, colour)?;
    let trace = trace::trace(&source, &options).map_err(|failure| failed(failure, &source, colour))?;
    if let Some(name) = &arguments.function {
        // As written, or, where IR text begins behind that, as they leave SSA form.
        let programs = trace.variables.iter().chain(&trace.sequenced);
        let mut known = programs.flat_map(|program| program.functions.values());
        if !known.any(|function| function.name == *name) {
            return Err(Stop::Error(format!(
                "there is no function `{name}` (functions that the body does not reach are dropped, unless \
                 `-C keep-functions` is given)"
            )));
        }
    }
    let wanted = |function: &str| arguments.function.as_ref().is_none_or(|name| name == function);
    let text = match arguments.what {
        What::Copies => {
            let mut rows = copies::compute(&trace, &source);
            rows.retain(|row| wanted(&row.function));
            if arguments.surviving {
                rows.retain(|row| matches!(row.fate, Fate::Survives { .. }));
            }
            if arguments.json { json("copies", &source, &rows) } else { ledger(&rows) }
        }
        What::Hazards => {
            let mut hazards = hazards::compute(&trace);
            hazards.retain(|hazard| wanted(&hazard.function));
            match (arguments.json, arguments.notes) {
                (true, _) => json("hazards", &source, &hazards),
                (false, true) => notes(&hazards, &source, colour),
                (false, false) => report(&hazards),
            }
        }
        What::Phis => {
            let mut placements = Vec::new();
            let mut names: Vec<&str> = Vec::new();
            let functions = trace.variables.iter().flat_map(|program| program.functions.values());
            let functions: Vec<_> =
                functions.filter(|function| !function.layout.is_empty() && wanted(&function.name)).collect();
            for function in &functions {
                for (variable, data) in function.variables.iter() {
                    names.push(&data.name);
                    if arguments.variable.as_ref().is_none_or(|name| *name == data.name) {
                        let mut placement = phis::compute(function, variable);
                        if let Some(block) = &arguments.block {
                            placement.blocks.retain(|name, _| name == block);
                        }
                        placements.push(placement);
                    }
                }
            }
            if let (Some(name), true) = (&arguments.variable, placements.is_empty()) {
                names.sort_unstable();
                names.dedup();
                names.truncate(20);
                let there = if names.is_empty() { "none".to_string() } else { names.join(", ") };
                return Err(Stop::Error(format!("there is no variable `{name}`; there are: {there}")));
            }
            if let Some(name) = &arguments.block {
                let mut blocks = functions.iter().flat_map(|function| &function.layout);
                if !blocks.any(|block| block.to_string() == *name) {
                    return Err(Stop::Error(format!("there is no block `{name}` in the code over variables (`cfg`)")));
                }
            }
            if arguments.json { json("phis", &source, &placements) } else { reasons(&placements) }
        }
    };
    write_stdout(text.as_bytes()).map_err(Stop::Stdout)
}

#[derive(Serialize)]
struct Document<'a, T> {
    version: u32,
    file: &'a str,
    explains: &'static str,
    rows: &'a [T],
}

fn json<T: Serialize>(explains: &'static str, source: &Source, rows: &[T]) -> String {
    let document = Document { version: VERSION, file: &source.name, explains, rows };
    let mut text = serde_json::to_string_pretty(&document).expect("rows are made of texts and numbers");
    text.push('\n');
    text
}

fn ledger(rows: &[Row]) -> String {
    let mut text = String::new();
    for row in rows {
        let _ = write!(text, "{}:", row.function);
        if let Some(variable) = &row.variable {
            let _ = write!(text, " {variable}");
        }
        if let Some(line) = row.line {
            let _ = write!(text, "  line {line}");
        }
        match (&row.phi, &row.rescues, &row.block, &row.edge) {
            (Some(phi), _, Some(block), Some(edge)) => {
                let _ = write!(text, "  φ {phi} in {block}, edge {edge}");
            }
            (None, Some(victim), _, Some(edge)) => {
                let _ = write!(text, "  rescues {victim} from a cycle, edge {edge}");
            }
            (_, _, Some(block), _) => {
                let _ = write!(text, "  in {block}");
            }
            (_, _, None, _) => {}
        }
        if let Some(split) = &row.split {
            let _ = write!(text, " (split by {split})");
        }
        if let Some((step, of)) = row.step {
            let _ = write!(text, "  step {step} of {of}");
        }
        let _ = writeln!(text, "  {}", row.copy);
        let _ = writeln!(text, "    {}", row.fate.sentence());
        for line in &row.machine {
            let _ = writeln!(text, "    as `{line}`");
        }
    }
    let survive = rows.iter().filter(|row| matches!(row.fate, Fate::Survives { .. })).count();
    let _ = writeln!(text, "{} rows, {survive} still move something", rows.len());
    text
}

fn report(hazards: &[hazards::Hazard]) -> String {
    let mut text = String::new();
    for hazard in hazards {
        let line = hazard.line.map_or(String::new(), |line| format!(" line {line}:"));
        let _ = writeln!(text, "{}:{line} {}: {}", hazard.function, hazard.kind.name(), hazard.kind.sentence());
    }
    let _ = writeln!(text, "{} hazard{}", hazards.len(), if hazards.len() == 1 { "" } else { "s" });
    text
}

/// The hazards as notes on the lines that they are about.
fn notes(hazards: &[hazards::Hazard], source: &Source, colour: Colour) -> String {
    let notes: Vec<Diagnostic> = hazards
        .iter()
        .filter(|hazard| !hazard.span.is_none())
        .map(|hazard| Diagnostic::fact(hazard.span, hazard.kind.name()).label(hazard.kind.sentence()))
        .collect();
    render::render(&notes, source, colour.stdout)
}

fn reasons(placements: &[Placement]) -> String {
    let mut text = String::new();
    if placements.is_empty() {
        text.push_str("no variables\n");
    }
    for placement in placements {
        let _ = writeln!(
            text,
            "{}: {} is written in {}",
            placement.function,
            placement.variable,
            placement.defined_in.join(", ")
        );
        for (block, answer) in &placement.blocks {
            let _ = writeln!(text, "  {}", answer.sentence(&placement.variable, block));
        }
    }
    text
}
