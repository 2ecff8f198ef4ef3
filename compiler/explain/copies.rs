//! The copy ledger: for every φ operand and every other copy, where it comes from, and what became of it.
//!
//! Rows are made from the forms on the way out of SSA: an operand of a φ of the constructed form either vanishes with its φ
//! (the pass that removed it is named), needs no copy (it is the φ itself), or becomes a copy on its edge (split or not), at
//! a place in that edge's sequence. The copy's fate is the allocator's: coalesced, given one register all the same,
//! or moved, and then for want of coalescing the witness: the two values live at one point, and the uses that keep them so.
//! Last, the machine instructions that still do its work.
//!
//! ```text
//! x line 6  %3 in b1 from b2  step 2 of 4  %3 = copy %4  coalesced (class 1)
//! t line 7  temporary of a cycle  step 1 of 4  %8 = copy %3  survives: v8 and v3 are both live at …
//! ```
//!
//! **in**: a [`Trace`]. **out**: rows in program order; each copy of the sequenced form stands in exactly one row.
//! Cost: linear in the program.

use super::trace::{self, Trace};
use crate::ir::{self, Block, CopyOrigin, FuncId, Function, Inst, Op, Operand, Terminator, Value, Variable};
use crate::regalloc::Facts;
use crate::regalloc::facts::{self, CopyFacts, CopyVerdict, Site};
use crate::regalloc::resolve::Location;
use crate::regalloc::rewrite::Fate as Moved;
use crate::support::listing::Entity;
use crate::support::span::{Positions, Source, Span};
use crate::x64::{self, PReg, VReg};
use cranelift_entity::{EntityRef, SecondaryMap, packed_option::PackedOption};
use rustc_hash::{FxHashMap, FxHashSet};
use serde::Serialize;

/// How many members of a class a row names: a class may have thousands, and so may the ledger have rows about it.
const MEMBERS: usize = 8;

/// What became of a copy.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Fate {
    /// The operand is the φ itself: its value stays where it is.
    SameValue,
    /// The φ is gone: a pass removed it.
    Removed { stage: String },
    /// The source is a constant, which is made where it is needed.
    Constant,
    /// Source and destination share one class of the allocator: nothing moves.
    /// `members` names the first few of the class's `size` registers.
    Coalesced { class: usize, size: usize, members: Vec<String> },
    /// Not coalesced, but both were given one place all the same.
    SamePlace { witness: Option<Witness> },
    /// What it would write is never read, or at hand anyway.
    NotNeeded,
    /// Selection made it part of another instruction.
    Selected,
    /// It moves a value.
    Survives { from: String, to: String, witness: Option<Witness> },
}

impl Fate {
    /// The fate as a clause.
    pub fn sentence(&self) -> String {
        let because = |witness: &Option<Witness>| {
            witness.as_ref().map_or(String::new(), |witness| format!(": {}", witness.sentence()))
        };
        match self {
            Fate::SameValue => "no copy: the operand is the φ itself".to_string(),
            Fate::Removed { stage } => format!("removed by {stage}"),
            Fate::Constant => "constant, made where it is needed".to_string(),
            Fate::Coalesced { size, members, .. } => {
                let more =
                    if *size > members.len() { format!(" … {} more", size - members.len()) } else { String::new() };
                format!("coalesced: one class {{{}{more}}}", members.join(", "))
            }
            Fate::SamePlace { witness } => format!("not coalesced, but both have one place{}", because(witness)),
            Fate::NotNeeded => "not needed: nothing reads what it would write, or it is at hand".to_string(),
            Fate::Selected => "part of another instruction".to_string(),
            Fate::Survives { from, to, witness } => format!("survives, {from} to {to}{}", because(witness)),
        }
    }
}

/// Why two values could not share a register: both were live at one point.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Witness {
    /// The two values, as people know them.
    pub values: [String; 2],
    /// The instruction before which both are live.
    pub point: String,
    /// Its block.
    pub block: String,
    /// Its source line.
    pub line: Option<u32>,
    /// For each value the instruction that reads it later, with its source line.
    pub kept_by: [Option<(String, Option<u32>)>; 2],
}

