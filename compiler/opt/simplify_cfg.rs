//! Control flow simplification: folds branches that always go one way, threads edges through blocks that only pass on,
//! removes unreachable blocks and merges a block with its only successor.
//!
//! ```text
//! b0: branch true ? b1 : b2        b0: %1 = read
//! b1: %1 = read                →       print %1
//!     jump b3(%1)                      return
//! b2: jump b3(0)
//! b3: %2 = phi [%1 from b1, 0 from b2]
//!     print %2
//!     return
//! ```
//!
//! The rules, in order: (1) `branch` on a constant, or with two equal edges, becomes `jump`; (2) an edge into a block that
//! has no instructions and jumps on goes to that block's target; one into a block whose φ decides its branch goes where
//! the edge's constant says (jump threading, for `&&` and `||` in conditions); in both cases only if no other block reads
//! the φs of the block passed by; (3) unreachable blocks go; (4) a block whose only successor has no other
//! predecessor swallows it. A block that closes a loop for several edges is not passed by: it keeps the loop's back
//! edges one. Rings of empty blocks, loops without end, stay loops.
//!
//! **In**: SSA. **Out**: SSA. Cost: near-linear; each edge is threaded through at most [`THREAD_LIMIT`] blocks.

use super::fuel::Fuel;
use super::renaming::Renaming;
use super::unreachable;
use crate::analysis::cfg::Cfg;
use crate::ir::{Block, Edge, Function, Operand, Terminator, Value};
use cranelift_entity::{EntitySet, SecondaryMap};

/// The most blocks that one edge is threaded through: bounds rings and chains.
const THREAD_LIMIT: usize = 64;

/// Simplifies control flow; gives the number of changes.
pub fn run(function: &mut Function, fuel: &mut Fuel) -> usize {
    let mut changes = 0;
    for index in 0..function.layout.len() {
        let block = function.layout[index];
        changes += usize::from(fold_branch(function, block, fuel));
    }
    changes += unreachable::run(function, fuel);
    let threaded = thread(function, fuel);
    if threaded > 0 {
        changes += threaded + unreachable::run(function, fuel);
    }
    changes + merge(function, fuel)
}

/// Makes a branch that always goes one way a jump.
pub fn fold_branch(function: &mut Function, block: Block, fuel: &mut Fuel) -> bool {
    let term = &mut function.blocks[block].term;
    let Terminator::Branch { cond, then, els } = term else { return false };
    let taken = match cond {
        Operand::Bool(true) => then,
        Operand::Bool(false) => els,
        Operand::Value(_) | Operand::Int(_) if then == els => then,
        Operand::Value(_) | Operand::Int(_) => return false,
    };
    if !fuel.take() {
        return false;
    }
    *term = Terminator::Jump(taken.clone());
    true
}

/// Sends edges past blocks that only pass on.
fn thread(function: &mut Function, fuel: &mut Fuel) -> usize {
    let mut position: SecondaryMap<Block, u32> = SecondaryMap::with_default(u32::MAX);
    for (index, block) in Cfg::compute(function).rpo().iter().enumerate() {
        position[*block] = index as u32;
    }
    let passable = passable(function, &position);
    let mut changes = 0;
    for index in 0..function.layout.len() {
        let block = function.layout[index];
        let mut term = std::mem::replace(&mut function.blocks[block].term, Terminator::Unreachable);
        for edge in term.edges_mut() {
            for _ in 0..THREAD_LIMIT {
                if edge.target == block || !passable.contains(edge.target) {
                    break;
                }
                let Some(onward) = onward(function, edge) else { break };
                // An edge back to the block it came from would make this pass go round and round.
                if onward.target == edge.target || !fuel.take() {
                    break;
                }
                *edge = onward;
                changes += 1;
            }
        }
        function.blocks[block].term = term;
        changes += usize::from(fold_branch(function, block, fuel));
    }
    changes
}

