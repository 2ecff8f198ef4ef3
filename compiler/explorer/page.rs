//! Writes the page: everything that was recorded as JSON, in one HTML file that loads nothing.
//!
//! The JSON stands in a script element of a type that browsers do not run; `<`, `>` and `&` are written as escapes there, so
//! that no text of a program (`</script>` in a string, say) can end the element. A content security policy forbids every
//! request. **in**: listings whose pieces name their entities. **out**: a page that works from a file. Cost: linear in the
//! listings, near-linear in the graphs; graphs of more than [`LARGEST_GRAPH`] blocks are not drawn.

use super::layout;
use crate::support::diff::{self, Change};
use crate::support::listing::{Entity, Kind, Line, Listing};
use crate::support::span::Source;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Functions with more blocks are shown as text only: nobody can read such a drawing.
pub const LARGEST_GRAPH: usize = 1500;

/// Lines of a block that its drawing shows.
const BLOCK_LINES: usize = 24;

/// The version of the page's data, for tools that read it.
pub const VERSION: u32 = 1;

/// All that a page shows.
pub struct Page<'a> {
    /// The source.
    pub source: &'a Source,
    /// Names of the functions, the body first.
    pub functions: Vec<String>,
    /// The stages, in order.
    pub stages: Vec<Stage>,
    /// How entities belong together, by function.
    pub links: BTreeMap<String, Links>,
    /// Tables that explain: copies, hazards, φs.
    pub tables: Vec<Table>,
    /// Parallel copies to step through, ready as JSON.
    pub steppers: Vec<Value>,
    /// Live ranges, by function.
    pub ranges: BTreeMap<String, Chart>,
    /// Reload when the server says so (`--watch`).
    pub watch: bool,
}

/// One stage as the page shows it.
pub struct Stage {
    /// The number of its dump file.
    pub number: String,
    /// Its name.
    pub name: String,
    /// What it does.
    pub title: String,
    /// How long it took.
    pub micros: Option<u64>,
    /// Counts: label, after the stage, before it.
    pub counts: Vec<(String, usize, Option<usize>)>,
    /// What it left.
    pub listing: Listing,
    /// The stage whose listing its differences are against.
    pub against: Option<String>,
    /// Graphs of its functions.
    pub graphs: Vec<Graph>,
}

/// A control-flow graph: blocks by number in listing order, edges with labels, facts about blocks by overlay name.
pub struct Graph {
    /// The function.
    pub function: String,
    /// Its blocks; the entry first.
    pub blocks: Vec<u32>,
    /// Edges: from, to, label.
    pub edges: Vec<(u32, u32, String)>,
    /// For each overlay what it says of each block.
    pub facts: Vec<(String, BTreeMap<u32, String>)>,
}

/// How the entities of a function belong together.
#[derive(Default)]
pub struct Links {
    /// Pairs that are one thing in different stages: a value and its replacement, a value and its virtual register.
    pub same: Vec<(Entity, Entity)>,
    /// For each variable its versions.
    pub versions: Vec<(Entity, Vec<Entity>)>,
    /// The instruction that defines a value.
    pub defs: Vec<(Entity, Entity)>,
    /// What entities are called.
    pub names: Vec<(Entity, String)>,
    /// Source lines of an entity.
    pub lines: Vec<(Entity, Vec<u32>)>,
}

/// A table.
pub struct Table {
    /// Its name in the address.
    pub id: &'static str,
    /// Its tab's title.
    pub title: &'static str,
    /// A sentence above it.
    pub note: String,
    /// What to say if it has no rows.
    pub empty: &'static str,
    /// The columns' titles.
    pub columns: Vec<&'static str>,
    /// The rows.
    pub rows: Vec<Row>,
}

/// A row of a table.
pub struct Row {
    /// The function that it is about.
    pub function: String,
    /// Its cells.
    pub cells: Vec<String>,
    /// The entities that it names; the first is lit when the row is chosen.
    pub entities: Vec<Entity>,
}

/// The live ranges of a function.
#[derive(Default)]
pub struct Chart {
    /// Number of program points.
    pub points: u32,
    /// Where blocks start.
    pub blocks: Vec<(u32, u32)>,
    /// One for each virtual register.
    pub rows: Vec<RangeRow>,
}

