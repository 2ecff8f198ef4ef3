//! What selection asks about the values of a function: how often each is used and defined, and where.
//!
//! **in** out of SSA · **out** counts over the blocks of the layout. Cost: linear.

use crate::ir::{Block, Function, Inst, InstData, Operand, Value};
use cranelift_entity::SecondaryMap;

/// Where a value is defined.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Site {
    /// The block.
    pub block: Block,
    /// The position in the block's list of instructions.
    pub position: u32,
    /// The instruction.
    pub inst: Inst,
}

/// Uses and definitions of every value.
pub struct Facts {
    uses: SecondaryMap<Value, u32>,
    defs: SecondaryMap<Value, u32>,
    sites: SecondaryMap<Value, Option<Site>>,
}

impl Facts {
    /// Counts.
    pub fn compute(function: &Function) -> Facts {
        let mut facts = Facts { uses: SecondaryMap::new(), defs: SecondaryMap::new(), sites: SecondaryMap::new() };
        for &param in &function.params {
            facts.defs[param] += 1;
        }
        for &block in &function.layout {
            let data = &function.blocks[block];
            for (position, &inst) in data.insts.iter().enumerate() {
                let InstData { op, result, .. } = &function.insts[inst];
                op.for_each_operand(|operand| count(&mut facts.uses, operand));
                if let Some(result) = result.expand() {
                    facts.defs[result] += 1;
                    facts.sites[result] = Some(Site { block, position: position as u32, inst });
                }
            }
            data.term.for_each_operand(|operand| count(&mut facts.uses, operand));
        }
        facts
    }

    /// How often the value is read.
    pub fn uses(&self, value: Value) -> u32 {
        self.uses[value]
    }

    /// Is the value defined more than once?
    pub fn redefined(&self, value: Value) -> bool {
        self.defs[value] > 1
    }

    /// The instruction that defines the value, if it is the only one and no parameter.
    pub fn site(&self, value: Value) -> Option<Site> {
        if self.redefined(value) { None } else { self.sites[value] }
    }
}

fn count(uses: &mut SecondaryMap<Value, u32>, operand: Operand) {
    if let Some(value) = operand.value() {
        uses[value] += 1;
    }
}