impl Witness {
    /// The witness as a sentence without a full stop.
    pub fn sentence(&self) -> String {
        let line = |line: Option<u32>| line.map_or(String::new(), |line| format!(", line {line}"));
        let kept = |kept: &Option<(String, Option<u32>)>| match kept {
            Some((text, at)) => format!(" (read by `{text}`{})", line(*at)),
            None => " (written there)".to_string(),
        };
        format!(
            "{}{} and {}{} are both live at `{}` in {}{}",
            self.values[0],
            kept(&self.kept_by[0]),
            self.values[1],
            kept(&self.kept_by[1]),
            self.point,
            self.block,
            line(self.line)
        )
    }
}

/// A copy, or a φ operand that needs none.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Row {
    /// The function.
    pub function: String,
    /// The source variable that the destination is a version of.
    pub variable: Option<String>,
    /// The source line: of the operand's last assignment where there is one, else of the copy.
    pub line: Option<u32>,
    /// The φ, for its operands.
    pub phi: Option<String>,
    /// The φ's block.
    pub block: Option<String>,
    /// The edge, `b2→b1`.
    pub edge: Option<String>,
    /// The block that splitting put on the edge.
    pub split: Option<String>,
    /// The copy as it stands out of SSA form: `%3 = copy %4`.
    pub copy: String,
    /// Its place in the edge's sequence, from 1, and the sequence's length.
    pub step: Option<(usize, usize)>,
    /// It saves this value, to break a cycle.
    pub rescues: Option<String>,
    /// What became of it.
    pub fate: Fate,
    /// The machine instructions that still do its work.
    pub machine: Vec<String>,
    /// The entities that it names, for pages.
    #[serde(skip)]
    pub entities: Vec<Entity>,
    /// The copy's instruction in the sequenced form.
    #[serde(skip)]
    pub inst: Option<(FuncId, Inst)>,
}

/// The ledger of the whole program.
pub fn compute<'a>(trace: &'a Trace, source: &'a Source) -> Vec<Row> {
    let Some(sequenced) = &trace.sequenced else { return Vec::new() };
    // IR text may begin behind SSA construction, or behind SSA form.
    let optimized = trace.optimized.as_ref();
    let mut rows = Vec::new();
    let written: FxHashMap<&str, FuncId> = trace.variables.iter().flat_map(trace::names).collect();
    let lines = |program: &'a ir::Program, function: &'a Function| {
        let written = trace.variables.as_ref().zip(written.get(function.name.as_str()));
        Lines::new(&program.positions, source, function, written.map(|(program, id)| &program.functions[*id]))
    };
    let mut gone: FxHashMap<FuncId, FxHashMap<Value, &'static str>> = FxHashMap::default();
    for (stage, phis) in &trace.removed {
        for (id, phi) in phis {
            gone.entry(*id).or_default().entry(*phi).or_insert(stage);
        }
    }
    let mut before: FxHashMap<&str, FuncId> = trace.constructed.iter().flat_map(trace::names).collect();
    let mut removed = |id: FuncId, rows: &mut Vec<Row>| {
        if let (Some(gone), Some(constructed)) = (gone.remove(&id), &trace.constructed) {
            let function = &constructed.functions[id];
            removed(&lines(constructed, function), gone, rows);
        }
    };
    for (id, function) in sequenced.functions.iter().filter(|(_, function)| !function.layout.is_empty()) {
        let ledger = Ledger {
            trace,
            id,
            split: trace.split.as_ref().map(|split| &split.functions[id]),
            sequenced: function,
            copies: machine_copies(trace, id),
            machine: machine_lines(trace, id),
            lines: lines(optimized.unwrap_or(sequenced), optimized.map_or(function, |program| &program.functions[id])),
        };
        if let Some(id) = before.remove(function.name.as_str()) {
            removed(id, &mut rows);
        }
        ledger.phis(&mut rows);
        ledger.others(&mut rows);
    }
    // Functions that are gone since: all calls of them are inlined.
    let mut others: Vec<FuncId> = before.into_values().collect();
    others.sort_unstable();
    others.into_iter().for_each(|id| removed(id, &mut rows));
    rows
}

