//! Prints what analyses know about a program at a stage, and the program in other compilers' languages.
//!
//! ```text
//! fn main
//!   b0
//!     b1 frontier=b1
//!       b2 frontier=b1
//!       b3
//! ```
//!
//! **In:** the state that the fact's stage leaves (see `stages`). **Out:** a listing with a section for each function.
//! Cost: linear in what is printed; liveness can be quadratic in the worst case, as the sets themselves are.

use super::state::{AllocationFacts, State};
use crate::analysis::cfg::Cfg;
use crate::analysis::dominators::DomTree;
use crate::analysis::frontiers;
use crate::analysis::liveness::Liveness;
use crate::analysis::loops::Loops;
use crate::export;
use crate::ir::{Block, Function, Program, Value};
use crate::regalloc;
use crate::support::listing::{Entity, Kind, Line, Listing, Section};
use crate::support::span::Source;
use cranelift_entity::EntityRef;

/// Which analysis or export.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FactKind {
    /// The dominator tree with frontiers.
    Dominators,
    /// Loops.
    Loops,
    /// Live-in and live-out sets.
    Liveness,
    /// Live ranges of virtual registers.
    LiveRanges,
    /// What each virtual register became.
    Allocation,
    /// The program itself.
    Ir,
    /// The program as C.
    C,
    /// The program as LLVM IR.
    Llvm,
    /// The program in QBE's language.
    Qbe,
}

impl FactKind {
    /// Is it about the last code in SSA form, whichever way out of that is taken?
    pub fn is_of_ssa(self) -> bool {
        match self {
            FactKind::Dominators
            | FactKind::Loops
            | FactKind::Liveness
            | FactKind::Ir
            | FactKind::Llvm
            | FactKind::Qbe => true,
            FactKind::LiveRanges | FactKind::Allocation | FactKind::C => false,
        }
    }
}

/// The listing of one fact.
pub fn print(kind: FactKind, state: &State, source: &Source) -> Listing {
    match (kind, state) {
        (FactKind::Dominators, State::Ir(program)) => each_function(program, dominators),
        (FactKind::Loops, State::Ir(program)) => each_function(program, loops),
        (FactKind::Liveness, State::Ir(program)) => each_function(program, liveness),
        (FactKind::LiveRanges, State::Physical(_, facts)) => each_allocated(facts, regalloc::Facts::print_live_ranges),
        (FactKind::Allocation, State::Physical(_, facts)) => each_allocated(facts, regalloc::Facts::print_allocation),
        (FactKind::Ir, State::Ir(_)) => state.print(source),
        (FactKind::C, State::Ir(program)) => text(&export::c::run(program, &source.name)),
        (FactKind::Llvm, State::Ir(program)) => text(&export::llvm::run(program, &source.name)),
        (FactKind::Qbe, State::Ir(program)) => text(&export::qbe::run(program, &source.name)),
        (
            FactKind::Dominators
            | FactKind::Loops
            | FactKind::Liveness
            | FactKind::LiveRanges
            | FactKind::Allocation
            | FactKind::Ir
            | FactKind::C
            | FactKind::Llvm
            | FactKind::Qbe,
            _,
        ) => panic!("the stage list asks for {kind:?} of {:?}", state.language()),
    }
}

fn text(text: &str) -> Listing {
    let plain = |text: &str| {
        let mut line = Line::new();
        line.put(Kind::Plain, text);
        line
    };
    Listing::plain(text.lines().map(plain).collect())
}

fn each_function(program: &Program, print: fn(&Function) -> Vec<Line>) -> Listing {
    let section = |function: &Function| Section {
        function: Some(function.name.clone()),
        lines: with_head(&function.name, print(function)),
    };
    Listing { sections: program.functions.values().map(section).collect() }
}

