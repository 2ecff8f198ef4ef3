//! Records a compilation for the page: an observer of the pipeline that keeps each stage's listing, counts, time and graphs,
//! and what puts the page together from it and from the explanations.
//!
//! **in**: a source and options. **out**: a [`Page`]. Cost: each stage is printed once; overlays are computed for functions
//! whose graph is drawn.

use super::page::{Chart, Graph, LARGEST_GRAPH, Links, Page, RangeRow, Row, Stage, Table};
use crate::analysis::{cfg::Cfg, dominators::DomTree, frontiers, liveness::Liveness, loops::Loops};
use crate::explain::copies;
use crate::explain::hazards;
use crate::explain::parallel::{self, Move};
use crate::explain::trace::Trace;
use crate::ir::{self, Block, CopyOrigin, Function, Op, Operand, Terminator, Value};
use crate::pipeline::observe::{Event, Observer};
use crate::pipeline::options::Options;
use crate::pipeline::run::{Failure, compile};
use crate::pipeline::stages;
use crate::pipeline::state::{Language, State};
use crate::regalloc::Facts;
use crate::regalloc::resolve::Location;
use crate::support::listing::Entity;
use crate::support::span::Source;
use crate::x64::{self, Slot};
use cranelift_entity::EntityRef;
use serde_json::Value as Json;
use std::collections::BTreeMap;

/// Compiles the source as far as its bytes and makes the page.
pub fn page<'a>(source: &'a Source, options: &Options, watch: bool) -> Result<Page<'a>, Failure> {
    let mut recorder = Recorder::default();
    let mut trace = Trace::default();
    compile(source, options, "bytes", &mut [&mut recorder, &mut trace])?;
    let mut functions = Vec::new();
    let (mut links, mut ranges) = (BTreeMap::new(), BTreeMap::new());
    if let Some(program) = &trace.sequenced {
        let mut ids: Vec<ir::FuncId> =
            program.functions.keys().filter(|id| !program.functions[*id].layout.is_empty()).collect();
        ids.sort_by_key(|id| (*id != program.entry, *id));
        for id in ids {
            let name = program.functions[id].name.clone();
            links.insert(name.clone(), function_links(&trace, id, source));
            if let Some(facts) = &trace.facts {
                ranges.insert(name.clone(), chart(&facts[id], &program.functions[id]));
            }
            functions.push(name);
        }
    }
    Ok(Page {
        source,
        functions,
        stages: recorder.stages,
        links,
        tables: vec![copies_table(&trace, source), hazards_table(&trace)],
        steppers: steppers(&trace),
        ranges,
        watch,
    })
}

/// Keeps every stage.
#[derive(Default)]
struct Recorder {
    stages: Vec<Stage>,
    counts: Option<crate::pipeline::state::Counts>,
}

impl Observer for Recorder {
    fn before(&mut self, _: &'static stages::Stage, state: &State) {
        self.counts = state.counts();
    }

    fn after(&mut self, event: &Event<'_>) {
        let graphs = match event.state {
            State::Ir(program) => program.functions.values().filter(|f| !f.layout.is_empty()).map(ir_graph).collect(),
            State::Virtual(program) => program.functions.values().filter(|f| !f.layout.is_empty()).map(graph).collect(),
            State::Physical(program, _) => {
                program.functions.values().filter(|f| !f.layout.is_empty()).map(graph).collect()
            }
            State::Source
            | State::Tokens(_)
            | State::Ast(_)
            | State::Hir(_)
            | State::Bytes(_)
            | State::Object(_)
            | State::Executable(_) => Vec::new(),
        };
        // Listings can be compared within the IR and within machine code.
        let comparable = matches!(event.stage.from, Language::Ir(_) | Language::Virtual | Language::Physical)
            && matches!(
                (event.stage.from, event.stage.to),
                (Language::Ir(_), Language::Ir(_)) | (Language::Virtual | Language::Physical, Language::Physical)
            );
        let mut counts = Vec::new();
        if let Some(now) = event.state.counts() {
            let before = self.counts.filter(|_| comparable);
            for (label, count) in [
                ("φs", (|counts| counts.phis) as fn(&crate::pipeline::state::Counts) -> usize),
                ("copies", |counts| counts.copies),
                ("instructions", |counts| counts.instructions),
            ] {
                counts.push((label.to_string(), count(&now), before.as_ref().map(count)));
            }
        }
        self.stages.push(Stage {
            number: format!("{:03}", stages::dump_number(event.stage.name)),
            name: event.stage.name.to_string(),
            title: event.stage.title.to_string(),
            micros: Some(event.elapsed.as_micros() as u64),
            counts,
            listing: event.state.print(event.source),
            against: self.stages.last().filter(|_| comparable).map(|stage| stage.name.clone()),
            graphs,
        });
    }
}