/// For each IR instruction, what the allocator says of the copies that it was selected as, with what they were.
fn machine_copies(trace: &Trace, id: FuncId) -> FxHashMap<Inst, Vec<CopyFacts>> {
    let mut copies: FxHashMap<Inst, Vec<CopyFacts>> = FxHashMap::default();
    if let (Some(selected), Some(facts)) = (&trace.selected, &trace.facts) {
        for copy in &facts[id].copies {
            let inst = &selected.functions[id].blocks[copy.at.block].insts[copy.at.inst as usize];
            if let Some(origin) = inst.origin.expand() {
                copies.entry(origin).or_default().push(*copy);
            }
        }
    }
    copies
}

/// For each IR instruction the lines of final machine code that come from it.
fn machine_lines(trace: &Trace, id: FuncId) -> FxHashMap<Inst, Vec<String>> {
    let mut lines: FxHashMap<Inst, Vec<String>> = FxHashMap::default();
    if let Some(machine) = &trace.machine {
        let names = |id: FuncId| machine.functions[id].name.clone();
        let listing = x64::print::print_function::<PReg>(&machine.functions[id], &names, None);
        for line in listing.lines() {
            if let Some(Entity::Inst(inst)) = line.entity {
                lines.entry(Inst::new(inst as usize)).or_default().push(line.text().trim().to_string());
            }
        }
    }
    lines
}

struct Ledger<'a> {
    trace: &'a Trace,
    id: FuncId,
    split: Option<&'a Function>,
    sequenced: &'a Function,
    copies: FxHashMap<Inst, Vec<CopyFacts>>,
    machine: FxHashMap<Inst, Vec<String>>,
    lines: Lines<'a>,
}

