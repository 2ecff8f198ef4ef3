//! SSA repair: after a pass has given values a second definition elsewhere, makes every use read the one that reaches it.
//!
//! Each group of values is treated as one variable, and its uses are looked up backwards from block to block, with a φ where
//! several edges meet (Braun et al. 2013, in the complete graph, without recursion). φs that turn out redundant are left
//! to copy propagation.
//!
//! **In**: for each group the blocks that define it, with the value at their end; on every path to a use stands a definition.
//! **Out**: SSA. Cost: linear in the blocks across which the groups live.

use super::flow::Flow;
use crate::ir::{Block, Function, Operand, Value};
use cranelift_entity::SecondaryMap;
use rustc_hash::FxHashMap;

/// Values that stand for one variable.
pub struct Repair {
    /// The group of each value, from 1; 0 for none.
    group: SecondaryMap<Value, u32>,
    /// The block that defines each value of a group.
    home: SecondaryMap<Value, Option<Block>>,
    /// A value of each group.
    sample: Vec<Value>,
    /// What each group is at the end of a block that defines it.
    at_end: FxHashMap<(u32, Block), Operand>,
    /// What each group is at the start of a block.
    at_start: FxHashMap<(u32, Block), Operand>,
    /// New φs in the order of their making, with their operands.
    phis: Vec<Phi>,
}

struct Phi {
    group: u32,
    block: Block,
    args: Vec<Operand>,
}

impl Repair {
    /// No groups yet.
    pub fn new() -> Repair {
        Repair {
            group: SecondaryMap::new(),
            home: SecondaryMap::new(),
            sample: Vec::new(),
            at_end: FxHashMap::default(),
            at_start: FxHashMap::default(),
            phis: Vec::new(),
        }
    }

    /// The value, defined in one block, now has a second definition in another.
    pub fn add(&mut self, value: Value, block: Block, other: Value, other_block: Block) {
        self.sample.push(value);
        let group = self.sample.len() as u32;
        self.group[value] = group;
        self.home[value] = Some(block);
        self.group[other] = group;
        self.home[other] = Some(other_block);
        self.at_end.insert((group, block), value.into());
        self.at_end.insert((group, other_block), other.into());
    }

    /// Rewrites all uses. `flow` is that of the function as it is now.
    pub fn apply(mut self, function: &mut Function, flow: &Flow) {
        if self.sample.is_empty() {
            return;
        }
        for block in flow.order() {
            let insts = std::mem::take(&mut function.blocks[*block].insts);
            for inst in &insts {
                let mut op = std::mem::replace(&mut function.insts[*inst].op, crate::ir::Op::Read);
                op.for_each_operand_mut(|operand| self.rewrite(function, flow, *block, operand, false));
                function.insts[*inst].op = op;
            }
            function.blocks[*block].insts = insts;
            let mut term = std::mem::replace(&mut function.blocks[*block].term, crate::ir::Terminator::Unreachable);
            term.for_each_operand_mut(|operand| self.rewrite(function, flow, *block, operand, true));
            function.blocks[*block].term = term;
        }
        // Operands of new φs are looked up in turn; that may make more of them.
        let mut next = 0;
        while next < self.phis.len() {
            let (group, block) = (self.phis[next].group, self.phis[next].block);
            let args = flow.preds(block).iter().map(|pred| self.end(function, flow, group, pred.block)).collect();
            self.phis[next].args = args;
            next += 1;
        }
        for phi in &self.phis {
            for (pred, arg) in flow.preds(phi.block).iter().zip(&phi.args) {
                pred.edge_mut(function).args.push(*arg);
            }
        }
    }

    /// Makes one operand read what reaches it.
    fn rewrite(&mut self, function: &mut Function, flow: &Flow, block: Block, operand: &mut Operand, at_end: bool) {
        let Operand::Value(value) = *operand else { return };
        let group = self.group[value];
        // A use in the block of its own definition stays.
        if group == 0 || self.home[value] == Some(block) {
            return;
        }
        *operand =
            if at_end { self.end(function, flow, group, block) } else { self.start(function, flow, group, block) };
    }

    /// What the group is at the end of a block.
    fn end(&mut self, function: &mut Function, flow: &Flow, group: u32, block: Block) -> Operand {
        match self.at_end.get(&(group, block)) {
            Some(known) => *known,
            None => self.start(function, flow, group, block),
        }
    }

    /// What the group is at the start of a block.
    fn start(&mut self, function: &mut Function, flow: &Flow, group: u32, block: Block) -> Operand {
        let mut passed = Vec::new();
        let mut current = block;
        let found = loop {
            if let Some(known) = self.at_start.get(&(group, current)) {
                break *known;
            }
            passed.push(current);
            match flow.preds(current) {
                [pred] => match self.at_end.get(&(group, pred.block)) {
                    Some(known) => break *known,
                    None => current = pred.block,
                },
                _ => {
                    let sample = self.sample[group as usize - 1];
                    let variable = function.values[sample].variable.expand();
                    let ty = function.values[sample].ty;
                    let phi = function.make_value(ty, variable);
                    function.blocks[current].params.push(phi);
                    self.phis.push(Phi { group, block: current, args: Vec::new() });
                    break phi.into();
                }
            }
        };
        for block in passed {
            self.at_start.insert((group, block), found);
        }
        found
    }
}
