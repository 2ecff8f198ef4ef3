//! Global value numbering: merges an operation with an equal one that dominates it, and uses what branches, bounds checks
//! and assertions have shown on the way.
//!
//! A walk over the dominator tree with the scoped table of `numbering` (Briggs, Cooper & Simpson, "Value numbering", 1997,
//! the dominator-based technique): what a block has computed is known in the blocks that it dominates. Memory classes
//! get versions like variables in SSA form: a block that several versions reach starts with a new one, which is found by
//! iterated dominance frontiers (Cytron et al. 1991), for all classes at once as bits. So loads are merged, and stores
//! forwarded to loads, exactly where no write comes between.
//!
//! ```text
//! b0: bounds %1 < %2                    b0: bounds %1 < %2
//!     %3 = load int %0[%1]                  %3 = load int %0[%1]
//!     %4 = bool %3 == 7             →       %4 = bool %3 == 7
//!     branch %4 ? b1 : b2                   branch %4 ? b1 : b2
//! b1: bounds %1 < %2                    b1: print 7
//!     %5 = load int %0[%1]
//!     print %5
//! ```
//!
//! **In**: SSA. **Out**: SSA; no operation is dominated by an equal one. Cost: linear, but for the frontiers.

use super::flow::Flow;
use super::fuel::Fuel;
use super::lower_bounds::LowerBounds;
use super::memory::{Classes, Memory};
use super::numbering::{Numbering, Scope};
use super::summaries::Summaries;
use crate::analysis::frontiers;
use crate::ir::{Block, Function, Operand, Terminator};
use cranelift_entity::SecondaryMap;
use smallvec::SmallVec;

/// Numbers the values of a function; gives the number of changes.
pub fn run(function: &mut Function, summaries: &Summaries, fuel: &mut Fuel) -> usize {
    let flow = Flow::compute(function);
    number(function, &flow, summaries, None, fuel)
}

/// The same with flow facts at hand, and constants that values are never below, if they are known.
pub fn number(
    function: &mut Function,
    flow: &Flow,
    summaries: &Summaries,
    bounds: Option<LowerBounds>,
    fuel: &mut Fuel,
) -> usize {
    let mut numbering = Numbering::new(function, summaries);
    numbering.bounds = bounds;
    let new_versions = new_versions(function, flow, &numbering.memory, summaries);
    let mut open: Vec<(Block, Scope)> = Vec::new();
    for block in flow.dominators.preorder() {
        while let Some((above, scope)) = open.last().copied() {
            if flow.idom(*block) == Some(above) {
                break;
            }
            numbering.leave(scope);
            open.pop();
        }
        open.push((*block, numbering.enter()));
        learn_from_edge(function, flow, &mut numbering, *block);
        numbering.forget(new_versions[*block]);
        let operands = |function: &Function, index: usize| -> SmallVec<[Operand; 4]> {
            flow.preds(*block).iter().map(|from| from.edge(function).args[index]).collect()
        };
        numbering.number_phis(function, *block, operands, fuel);
        let mut insts = std::mem::take(&mut function.blocks[*block].insts);
        insts.retain(|inst| numbering.number(function, *inst, fuel));
        function.blocks[*block].insts = insts;
        rewrite_terminator(function, &mut numbering, *block, fuel);
    }
    // φ operands along back edges were read before their definitions were merged only in keys; every use was rewritten
    // when its block was visited, after its definition.
    numbering.changes
}

/// What the one edge into a block shows.
fn learn_from_edge(function: &Function, flow: &Flow, numbering: &mut Numbering, block: Block) {
    if let [pred] = flow.preds(block)
        && let Terminator::Branch { cond, .. } = &function.blocks[pred.block].term
    {
        numbering.learn(function, *cond, pred.edge == 0);
    }
}

/// Rewrites the terminator; on each edge of a branch, the condition is known.
fn rewrite_terminator(function: &mut Function, numbering: &mut Numbering, block: Block, fuel: &mut Fuel) {
    let mut term = std::mem::replace(&mut function.blocks[block].term, Terminator::Unreachable);
    match &mut term {
        Terminator::Branch { cond, then, els } => {
            numbering.rewrite(cond, fuel);
            for (edge, holds) in [(then, true), (els, false)] {
                let known = Operand::Bool(holds);
                for arg in &mut edge.args {
                    numbering.rewrite(arg, fuel);
                    if arg == cond && *arg != known && cond.value().is_some() && fuel.take() {
                        *arg = known;
                        numbering.changes += 1;
                    }
                }
            }
        }
        Terminator::Jump(_) | Terminator::Return(_) | Terminator::Unreachable => {
            term.for_each_operand_mut(|operand| numbering.rewrite(operand, fuel));
        }
    }
    function.blocks[block].term = term;
}

/// For each block the classes of memory that have a new version at its start, because several reach it.
fn new_versions(
    function: &Function,
    flow: &Flow,
    memory: &Memory,
    summaries: &Summaries,
) -> SecondaryMap<Block, Classes> {
    // What a block writes, and what it starts with: both make versions that end at its dominance frontier.
    let mut writes: SecondaryMap<Block, Classes> = SecondaryMap::with_capacity(function.blocks.len());
    let mut any = Classes::NONE;
    for block in flow.order() {
        for inst in &function.blocks[*block].insts {
            writes[*block] = writes[*block].union(memory.writes(function, summaries, &function.insts[*inst].op));
        }
        any = any.union(writes[*block]);
    }
    let mut starts: SecondaryMap<Block, Classes> = SecondaryMap::with_capacity(function.blocks.len());
    if any.is_empty() {
        return starts;
    }
    let frontiers = frontiers::compute(&flow.cfg, &flow.dominators);
    let mut work: Vec<Block> = flow.order().iter().copied().filter(|block| !writes[*block].is_empty()).collect();
    while let Some(block) = work.pop() {
        let made = writes[block].union(starts[block]);
        for join in &frontiers[block] {
            let all = starts[*join].union(made);
            if all != starts[*join] {
                starts[*join] = all;
                work.push(*join);
            }
        }
    }
    starts
}