impl Ledger<'_> {
    /// The operands of the φs that were left when SSA form was.
    fn phis(&self, rows: &mut Vec<Row>) {
        let sequences = self.sequences();
        let optimized = self.lines.function;
        // Blocks that nothing reaches go where edges are split, if they have not gone before.
        let left: FxHashSet<Block> = self.split.iter().flat_map(|split| split.layout.iter().copied()).collect();
        let unreached: FxHashSet<Block> =
            optimized.layout.iter().copied().filter(|block| !left.is_empty() && !left.contains(block)).collect();
        for edge in edges(optimized) {
            let sequence = sequences.get(&(edge.pred, edge.number)).map_or(&[][..], Vec::as_slice);
            for (phi, operand) in edge.moves(optimized) {
                let line = self.lines.of(phi, &edge, operand);
                let found = sequence.iter().position(|inst| {
                    self.sequenced.insts[*inst].result.expand() == Some(phi)
                        && matches!(self.sequenced.copy_origins.get(inst), Some(CopyOrigin::Phi { .. }))
                });
                match found {
                    None if unreached.contains(&edge.pred) => {
                        let fate = Fate::Removed { stage: "split-edges".to_string() };
                        rows.push(phi_row(optimized, phi, &edge, operand, line, fate));
                    }
                    None => rows.push(self.row(phi_row(optimized, phi, &edge, operand, line, Fate::SameValue), &edge)),
                    Some(position) => {
                        let inst = sequence[position];
                        let row = phi_row(optimized, phi, &edge, operand, line, self.fate(inst));
                        let mut row = self.row(row, &edge);
                        self.place(&mut row, inst, Some((position + 1, sequence.len())));
                        rows.push(row);
                    }
                }
            }
            for (position, inst) in sequence.iter().enumerate() {
                if let Some(CopyOrigin::Rescue { victim, .. }) = self.sequenced.copy_origins.get(inst) {
                    let operand = Operand::Value(*victim);
                    let line = self.lines.line(self.sequenced.insts[*inst].span);
                    let row = phi_row(self.sequenced, *victim, &edge, operand, line, self.fate(*inst));
                    let mut row = self.row(row, &edge);
                    row.phi = None;
                    row.rescues = Some(victim.to_string());
                    self.place(&mut row, *inst, Some((position + 1, sequence.len())));
                    rows.push(row);
                }
            }
        }
    }

    /// Copies that stand for no φ operand: those of the source, where construction kept them.
    fn others(&self, rows: &mut Vec<Row>) {
        for block in &self.sequenced.layout {
            for inst in &self.sequenced.blocks[*block].insts {
                let data = &self.sequenced.insts[*inst];
                let Op::Copy(operand) = data.op else { continue };
                let Some(result) = data.result.expand() else { continue };
                if self.sequenced.copy_origins.contains_key(inst) {
                    continue;
                }
                let mut row = Row {
                    function: self.sequenced.name.clone(),
                    variable: variable(self.sequenced, result),
                    line: self.lines.line(data.span),
                    phi: None,
                    block: Some(block.to_string()),
                    edge: None,
                    split: None,
                    copy: String::new(),
                    step: None,
                    rescues: None,
                    fate: self.fate(*inst),
                    machine: Vec::new(),
                    entities: entities(result, operand),
                    inst: None,
                };
                self.place(&mut row, *inst, None);
                rows.push(row);
            }
        }
    }

    /// The copies of each edge, in order of execution, by the edge's source and number before splitting.
    fn sequences(&self) -> FxHashMap<(Block, u8), Vec<Inst>> {
        let mut sequences: FxHashMap<(Block, u8), Vec<Inst>> = FxHashMap::default();
        for block in &self.sequenced.layout {
            for inst in &self.sequenced.blocks[*block].insts {
                if let Some(CopyOrigin::Phi { pred, edge, .. } | CopyOrigin::Rescue { pred, edge, .. }) =
                    self.sequenced.copy_origins.get(inst)
                {
                    sequences.entry((*pred, *edge)).or_default().push(*inst);
                }
            }
        }
        sequences
    }

    /// The row, with the block that splitting put on its edge.
    fn row(&self, row: Row, edge: &EdgeOf) -> Row {
        Row { split: self.split_block(edge).map(|block| block.to_string()), ..row }
    }

    /// Fills in where a copy stands.
    fn place(&self, row: &mut Row, inst: Inst, step: Option<(usize, usize)>) {
        let data = &self.sequenced.insts[inst];
        if let (Op::Copy(operand), Some(result)) = (&data.op, data.result.expand()) {
            row.copy = format!("{result} = copy {}", operand_text(*operand));
            row.entities.insert(0, Entity::Value(result.index() as u32));
        }
        row.step = step;
        row.inst = Some((self.id, inst));
        row.machine = self.machine.get(&inst).cloned().unwrap_or_default();
    }

    /// The block that splitting made on the edge.
    fn split_block(&self, edge: &EdgeOf) -> Option<Block> {
        let split = self.split?;
        let now = split.blocks.get(edge.pred)?.term.edges().nth(usize::from(edge.number))?.target;
        (now != edge.target && split.blocks[now].role == ir::Role::Split).then_some(now)
    }

    fn fate(&self, inst: Inst) -> Fate {
        let data = &self.sequenced.insts[inst];
        let constant = matches!(data.op, Op::Copy(operand) if operand.value().is_none());
        let Some(copy) = self.copies.get(&inst).and_then(|copies| copies.first()) else {
            return if constant { Fate::Constant } else { Fate::Selected };
        };
        let Some(facts) = self.trace.facts.as_ref().map(|facts| &facts[self.id]) else { return Fate::Selected };
        let witness = match &copy.verdict {
            CopyVerdict::Interferes(witness) => Some(self.witness(facts, witness)),
            CopyVerdict::Coalesced(_) | CopyVerdict::Hint(_) | CopyVerdict::Fixed => None,
        };
        match copy.fate {
            Moved::Coalesced => {
                let class = facts.vregs[copy.dst.index()].class.map_or(usize::MAX, |class| class as usize);
                let all = facts.classes.get(class).map_or(&[][..], |class| class.members.as_slice());
                let members = all.iter().take(MEMBERS).map(|member| self.vreg_text(facts, *member)).collect();
                Fate::Coalesced { class, size: all.len(), members }
            }
            Moved::SamePlace => Fate::SamePlace { witness },
            Moved::NotNeeded => Fate::NotNeeded,
            Moved::Moved { from, to } => Fate::Survives { from: place_text(from), to: place_text(to), witness },
        }
    }

    fn witness(&self, known: &Facts, witness: &facts::Witness) -> Witness {
        let kept = |site: Option<Site>| site.map(|site| self.site_text(site));
        let (point, line) = self.site_text(witness.at);
        Witness {
            values: [self.vreg_text(known, witness.dst), self.vreg_text(known, witness.src)],
            point,
            block: witness.at.block.to_string(),
            line,
            kept_by: [kept(witness.dst_use), kept(witness.src_use)],
        }
    }

    /// A virtual register as people know it: with its value, and that with its variable.
    fn vreg_text(&self, facts: &Facts, vreg: VReg) -> String {
        match facts.vregs[vreg.index()].value {
            None => vreg.to_string(),
            Some(value) => match variable(self.sequenced, value) {
                Some(name) => format!("{vreg} ({name} {value})"),
                None => format!("{vreg} ({value})"),
            },
        }
    }

    /// The instruction at a site of the selected code, with its source line.
    fn site_text(&self, site: Site) -> (String, Option<u32>) {
        let Some(selected) = &self.trace.selected else { return (String::new(), None) };
        let block = &selected.functions[self.id].blocks[site.block];
        match block.insts.get(site.inst as usize) {
            Some(inst) => {
                let names = |id: FuncId| selected.functions[id].name.clone();
                let text = x64::print::print_inst(&selected.functions[self.id], &names, &inst.op);
                (text, self.lines.line(inst.span))
            }
            None => (format!("the end of {}", site.block), self.lines.line(block.term_span)),
        }
    }
}