/// The live range of one virtual register.
pub struct RangeRow {
    /// The register and what it holds, for people.
    pub name: String,
    /// The register's number.
    pub vreg: u32,
    /// From, to, and the place that holds it there.
    pub segments: Vec<(u32, u32, String)>,
}

/// The whole file.
pub fn render(page: &Page<'_>) -> String {
    let connect = if page.watch { "connect-src 'self'" } else { "connect-src 'none'" };
    let mut script = include_str!("page.js").to_string();
    if page.watch {
        script.push_str(include_str!("watch.js"));
    }
    let title = format!("{} · atlc explore", page.source.name);
    let parts: [(&str, &str); 5] = [
        ("CONNECT", connect),
        ("TITLE", &text_of_html(&title)),
        ("STYLE", include_str!("page.css")),
        ("DATA", &json_of_html(&data(page).to_string())),
        ("SCRIPT", &script),
    ];
    // Each mark stands once in the frame; what is put in is never searched.
    let mut rest = include_str!("page.html");
    let mut html = String::with_capacity(parts[3].1.len() + 64 * 1024);
    for (mark, text) in parts {
        let (before, after) = rest.split_once(mark).expect("the frame has every mark, in this order");
        html.push_str(before);
        html.push_str(text);
        rest = after;
    }
    html.push_str(rest);
    html
}