fn number(block: Block) -> u32 {
    block.index() as u32
}

fn ir_graph(function: &Function) -> Graph {
    let mut edges = Vec::new();
    for block in &function.layout {
        match &function.blocks[*block].term {
            Terminator::Jump(edge) => edges.push((number(*block), number(edge.target), String::new())),
            Terminator::Branch { then, els, .. } => {
                edges.push((number(*block), number(then.target), "true".to_string()));
                edges.push((number(*block), number(els.target), "false".to_string()));
            }
            Terminator::Return(_) | Terminator::Unreachable => {}
        }
    }
    let facts = if function.layout.len() <= LARGEST_GRAPH { overlays(function) } else { Vec::new() };
    Graph {
        function: function.name.clone(),
        blocks: function.layout.iter().copied().map(number).collect(),
        edges,
        facts,
    }
}

/// What the overlays of a drawing say of each block.
fn overlays(function: &Function) -> Vec<(String, BTreeMap<u32, String>)> {
    let cfg = Cfg::compute(function);
    let tree = DomTree::compute(function, &cfg);
    let frontiers = frontiers::compute(&cfg, &tree);
    let live = Liveness::compute(function, &cfg);
    let loops = Loops::compute(function, &cfg, &tree);
    let blocks = |blocks: &[Block]| blocks.iter().map(Block::to_string).collect::<Vec<_>>().join(" ");
    let values = |values: &[Value]| {
        let mut names: Vec<String> = values
            .iter()
            .take(8)
            .map(|value| match function.variable_of(*value) {
                Some(variable) => format!("{value}:{}", variable.name),
                None => value.to_string(),
            })
            .collect();
        if values.is_empty() {
            names.push("nothing".to_string());
        }
        if values.len() > 8 {
            names.push(format!("… {} more", values.len() - 8));
        }
        names.join(" ")
    };
    let mut facts: [BTreeMap<u32, String>; 4] = Default::default();
    for block in function.layout.iter().copied() {
        if !cfg.is_reachable(block) {
            facts[0].insert(number(block), "unreachable".to_string());
            continue;
        }
        let idom = tree.idom(block).map_or("none".to_string(), |idom| idom.to_string());
        facts[0].insert(number(block), format!("idom {idom} · frontier {}", blocks(&frontiers[block])));
        facts[1].insert(number(block), format!("live-in {}", values(live.live_in(block))));
        facts[2].insert(number(block), format!("live-out {}", values(live.live_out(block))));
        let around = match loops.innermost(block) {
            Some(inner) => format!("loop of {} · depth {}", loops.header(inner), loops.depth(block)),
            None => "in no loop".to_string(),
        };
        facts[3].insert(number(block), around);
    }
    ["dominators", "live-in", "live-out", "loops"].into_iter().map(str::to_string).zip(facts).collect()
}

fn graph<R: Copy>(function: &x64::Function<R>) -> Graph {
    let mut edges = Vec::new();
    for block in &function.layout {
        match &function.blocks[*block].term {
            x64::Terminator::Jump(target) => edges.push((number(*block), number(*target), String::new())),
            x64::Terminator::Branch { cond, then, els } => {
                edges.push((number(*block), number(*then), cond.name().to_string()));
                edges.push((number(*block), number(*els), cond.negate().name().to_string()));
            }
            x64::Terminator::Return { .. } | x64::Terminator::TailCall { .. } | x64::Terminator::Unreachable => {}
        }
    }
    Graph {
        function: function.name.clone(),
        blocks: function.layout.iter().copied().map(number).collect(),
        edges,
        facts: Vec::new(),
    }
}