fn each_allocated(facts: &AllocationFacts, print: fn(&regalloc::Facts) -> Listing) -> Listing {
    let sections = facts.values().flat_map(|facts| print(facts).sections);
    let with_name = |section: Section| {
        let name = section.function.clone().unwrap_or_default();
        Section { lines: with_head(&name, section.lines), ..section }
    };
    Listing { sections: sections.map(with_name).collect() }
}

fn with_head(name: &str, lines: Vec<Line>) -> Vec<Line> {
    let mut head = Line::new();
    head.put(Kind::Keyword, "fn ").put(Kind::Name, name);
    std::iter::once(head).chain(lines).collect()
}

fn block(line: &mut Line, block: Block) {
    line.refer(Kind::Block, block.to_string(), Entity::Block(block.index() as u32));
}

fn block_list(line: &mut Line, key: &str, blocks: &[Block]) {
    if blocks.is_empty() {
        return;
    }
    line.put(Kind::Plain, format!(" {key}="));
    for (index, item) in blocks.iter().enumerate() {
        if index > 0 {
            line.put(Kind::Plain, ",");
        }
        block(line, *item);
    }
}

fn value_list(line: &mut Line, key: &str, values: &[Value], function: &Function) {
    line.put(Kind::Plain, format!("  {key}"));
    for value in values {
        line.put(Kind::Plain, " ");
        line.refer(Kind::Value, value.to_string(), Entity::Value(value.index() as u32));
        if let Some(variable) = function.variable_of(*value) {
            line.put(Kind::Plain, ":").put(Kind::Name, variable.name.clone());
        }
    }
}

/// The tree by indentation, each block with its frontier.
fn dominators(function: &Function) -> Vec<Line> {
    let cfg = Cfg::compute(function);
    let tree = DomTree::compute(function, &cfg);
    let frontiers = frontiers::compute(&cfg, &tree);
    let line = |node: &Block| {
        let mut line = Line { entity: Some(Entity::Block(node.index() as u32)), ..Line::new() };
        // A tree may be as deep as the program is long; beyond some depth the indentation tells nothing.
        let level = tree.level(*node) as usize;
        let indent = if level > 40 { format!("{}({level}) ", "  ".repeat(41)) } else { "  ".repeat(level + 1) };
        line.put(Kind::Plain, indent);
        block(&mut line, *node);
        block_list(&mut line, "frontier", &frontiers[*node]);
        line
    };
    tree.preorder().iter().map(line).collect()
}

/// The loops, outer ones first, with their blocks.
fn loops(function: &Function) -> Vec<Line> {
    let cfg = Cfg::compute(function);
    let tree = DomTree::compute(function, &cfg);
    let loops = Loops::compute(function, &cfg, &tree);
    let mut lines = Vec::new();
    let mut all: Vec<_> = loops.all().collect();
    all.sort_by_key(|id| tree.number(loops.header(*id)));
    for id in all {
        let mut line = Line::new();
        let depth = loops.loop_depth(id);
        line.put(Kind::Plain, "  ".repeat((depth as usize).min(40)));
        line.put(Kind::Keyword, "loop ");
        block(&mut line, loops.header(id));
        line.put(Kind::Plain, format!(" depth={depth}"));
        let mut blocks = loops.blocks(id).to_vec();
        blocks.sort();
        block_list(&mut line, "blocks", &blocks);
        lines.push(line);
    }
    lines
}

/// For each block the values that are live into and out of it, with the variables that they are versions of.
fn liveness(function: &Function) -> Vec<Line> {
    let cfg = Cfg::compute(function);
    let liveness = Liveness::compute(function, &cfg);
    let line = |node: &Block| {
        let mut line = Line { entity: Some(Entity::Block(node.index() as u32)), ..Line::new() };
        line.put(Kind::Plain, "  ");
        block(&mut line, *node);
        value_list(&mut line, "in=", liveness.live_in(*node), function);
        value_list(&mut line, "out=", liveness.live_out(*node), function);
        line
    };
    function.layout.iter().map(line).collect()
}