/// The blocks without instructions, whose φs no other block reads.
fn passable(function: &Function, position: &SecondaryMap<Block, u32>) -> EntitySet<Block> {
    // The block whose φ a value is.
    let mut phi_of: SecondaryMap<Value, Option<Block>> = SecondaryMap::with_capacity(function.values.len());
    let mut passable = EntitySet::with_capacity(function.blocks.len());
    let mut preds: SecondaryMap<Block, u32> = SecondaryMap::with_capacity(function.blocks.len());
    for block in &function.layout {
        function.blocks[*block].term.edges().for_each(|edge| preds[edge.target] += 1);
    }
    for block in &function.layout {
        let data = &function.blocks[*block];
        if !data.insts.is_empty() || *block == function.entry() {
            continue;
        }
        let closes_loop = data.term.edges().any(|edge| position[edge.target] <= position[*block]);
        if closes_loop && preds[*block] > 1 {
            continue;
        }
        match &data.term {
            Terminator::Jump(_) | Terminator::Branch { .. } => passable.insert(*block),
            Terminator::Return(_) | Terminator::Unreachable => continue,
        };
        data.params.iter().for_each(|param| phi_of[*param] = Some(*block));
    }
    for block in &function.layout {
        let data = &function.blocks[*block];
        let mut read = |operand: Operand| {
            if let Operand::Value(value) = operand
                && let Some(home) = phi_of[value]
                && home != *block
            {
                passable.remove(home);
            }
        };
        data.insts.iter().for_each(|inst| function.insts[*inst].op.for_each_operand(&mut read));
        data.term.for_each_operand(&mut read);
    }
    passable
}

/// Where an edge into a passable block ends up, if the edge alone decides that.
fn onward(function: &Function, edge: &Edge) -> Option<Edge> {
    let data = &function.blocks[edge.target];
    let entering = |operand: Operand| match operand {
        Operand::Value(value) => match data.params.iter().position(|param| *param == value) {
            Some(index) => edge.args[index],
            None => operand,
        },
        Operand::Int(_) | Operand::Bool(_) => operand,
    };
    let next = match &data.term {
        Terminator::Jump(next) => next,
        Terminator::Branch { cond, then, els } => match entering(*cond) {
            Operand::Bool(true) => then,
            Operand::Bool(false) => els,
            Operand::Value(_) | Operand::Int(_) => return None,
        },
        Terminator::Return(_) | Terminator::Unreachable => return None,
    };
    Some(Edge { target: next.target, args: next.args.iter().map(|arg| entering(*arg)).collect() })
}

/// Merges blocks with their only successors where those have no other predecessor.
fn merge(function: &mut Function, fuel: &mut Fuel) -> usize {
    let mut preds: SecondaryMap<Block, u32> = SecondaryMap::with_capacity(function.blocks.len());
    for block in &function.layout {
        function.blocks[*block].term.edges().for_each(|edge| preds[edge.target] += 1);
    }
    let mut gone: EntitySet<Block> = EntitySet::with_capacity(function.blocks.len());
    let mut renaming = Renaming::new();
    let mut changes = 0;
    for index in 0..function.layout.len() {
        let block = function.layout[index];
        if gone.contains(block) {
            continue;
        }
        while let Terminator::Jump(edge) = &function.blocks[block].term {
            let next = edge.target;
            if preds[next] != 1 || next == block || next == function.entry() || !fuel.take() {
                break;
            }
            let args = edge.args.clone();
            let params = std::mem::take(&mut function.blocks[next].params);
            for (param, arg) in params.into_iter().zip(args) {
                renaming.replace(function, param, arg);
            }
            let swallowed = &mut function.blocks[next];
            let mut insts = std::mem::take(&mut swallowed.insts);
            let term = std::mem::replace(&mut swallowed.term, Terminator::Unreachable);
            let span = swallowed.term_span;
            let data = &mut function.blocks[block];
            data.insts.append(&mut insts);
            data.term = term;
            data.term_span = span;
            gone.insert(next);
            changes += 1;
        }
    }
    function.layout.retain(|block| !gone.contains(*block));
    renaming.apply(function);
    changes
}