fn value_entity(value: Value) -> Entity {
    Entity::Value(value.index() as u32)
}

/// How values, variables, virtual registers and instructions of a function belong together.
fn function_links(trace: &Trace, id: ir::FuncId, source: &Source) -> Links {
    let mut links = Links::default();
    let Some(program) = &trace.sequenced else { return links };
    let function = &program.functions[id];
    let line_of = |span: crate::support::span::Span| (!span.is_none()).then(|| source.line_of(span.start));
    let mut versions: BTreeMap<ir::Variable, Vec<Entity>> = BTreeMap::new();
    for (value, data) in function.values.iter() {
        if let Some(Operand::Value(new)) = data.replaced_by {
            links.same.push((value_entity(value), value_entity(new)));
        }
        if let Some(variable) = data.variable.expand() {
            versions.entry(variable).or_default().push(value_entity(value));
            links.names.push((value_entity(value), format!("{value} ({})", function.variables[variable].name)));
        } else {
            links.names.push((value_entity(value), value.to_string()));
        }
    }
    for (variable, values) in versions {
        let data = &function.variables[variable];
        let entity = Entity::Variable(variable.index() as u32);
        links.names.push((entity, format!("variable {}", data.name)));
        links.lines.extend(line_of(data.span).map(|line| (entity, vec![line])));
        links.versions.push((entity, values));
    }
    for (inst, data) in function.insts.iter() {
        data.for_each_def(|value| {
            links.defs.push((value_entity(value), Entity::Inst(inst.index() as u32)));
            links.lines.extend(line_of(data.span).map(|line| (value_entity(value), vec![line])));
        });
    }
    if let Some(selected) = &trace.selected {
        for (vreg, data) in selected.functions[id].vregs.iter() {
            let entity = Entity::VReg(vreg.index() as u32);
            links.names.push((entity, vreg.to_string()));
            links.same.extend(data.value.expand().map(|value| (entity, value_entity(value))));
        }
    }
    links
}

fn place(location: &Location) -> String {
    match location {
        Location::Reg(reg) => reg.to_string(),
        Location::Slot(Slot::Spill(slot)) => format!("slot {slot}"),
        Location::Slot(Slot::Incoming(slot)) => format!("slot of argument {slot}"),
        Location::Slot(Slot::Outgoing(slot)) => format!("slot for argument {slot}"),
        Location::Constant(_) => "made where needed".to_string(),
    }
}

/// The live ranges with the places that hold them.
fn chart(facts: &Facts, function: &Function) -> Chart {
    let mut chart = Chart::default();
    for (block, first, _) in &facts.blocks {
        chart.blocks.push((2 * first, number(*block)));
    }
    for (index, vreg) in facts.vregs.iter().enumerate().filter(|(_, vreg)| !vreg.live.is_empty()) {
        let mut segments: Vec<(u32, u32, String)> = Vec::new();
        for stretch in &vreg.live {
            chart.points = chart.points.max(stretch.to);
            match (vreg.pinned, vreg.class) {
                (Some(reg), _) => segments.push((stretch.from, stretch.to, reg.to_string())),
                (None, Some(class)) => {
                    // The class's places, cut to where this register is live.
                    let places = &facts.classes[class as usize].places;
                    let start = places.partition_point(|(_, to, _)| *to <= stretch.from);
                    for (from, to, location) in places[start..].iter().take_while(|(from, ..)| *from < stretch.to) {
                        segments.push(((*from).max(stretch.from), (*to).min(stretch.to), place(location)));
                    }
                }
                (None, None) => {}
            }
        }
        let name = match vreg.value {
            Some(value) => match function.variable_of(value) {
                Some(variable) => format!("v{index} {}", variable.name),
                None => format!("v{index} {value}"),
            },
            None => format!("v{index}"),
        };
        chart.rows.push(RangeRow { name, vreg: index as u32, segments });
    }
    chart
}

