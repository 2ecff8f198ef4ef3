//! Dead code elimination: removes instructions and φs that nothing with an effect needs.
//!
//! Marking from roots (Cytron, Ferrante, Rosen, Wegman & Zadeck, "Efficiently computing static single assignment form and
//! the control dependence graph", 1991, section 7.1, without removing branches): what traps, prints, reads input, writes,
//! allocates or may run forever is a root, and so is every condition and returned value. An argument of an edge is needed
//! only if the φ that takes it is. φs that only feed each other are never marked and so go. Branches stay, therefore
//! loops that never end stay as well.
//!
//! ```text
//! b1: %3 = phi [1 from b0, %4 from b1]        b1: %5 = …
//!     %4 = int %3 + 1                    →        branch %5 ? b1 : b2
//!     %5 = …
//!     branch %5 ? b1 : b2
//! ```
//!
//! **In**: SSA. **Out**: SSA; every remaining φ and instruction is needed. Cost: linear.

use super::fuel::Fuel;
use super::summaries::Summaries;
use crate::ir::{Block, Function, Inst, InstData, Operand, Value};
use cranelift_entity::{EntitySet, SecondaryMap, packed_option::PackedOption};

/// Where a value comes from.
#[derive(Clone, Copy, Default)]
enum Definition {
    /// A parameter of the function, or nothing in the layout.
    #[default]
    Outside,
    /// An instruction.
    Inst(Inst),
    /// The φ with this index in its block.
    Phi(Block, u32),
}

/// Removes dead instructions and φs; gives their number.
pub fn run(function: &mut Function, summaries: &Summaries, fuel: &mut Fuel) -> usize {
    let live = mark(function, summaries);
    sweep(function, summaries, &live, fuel)
}

/// The values that something with an effect needs.
fn mark(function: &Function, summaries: &Summaries) -> EntitySet<Value> {
    let mut definitions: SecondaryMap<Value, Definition> = SecondaryMap::with_capacity(function.values.len());
    let mut live = EntitySet::with_capacity(function.values.len());
    let mut work: Vec<Value> = Vec::new();
    let mut need = |operand: Operand, work: &mut Vec<Value>| {
        if let Operand::Value(value) = operand
            && live.insert(value)
        {
            work.push(value);
        }
    };
    // The edges into each block, to find the operands of its φs: a list per block, linked through `edges`.
    let mut edges: Vec<(&[Operand], PackedOption<EdgeIndex>)> = Vec::new();
    let mut last_edge: SecondaryMap<Block, PackedOption<EdgeIndex>> =
        SecondaryMap::with_capacity(function.blocks.len());
    for block in &function.layout {
        let data = &function.blocks[*block];
        for (index, param) in data.params.iter().enumerate() {
            definitions[*param] = Definition::Phi(*block, index as u32);
        }
        for inst in &data.insts {
            let inst_data = &function.insts[*inst];
            if let Some(result) = inst_data.result.expand() {
                definitions[result] = Definition::Inst(*inst);
            }
            if !summaries.effects(&inst_data.op).removable() {
                inst_data.op.for_each_operand(|operand| need(operand, &mut work));
            }
        }
        if let Some(operand) = data.term.operand() {
            need(operand, &mut work);
        }
        for edge in data.term.edges() {
            let index = EdgeIndex::from_u32(edges.len() as u32);
            edges.push((&edge.args, last_edge[edge.target]));
            last_edge[edge.target] = index.into();
        }
    }
    while let Some(value) = work.pop() {
        match definitions[value] {
            Definition::Outside => {}
            Definition::Inst(inst) => function.insts[inst].op.for_each_operand(|operand| need(operand, &mut work)),
            Definition::Phi(block, index) => {
                let mut next = last_edge[block];
                while let Some(edge) = next.expand() {
                    let (args, before) = edges[edge.as_u32() as usize];
                    need(args[index as usize], &mut work);
                    next = before;
                }
            }
        }
    }
    live
}

/// The number of an edge in a list of all edges.
#[derive(Clone, Copy, PartialEq, Eq)]
struct EdgeIndex(u32);
cranelift_entity::entity_impl!(EdgeIndex);

/// Removes what is not live. Dead φs and instructions may feed each other, so they all go as one change.
fn sweep(function: &mut Function, summaries: &Summaries, live: &EntitySet<Value>, fuel: &mut Fuel) -> usize {
    let dead = |data: &InstData| {
        summaries.effects(&data.op).removable() && data.result.expand().is_none_or(|result| !live.contains(result))
    };
    // For each block with a dead φ, which of its φs live: the block and the edges into it must agree.
    let mut live_phis: SecondaryMap<Block, Option<Box<[bool]>>> = SecondaryMap::with_capacity(function.blocks.len());
    let mut any = false;
    for block in &function.layout {
        let data = &function.blocks[*block];
        if data.params.iter().any(|param| !live.contains(*param)) {
            live_phis[*block] = Some(data.params.iter().map(|param| live.contains(*param)).collect());
            any = true;
        }
        any |= data.insts.iter().any(|inst| dead(&function.insts[*inst]));
    }
    if !any || !fuel.take() {
        return 0;
    }
    let mut changes = 0;
    for block in &function.layout {
        let data = &mut function.blocks[*block];
        let before = data.insts.len() + data.params.len();
        data.insts.retain(|inst| !dead(&function.insts[*inst]));
        if let Some(flags) = &live_phis[*block] {
            retain_flagged(&mut data.params, flags);
        }
        changes += before - data.insts.len() - data.params.len();
        for edge in data.term.edges_mut() {
            if let Some(flags) = &live_phis[edge.target] {
                retain_flagged(&mut edge.args, flags);
            }
        }
    }
    changes
}

/// Keeps the elements whose flag is set.
fn retain_flagged<T>(list: &mut Vec<T>, flags: &[bool]) {
    let mut flags = flags.iter();
    list.retain(|_| *flags.next().expect("a flag for each element"));
}