fn text_of_html(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// JSON that cannot end the element that holds it. The replaced characters only stand in its strings.
fn json_of_html(json: &str) -> String {
    json.replace('&', "\\u0026")
        .replace('<', "\\u003c")
        .replace('>', "\\u003e")
        .replace('\u{2028}', "\\u2028")
        .replace('\u{2029}', "\\u2029")
}

/// An entity's name in the page: a letter and its number.
pub fn key(entity: Entity) -> String {
    match entity {
        Entity::Function(number) => format!("f{number}"),
        Entity::Variable(number) => format!("x{number}"),
        Entity::Value(number) => format!("v{number}"),
        Entity::Block(number) => format!("b{number}"),
        Entity::Inst(number) => format!("i{number}"),
        Entity::VReg(number) => format!("r{number}"),
        Entity::PReg(number) => format!("p{number}"),
        Entity::Slot(number) => format!("s{number}"),
    }
}

/// The page's data. docs/json.md has the schema.
pub fn data(page: &Page<'_>) -> Value {
    let lines: Vec<&str> = (1..=page.source.line_count() as u32).map(|line| page.source.line(line)).collect();
    let mut stages = Vec::new();
    for (position, stage) in page.stages.iter().enumerate() {
        let against = stage
            .against
            .as_ref()
            .and_then(|name| page.stages[..position].iter().rev().find(|other| other.name == *name));
        stages.push(stage_data(page, stage, against));
    }
    let links: Map<String, Value> =
        page.links.iter().map(|(function, links)| (function.clone(), links_data(links))).collect();
    let tables: Vec<Value> = page.tables.iter().map(table_data).collect();
    let ranges: Map<String, Value> =
        page.ranges.iter().map(|(function, chart)| (function.clone(), chart_data(chart))).collect();
    json!({
        "version": VERSION,
        "file": page.source.name,
        "source": lines,
        "functions": page.functions,
        "stages": stages,
        "links": links,
        "tables": tables,
        "steppers": page.steppers,
        "ranges": ranges,
    })
}

fn stage_data(page: &Page<'_>, stage: &Stage, against: Option<&Stage>) -> Value {
    let mut functions = Map::new();
    for section in &stage.listing.sections {
        let name = section.function.clone().unwrap_or_default();
        let old =
            against.and_then(|stage| stage.listing.sections.iter().find(|other| other.function == section.function));
        let runs = old.map(|old| diff::compute(&old.lines, &section.lines));
        let changed = runs.as_ref().is_none_or(|runs| runs.iter().any(|run| run.change != Change::Same));
        // What did not change need not stand there twice.
        if let (false, Some(against)) = (changed, against) {
            functions.insert(name, json!({ "same": against.name, "changed": false }));
            continue;
        }
        let lines: Vec<Value> = section.lines.iter().map(|line| line_data(page.source, line)).collect();
        let mut entry = json!({ "lines": lines, "changed": true });
        if let (Some(runs), Some(against)) = (runs, against) {
            let runs: Vec<Value> = runs
                .iter()
                .map(|run| {
                    let sign = match run.change {
                        Change::Same => "=",
                        Change::Renumbered => "~",
                        Change::Removed => "-",
                        Change::Added => "+",
                    };
                    json!([sign, run.old, run.new, run.len])
                })
                .collect();
            entry["diff"] = json!({ "against": against.name, "runs": runs });
        }
        if let Some(graph) = stage.graphs.iter().find(|graph| graph.function == name)
            && graph.blocks.len() <= LARGEST_GRAPH
        {
            entry["graph"] = graph_data(graph, &section.lines);
        }
        functions.insert(name, entry);
    }
    let counts: Vec<Value> = stage.counts.iter().map(|(label, after, before)| json!([label, after, before])).collect();
    json!({
        "number": stage.number,
        "name": stage.name,
        "title": stage.title,
        "micros": stage.micros,
        "counts": counts,
        "functions": functions,
    })
}

fn line_data(source: &Source, line: &Line) -> Value {
    let number = if line.span.is_none() { 0 } else { source.line_of(line.span.start) };
    let pieces: Vec<Value> = line
        .pieces
        .iter()
        .map(|piece| {
            let kind = match piece.kind {
                Kind::Plain => "",
                Kind::Keyword => "k",
                Kind::Value => "v",
                Kind::Block => "b",
                Kind::Literal => "i",
                Kind::Name => "f",
                Kind::Type => "y",
                Kind::Comment => "c",
            };
            match piece.entity {
                Some(entity) => json!([kind, piece.text, key(entity)]),
                None => json!([kind, piece.text]),
            }
        })
        .collect();
    json!([number, line.entity.map(key).unwrap_or_default(), pieces])
}

/// Where a block's lines stand in its function's listing: from its label to before the next label or the end.
pub fn block_lines(lines: &[Line]) -> BTreeMap<u32, (usize, usize)> {
    let mut found = BTreeMap::new();
    let mut open: Option<(u32, usize)> = None;
    for (position, line) in lines.iter().enumerate() {
        let label = match line.entity {
            Some(Entity::Block(number)) => Some(number),
            Some(_) | None => None,
        };
        let ends = label.is_some() || line.text() == "}";
        if ends && let Some((number, start)) = open.take() {
            found.insert(number, (start, position));
        }
        if let Some(number) = label {
            open = Some((number, position));
        }
    }
    if let Some((number, start)) = open {
        found.insert(number, (start, lines.len()));
    }
    found
}

fn graph_data(graph: &Graph, lines: &[Line]) -> Value {
    let ranges = block_lines(lines);
    let index: BTreeMap<u32, usize> =
        graph.blocks.iter().enumerate().map(|(position, block)| (*block, position)).collect();
    let shown = |block: &u32| {
        let (start, end) = ranges.get(block).copied().unwrap_or((0, 0));
        (start, end, end.min(start + BLOCK_LINES))
    };
    let sizes = graph
        .blocks
        .iter()
        .map(|block| {
            let (start, end, cut) = shown(block);
            let longest = lines[start..cut].iter().map(|line| line.text().chars().count()).max().unwrap_or(0);
            // Room for the lines, for "… more lines" and for what an overlay says.
            let rows = (cut - start) + usize::from(end > cut) + 1;
            ((longest.clamp(16, 90) as f32 * 7.3) as i32 + 14, rows as i32 * 16 + 8)
        })
        .collect();
    let edges = graph.edges.iter().map(|(from, to, _)| (index[from], index[to])).collect();
    let plan = layout::compute(&layout::Graph { sizes, edges });
    let nodes: Vec<Value> = graph
        .blocks
        .iter()
        .enumerate()
        .map(|(position, block)| {
            let (start, end, cut) = shown(block);
            let (x, y) = plan.places[position];
            let facts: Map<String, Value> =
                graph.facts.iter().filter_map(|(name, facts)| Some((name.clone(), json!(facts.get(block)?)))).collect();
            let (w, h) = plan.sizes[position];
            json!({ "block": key(Entity::Block(*block)), "x": x, "y": y, "w": w, "h": h, "lines": [start, cut],
                "more": end - cut, "facts": facts })
        })
        .collect();
    let edges: Vec<Value> = graph
        .edges
        .iter()
        .zip(&plan.routes)
        .map(|((_, _, label), route)| json!({ "points": route.corners, "back": route.back, "label": label }))
        .collect();
    let overlays: Vec<&String> = graph.facts.iter().map(|(name, _)| name).collect();
    json!({ "size": plan.size, "nodes": nodes, "edges": edges, "overlays": overlays })
}

fn links_data(links: &Links) -> Value {
    let mut same: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (a, b) in &links.same {
        same.entry(key(*a)).or_default().push(key(*b));
        same.entry(key(*b)).or_default().push(key(*a));
    }
    let versions: BTreeMap<String, Vec<String>> = links
        .versions
        .iter()
        .map(|(variable, values)| (key(*variable), values.iter().copied().map(key).collect()))
        .collect();
    let mut defs: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (value, inst) in &links.defs {
        defs.entry(key(*value)).or_default().push(key(*inst));
    }
    let names: BTreeMap<String, &String> = links.names.iter().map(|(entity, name)| (key(*entity), name)).collect();
    let lines: BTreeMap<String, &Vec<u32>> = links.lines.iter().map(|(entity, lines)| (key(*entity), lines)).collect();
    json!({ "same": same, "versions": versions, "defs": defs, "names": names, "lines": lines })
}

fn table_data(table: &Table) -> Value {
    let rows: Vec<Value> = table
        .rows
        .iter()
        .map(|row| {
            let entities: Vec<String> = row.entities.iter().copied().map(key).collect();
            json!({ "function": row.function, "cells": row.cells, "all": entities })
        })
        .collect();
    json!({ "id": table.id, "title": table.title, "note": table.note, "empty": table.empty, "columns": table.columns,
        "rows": rows })
}

fn chart_data(chart: &Chart) -> Value {
    let blocks: Vec<Value> =
        chart.blocks.iter().map(|(point, block)| json!([point, key(Entity::Block(*block))])).collect();
    let rows: Vec<Value> = chart
        .rows
        .iter()
        .map(|row| json!({ "name": row.name, "entity": key(Entity::VReg(row.vreg)), "segments": row.segments }))
        .collect();
    json!({ "points": chart.points, "blocks": blocks, "rows": rows })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(source: &Source) -> Page<'_> {
        let mut line = Line { entity: Some(Entity::Block(0)), ..Line::default() };
        line.refer(Kind::Block, "b0", Entity::Block(0)).put(Kind::Plain, ": \"</script><script>alert(1)</script>\"");
        let listing = Listing {
            sections: vec![crate::support::listing::Section { function: Some("main".to_string()), lines: vec![line] }],
        };
        let graph = Graph {
            function: "main".to_string(),
            blocks: vec![0],
            edges: vec![(0, 0, "true".to_string())],
            facts: vec![("loops".to_string(), BTreeMap::from([(0, "depth 1".to_string())]))],
        };
        Page {
            source,
            functions: vec!["main".to_string()],
            stages: vec![Stage {
                number: "050".to_string(),
                name: "ssa".to_string(),
                title: "t".to_string(),
                micros: Some(3),
                counts: Vec::new(),
                listing,
                against: None,
                graphs: vec![graph],
            }],
            links: BTreeMap::new(),
            tables: Vec::new(),
            steppers: Vec::new(),
            ranges: BTreeMap::new(),
            watch: false,
        }
    }

    #[test]
    fn no_text_of_the_program_ends_the_data() {
        let source = Source::new("<b>&.atl", "print(\"</script><!--\");\n");
        let html = render(&page(&source));
        // The frame has two script elements, and nothing else may open or close one.
        assert_eq!(html.matches("</script>").count(), 2);
        assert_eq!(html.matches("<script").count(), 2);
        assert!(html.contains("<title>&lt;b&gt;&amp;.atl · atlc explore</title>"));
        let start = html.find("id=\"data\">").unwrap() + 10;
        let end = start + html[start..].find("</script>").unwrap();
        let data: Value = serde_json::from_str(&html[start..end]).unwrap();
        assert_eq!(data["source"][0], "print(\"</script><!--\");");
        assert_eq!(data["stages"][0]["functions"]["main"]["graph"]["edges"][0]["back"], true);
    }

    #[test]
    fn nothing_is_loaded() {
        let source = Source::new("a.atl", "");
        let html = render(&page(&source));
        assert!(html.contains("connect-src 'none'"));
        for word in ["http://", "https://", "src=", "@import", "url("] {
            let allowed = html.replace("http://www.w3.org/2000/svg", "");
            assert!(!allowed.contains(word), "{word}");
        }
    }
}