fn copies_table(trace: &Trace, source: &Source) -> Table {
    let text = |option: Option<String>| option.unwrap_or_default();
    let rows = copies::compute(trace, source)
        .into_iter()
        .map(|row| Row {
            function: row.function.clone(),
            cells: vec![
                text(row.variable.clone()),
                text(row.line.map(|line| line.to_string())),
                text(row.phi.clone()),
                text(row.edge.clone())
                    + &row.split.as_ref().map_or(String::new(), |split| format!(" (split: {split})")),
                text(row.step.map(|(step, of)| format!("{step} of {of}"))),
                row.copy.clone(),
                row.fate.sentence(),
                row.machine.join("; "),
            ],
            entities: row.entities.clone(),
        })
        .collect();
    Table {
        id: "copies",
        title: "Copies",
        note: "Every φ operand and every copy: where it comes from and what became of it.".to_string(),
        empty: "This function has no φs and no copies.",
        columns: vec!["variable", "line", "φ", "edge", "step", "copy", "fate", "machine code"],
        rows,
    }
}

fn hazards_table(trace: &Trace) -> Table {
    let rows = hazards::compute(trace)
        .into_iter()
        .map(|hazard| Row {
            function: hazard.function.clone(),
            cells: vec![
                hazard.kind.name().to_string(),
                hazard.line.map_or(String::new(), |line| line.to_string()),
                hazard.kind.sentence(),
            ],
            entities: hazard.entities,
        })
        .collect();
    Table {
        id: "hazards",
        title: "Hazards",
        note: "What could have gone wrong on the way out of SSA form, and what was done about it.".to_string(),
        empty: "Nothing in this function could have gone wrong on the way out of SSA form.",
        columns: vec!["hazard", "line", "what"],
        rows,
    }
}

/// The parallel copies of all functions, played.
fn steppers(trace: &Trace) -> Vec<Json> {
    let mut steppers = Vec::new();
    let (Some(optimized), Some(before), Some(after)) = (&trace.optimized, &trace.parallel, &trace.sequenced) else {
        return steppers;
    };
    for (id, function) in before.functions.iter() {
        let sequenced = &after.functions[id];
        let mut sequences: BTreeMap<(Block, u8), Vec<Move>> = BTreeMap::new();
        for block in &sequenced.layout {
            for inst in &sequenced.blocks[*block].insts {
                let data = &sequenced.insts[*inst];
                if let (Some(origin), Op::Copy(operand), Some(result)) =
                    (sequenced.copy_origins.get(inst), &data.op, data.result.expand())
                {
                    let (CopyOrigin::Phi { pred, edge, .. } | CopyOrigin::Rescue { pred, edge, .. }) = origin;
                    let rescue = matches!(origin, CopyOrigin::Rescue { .. });
                    let step = step(sequenced, result, *operand, rescue);
                    sequences.entry((*pred, *edge)).or_default().push(step);
                }
            }
        }
        for block in &function.layout {
            for inst in &function.blocks[*block].insts {
                let (Op::Parallel(copies), Some(CopyOrigin::Phi { pred, edge, .. })) =
                    (&function.insts[*inst].op, function.copy_origins.get(inst))
                else {
                    continue;
                };
                if copies.len() > parallel::LARGEST {
                    continue;
                }
                let moves: Vec<Move> = copies.iter().map(|(dst, src)| step(sequenced, *dst, *src, false)).collect();
                let sequence = sequences.remove(&(*pred, *edge)).unwrap_or_default();
                let replay = parallel::replay(&moves, &sequence);
                let target = optimized.functions[id].blocks[*pred].term.edges().nth(usize::from(*edge));
                let target = target.map_or(*block, |edge| edge.target);
                steppers.push(replay.json(&function.name, &format!("{pred}→{target}")));
            }
        }
    }
    steppers
}

fn step(function: &Function, dst: Value, src: Operand, rescue: bool) -> Move {
    let name = |value: Value| match function.variable_of(value) {
        Some(variable) => format!("{value}:{}", variable.name),
        None => value.to_string(),
    };
    let (src, constant) = match src {
        Operand::Value(value) => (name(value), false),
        Operand::Int(value) => (value.to_string(), true),
        Operand::Bool(value) => (value.to_string(), true),
    };
    Move { dst: name(dst), src, constant, rescue }
}
