//! `atlc compare`: the ways into SSA form and out of it side by side, as a table or as JSON.
//!
//! ```text
//! SSA          copies  out of SSA   φs  inserted …
//! pruned       fold    split         3         6 …
//! pruned       fold    rename      not conventional: x %5 and y %6 overlap in b1, at its start (function main)
//! ```

use super::args::Compare;
use super::commands::{Colour, Stop, failed, read};
use super::input;
use super::output::write_stdout;
use super::tools::program_input;
use crate::execution::Limits;
use crate::explain::compare::{self, Comparison, Counts, Row};
use std::fmt::Write;

/// Compares.
pub fn run(arguments: &Compare, colour: Colour) -> Result<(), Stop> {
    let options = arguments.options().map_err(Stop::Usage)?;
    let source = read(&arguments.file, colour)?;
    let input = match &arguments.input {
        Some(path) => input::read_bytes(path)?,
        None => program_input(&arguments.file, &source)?,
    };
    let limits = Limits { steps: arguments.steps, ..Limits::default() };
    let comparison =
        compare::compute(&source, &options, &input, limits).map_err(|failure| failed(failure, &source, colour))?;
    let text = if arguments.json { comparison.to_json() } else { table(&comparison) };
    write_stdout(text.as_bytes()).map_err(Stop::Stdout)
}

/// The widest line.
const WIDTH: usize = 110;

/// The widths of the first three columns with the space behind them.
const KEYS: [usize; 3] = [12, 8, 10];

const LEGEND: &str = "\
inserted: copies that the way out is made of; coalesced: by the method, by the register allocator
temps: temporaries that break cycles; blocks: on split edges; copies: in the code out of SSA form
survive: of those, the ones that still move a value in machine code
executed: copies of that code, moves between registers and slots of machine code, in a run on the input;
- where the run is too long
";

fn table(comparison: &Comparison) -> String {
    let mut text = format!("{} at -O{}", comparison.file, comparison.level);
    match comparison.end {
        "error" => text.push_str("; the program ends with a run-time error"),
        "limit" => text.push_str("; the program runs too long to be counted"),
        _ => {}
    }
    text.push_str("\n\n");
    let head = |text: &mut String, cells: [&str; 14]| line(text, &cells.map(str::to_string));
    head(&mut text, ["", "", "", "", "", "coalesced", "", "", "", "", "", "executed", "", "code"]);
    head(
        &mut text,
        [
            "SSA", "copies", "out of", "φs", "inserted", "method", "alloc", "temps", "blocks", "copies", "survive",
            "copies", "moves", "bytes",
        ],
    );
    let mut group = comparison.rows.first().map(|row| row.ssa);
    for row in &comparison.rows {
        if group.replace(row.ssa) != Some(row.ssa) {
            text.push('\n');
        }
        match (&row.counts, &row.refused) {
            (Some(counts), _) => line(&mut text, &cells(row, counts)),
            (None, reason) => refusal(&mut text, row, reason.as_deref().unwrap_or("not built")),
        }
    }
    text.push('\n');
    text.push_str(LEGEND);
    text
}

fn cells(row: &Row, counts: &Counts) -> [String; 14] {
    let ran = |count: Option<u64>| count.map_or("-".to_string(), |count| count.to_string());
    [
        row.ssa.to_string(),
        row.ssa_copies.to_string(),
        row.out_of_ssa.to_string(),
        counts.phis.to_string(),
        counts.inserted.to_string(),
        counts.coalesced_by_method.to_string(),
        counts.coalesced_by_allocator.to_string(),
        counts.temporaries.to_string(),
        counts.split_blocks.to_string(),
        counts.copies.to_string(),
        counts.surviving.to_string(),
        ran(counts.executed_copies),
        ran(counts.executed_moves),
        counts.code_bytes.to_string(),
    ]
}

/// One line of the table.
fn line(text: &mut String, cells: &[String; 14]) {
    const WIDTHS: [usize; 11] = [4, 9, 10, 6, 6, 7, 7, 8, 9, 7, 7];
    let mut line = String::new();
    for (cell, width) in cells.iter().zip(KEYS) {
        let _ = write!(line, "{cell:width$}");
    }
    for (cell, width) in cells[KEYS.len()..].iter().zip(WIDTHS) {
        let _ = write!(line, "{cell:>width$}");
    }
    let _ = writeln!(text, "{}", line.trim_end());
}

/// A reason in the place of numbers, on as many lines as it takes.
fn refusal(text: &mut String, row: &Row, reason: &str) {
    let indent: usize = KEYS.iter().sum();
    let mut line = String::new();
    for (cell, width) in [row.ssa, row.ssa_copies, row.out_of_ssa].iter().zip(KEYS) {
        let _ = write!(line, "{cell:width$}");
    }
    for word in reason.split(' ') {
        if line.chars().count() + 1 + word.chars().count() > WIDTH && line.trim().len() > indent {
            let _ = writeln!(text, "{}", line.trim_end());
            line = " ".repeat(indent);
        }
        let _ = write!(line, " {word}");
    }
    let _ = writeln!(text, "{}", line.trim_end());
}
