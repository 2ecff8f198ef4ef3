//! Other views of dumps: the difference between two stages, only the stages that changed something, and stages as JSON or as
//! graphs for Graphviz.

use super::args::{Dump, Format, stage_names};
use super::commands::{Colour, Stop, failed};
use super::dump::{self, Style};
use crate::explorer::page::{self, Graph, Stage};
use crate::explorer::record;
use crate::pipeline::{Options, stages};
use crate::support::diff::{self, Change};
use crate::support::listing::{Listing, Section};
use crate::support::span::Source;
use std::fmt::Write;

/// Names of stages; `ir` is the last in SSA form.
fn wanted_stages(names: &[String], options: &Options) -> Result<Vec<&'static str>, Stop> {
    let names = stage_names(names).map_err(Stop::Usage)?;
    Ok(names.into_iter().map(|name| if name == "ir" { stages::last_ssa(options) } else { name }).collect())
}

/// The views that the arguments ask for: file name and text.
pub fn run(
    arguments: &Dump,
    source: &Source,
    options: &Options,
    colour: Colour,
) -> Result<Vec<(String, String)>, Stop> {
    let page = record::page(source, options, false).map_err(|failure| failed(failure, source, colour))?;
    let function = arguments.function.as_deref();
    if let Some(range) = &arguments.diff {
        let Some((a, b)) = range.split_once("..").filter(|(a, b)| !a.is_empty() && !b.is_empty()) else {
            return Err(Stop::Usage(format!("`--diff {range}`: two stages are written A..B")));
        };
        let names = wanted_stages(&[a.to_string(), b.to_string()], options)?;
        let (old, new) = (stage(&page.stages, names[0])?, stage(&page.stages, names[1])?);
        return Ok(vec![(format!("{a}..{b}.diff"), difference(old, new, function, colour.stdout))]);
    }
    let wanted = if arguments.all { stages::dump_names() } else { wanted_stages(&arguments.stage, options)? };
    let mut files = Vec::new();
    let mut shown = Vec::new();
    for stage in page.stages.iter().filter(|stage| wanted.contains(&stage.name.as_str())) {
        if arguments.only_changed && !changed(stage, &page.stages, function) {
            continue;
        }
        shown.push(stage.name.clone());
        match arguments.format {
            Format::Text => {
                let known = stages::named(&stage.name);
                let comment = known.map_or(";", |known| known.to.comment());
                let style = Style { source: None, comment, colour: colour.stdout, function };
                let head = format!("{comment} ---- {}.{} ----\n", stage.number, stage.name);
                let text = head + &dump::text(&stage.listing, &style);
                files.push((format!("{}.{}", stage.number, stage.name), text));
            }
            Format::Dot => {
                let graphs = stage.graphs.iter().filter(|graph| function.is_none_or(|name| name == graph.function));
                let text: String = graphs.map(|graph| dot(graph, stage)).collect();
                if !text.is_empty() {
                    files.push((format!("{}.{}.dot", stage.number, stage.name), text));
                }
            }
            Format::Json => {}
        }
    }
    if arguments.format == Format::Json {
        let mut data = page::data(&page);
        if let Some(stages) = data["stages"].as_array_mut() {
            stages.retain(|stage| stage["name"].as_str().is_some_and(|name| shown.iter().any(|other| other == name)));
        }
        let mut text = serde_json::to_string_pretty(&data).expect("the page's data is JSON");
        text.push('\n');
        files.push(("stages.json".to_string(), text));
    }
    Ok(files)
}

fn stage<'a>(stages: &'a [Stage], name: &str) -> Result<&'a Stage, Stop> {
    stages
        .iter()
        .find(|stage| stage.name == name)
        .ok_or_else(|| Stop::Error(format!("there is no stage `{name}` with these options, or it is a fact")))
}

fn sections<'a>(listing: &'a Listing, function: Option<&'a str>) -> impl Iterator<Item = &'a Section> {
    listing
        .sections
        .iter()
        .filter(move |section| function.is_none_or(|name| section.function.as_deref().is_none_or(|own| own == name)))
}

fn changed(stage: &Stage, stages: &[Stage], function: Option<&str>) -> bool {
    let Some(before) = stage.against.as_ref().and_then(|name| stages.iter().find(|other| other.name == *name)) else {
        return true;
    };
    sections(&stage.listing, function).any(|section| {
        let old = before.listing.sections.iter().find(|other| other.function == section.function);
        old.is_none_or(|old| diff::compute(&old.lines, &section.lines).iter().any(|run| run.change != Change::Same))
    })
}

fn difference(old: &Stage, new: &Stage, function: Option<&str>, colour: bool) -> String {
    let mut text = format!("--- {}.{}\n+++ {}.{}\n", old.number, old.name, new.number, new.name);
    for section in sections(&new.listing, function) {
        let before = old.listing.sections.iter().find(|other| other.function == section.function);
        let lines = before.map_or(&[][..], |before| before.lines.as_slice());
        for run in diff::compute(lines, &section.lines) {
            for step in 0..run.len {
                let (sign, escape, line) = match run.change {
                    Change::Same => (' ', "", &section.lines[run.new + step]),
                    Change::Renumbered => ('~', "\x1b[33m", &section.lines[run.new + step]),
                    Change::Removed => ('-', "\x1b[31m", &lines[run.old + step]),
                    Change::Added => ('+', "\x1b[32m", &section.lines[run.new + step]),
                };
                if colour && !escape.is_empty() {
                    let _ = writeln!(text, "{escape}{sign}{}\x1b[0m", line.text());
                } else {
                    let _ = writeln!(text, "{}", format!("{sign}{}", line.text()).trim_end());
                }
            }
        }
    }
    text
}

/// A graph in Graphviz's language, with the listing's lines in its nodes.
fn dot(graph: &Graph, stage: &Stage) -> String {
    let quote = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"");
    let lines = stage
        .listing
        .sections
        .iter()
        .find(|section| section.function.as_deref() == Some(graph.function.as_str()))
        .map_or(&[][..], |section| section.lines.as_slice());
    let ranges = page::block_lines(lines);
    let mut text = format!("digraph \"{}\" {{\n  node [shape=box, fontname=monospace];\n", quote(&graph.function));
    for block in &graph.blocks {
        let (start, end) = ranges.get(block).copied().unwrap_or((0, 0));
        let label: String = lines[start..end].iter().map(|line| quote(&line.text()) + "\\l").collect();
        let _ = writeln!(text, "  b{block} [label=\"{label}\"];");
    }
    for (from, to, label) in &graph.edges {
        let _ = writeln!(text, "  b{from} -> b{to} [label=\"{}\"];", quote(label));
    }
    text.push_str("}\n");
    text
}