/// An edge of a function with arguments.
struct EdgeOf {
    pred: Block,
    number: u8,
    target: Block,
}

impl EdgeOf {
    /// The φs of the target with their operands on this edge.
    fn moves(&self, function: &Function) -> Vec<(Value, Operand)> {
        let edge = function.blocks[self.pred].term.edges().nth(usize::from(self.number));
        let args = edge.map_or(&[][..], |edge| edge.args.as_slice());
        function.blocks[self.target].params.iter().copied().zip(args.iter().copied()).collect()
    }
}

/// The edges that carry arguments, in listing order of their targets.
fn edges(function: &Function) -> Vec<EdgeOf> {
    let mut edges = Vec::new();
    for pred in &function.layout {
        match &function.blocks[*pred].term {
            Terminator::Jump(_) | Terminator::Branch { .. } => {
                for (number, edge) in function.blocks[*pred].term.edges().enumerate() {
                    if !edge.args.is_empty() {
                        edges.push(EdgeOf { pred: *pred, number: number as u8, target: edge.target });
                    }
                }
            }
            Terminator::Return(_) | Terminator::Unreachable => {}
        }
    }
    edges
}

/// The operands of φs that an optimization removed.
fn removed(lines: &Lines<'_>, by: FxHashMap<Value, &'static str>, rows: &mut Vec<Row>) {
    for edge in edges(lines.function) {
        for (phi, operand) in edge.moves(lines.function) {
            if let Some(stage) = by.get(&phi) {
                let fate = Fate::Removed { stage: stage.to_string() };
                let line = lines.of(phi, &edge, operand);
                rows.push(phi_row(lines.function, phi, &edge, operand, line, fate));
            }
        }
    }
}

/// The row of a φ's operand.
fn phi_row(function: &Function, phi: Value, edge: &EdgeOf, operand: Operand, line: Option<u32>, fate: Fate) -> Row {
    let mut entities = entities(phi, operand);
    entities.extend([edge.pred, edge.target].map(|block| Entity::Block(block.index() as u32)));
    Row {
        function: function.name.clone(),
        variable: variable(function, phi),
        line,
        phi: Some(phi.to_string()),
        block: Some(edge.target.to_string()),
        edge: Some(format!("{}→{}", edge.pred, edge.target)),
        split: None,
        copy: format!("{phi} = copy {}", operand_text(operand)),
        step: None,
        rescues: None,
        fate,
        machine: Vec::new(),
        entities,
        inst: None,
    }
}

/// Finds the source lines that φ operands come from.
struct Lines<'a> {
    positions: &'a Positions,
    source: &'a Source,
    /// The function whose φs these are.
    function: &'a Function,
    definitions: Vec<Span>,
    /// The function over variables.
    written: Option<&'a Function>,
    /// In it, the last assignment of each variable in each block.
    last: FxHashMap<(Block, Variable), Inst>,
    /// In it, the only predecessor of each block that has but one.
    before: SecondaryMap<Block, PackedOption<Block>>,
}

impl<'a> Lines<'a> {
    /// How many blocks a search for an assignment goes through.
    const FURTHEST: usize = 20;

    fn new(
        positions: &'a Positions,
        source: &'a Source,
        function: &'a Function,
        written: Option<&'a Function>,
    ) -> Lines<'a> {
        let mut last = FxHashMap::default();
        let mut before: SecondaryMap<Block, PackedOption<Block>> = SecondaryMap::new();
        let mut entries: SecondaryMap<Block, u32> = SecondaryMap::new();
        if let Some(written) = written {
            for block in &written.layout {
                for inst in &written.blocks[*block].insts {
                    written.insts[*inst].for_each_def(|value| {
                        if let Some(variable) = written.values[value].variable.expand() {
                            last.insert((*block, variable), *inst);
                        }
                    });
                }
                for edge in written.blocks[*block].term.edges() {
                    entries[edge.target] += 1;
                    before[edge.target] = if entries[edge.target] == 1 { (*block).into() } else { None.into() };
                }
            }
        }
        Lines { positions, source, function, definitions: definitions(function), written, last, before }
    }

    fn line(&self, span: Span) -> Option<u32> {
        self.positions.position(span).map(|position| position.line)
    }

    /// The line of the assignment that an operand comes from, else where the operand's value is computed, else where its
    /// variable is declared.
    fn of(&self, phi: Value, edge: &EdgeOf, operand: Operand) -> Option<u32> {
        let assigned = || self.line(self.assignment(phi, edge, operand)?);
        let computed = || self.line(*self.definitions.get(operand.value()?.index())?);
        let declared = || {
            let variable = self.function.variable_of(operand.value()?)?;
            (!variable.span.is_none()).then(|| self.source.line_of(variable.span.start))
        };
        assigned().or_else(computed).or_else(declared)
    }

    /// The last assignment to the φ's variable before the edge, if no ways meet in between. Where the block was made one with
    /// others behind it, that may be an earlier one; there it must assign the operand.
    fn assignment(&self, phi: Value, edge: &EdgeOf, operand: Operand) -> Option<Span> {
        let written = self.written?;
        let variable = self.function.values[phi].variable.expand()?;
        let mut block = edge.pred;
        let as_written = written.blocks.get(block)?.term.edges().any(|other| other.target == edge.target);
        for _ in 0..Self::FURTHEST {
            if let Some(inst) = self.last.get(&(block, variable)) {
                let data = &written.insts[*inst];
                let assigns = || match (&data.op, operand) {
                    (Op::Copy(Operand::Value(from)), Operand::Value(value)) => {
                        let variable = written.values[*from].variable;
                        variable.is_some() && variable == self.function.values[value].variable
                    }
                    (Op::Copy(from), _) => *from == operand,
                    (_, Operand::Value(_) | Operand::Int(_) | Operand::Bool(_)) => false,
                };
                return (as_written || assigns()).then_some(data.span);
            }
            block = self.before[block].expand()?;
        }
        None
    }
}

/// Where each value is defined in the source, by number; absent for parameters and φs.
fn definitions(function: &Function) -> Vec<Span> {
    let mut spans = vec![Span::NONE; function.values.len()];
    for block in &function.layout {
        for inst in &function.blocks[*block].insts {
            let data = &function.insts[*inst];
            data.for_each_def(|value| spans[value.index()] = data.span);
        }
    }
    spans
}

fn variable(function: &Function, value: Value) -> Option<String> {
    function.variable_of(value).map(|variable| variable.name.clone())
}

fn operand_text(operand: Operand) -> String {
    match operand {
        Operand::Value(value) => value.to_string(),
        Operand::Int(value) => value.to_string(),
        Operand::Bool(value) => value.to_string(),
    }
}

fn place_text(location: Location) -> String {
    match location {
        Location::Reg(reg) => reg.to_string(),
        Location::Slot(slot) => format!("{slot:?}"),
        Location::Constant(_) => "a constant".to_string(),
    }
}

fn entities(value: Value, operand: Operand) -> Vec<Entity> {
    let mut entities = vec![Entity::Value(value.index() as u32)];
    entities.extend(operand.value().map(|value| Entity::Value(value.index() as u32)));
    entities
}
