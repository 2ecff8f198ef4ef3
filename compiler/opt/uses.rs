//! Uses: for each value, the places in the layout that read it.
//!
//! **In**: any form. **Out**: places in layout order; a place that reads a value twice stands there twice. Cost: linear, two
//! sweeps over the function (a count, then the filling of one shared list).

use crate::ir::{Block, Function, Inst, Operand, Value};
use cranelift_entity::SecondaryMap;

/// A place that reads a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Use {
    /// An instruction of a block.
    Inst(Block, Inst),
    /// A block's terminator: its condition, its returned value or an argument of an edge.
    Term(Block),
}

/// The uses of all values.
pub struct Uses {
    starts: SecondaryMap<Value, u32>,
    ends: SecondaryMap<Value, u32>,
    list: Vec<Use>,
}

impl Uses {
    /// Finds the uses of every value.
    pub fn compute(function: &Function) -> Uses {
        let mut counts: SecondaryMap<Value, u32> = SecondaryMap::with_capacity(function.values.len());
        let mut total = 0;
        each(function, |value, _| {
            counts[value] += 1;
            total += 1;
        });
        let mut starts: SecondaryMap<Value, u32> = SecondaryMap::with_capacity(function.values.len());
        let mut next = 0;
        for value in function.values.keys() {
            starts[value] = next;
            next += counts[value];
        }
        let mut ends = starts.clone();
        let mut list = vec![Use::Term(Block::from_u32(0)); total];
        each(function, |value, place| {
            list[ends[value] as usize] = place;
            ends[value] += 1;
        });
        Uses { starts, ends, list }
    }

    /// The places that read the value.
    pub fn of(&self, value: Value) -> &[Use] {
        &self.list[self.starts[value] as usize..self.ends[value] as usize]
    }
}

/// Calls `visit` for each use.
fn each(function: &Function, mut visit: impl FnMut(Value, Use)) {
    for block in &function.layout {
        let data = &function.blocks[*block];
        for inst in &data.insts {
            function.insts[*inst].op.for_each_operand(|operand| {
                if let Operand::Value(value) = operand {
                    visit(value, Use::Inst(*block, *inst));
                }
            });
        }
        data.term.for_each_operand(|operand| {
            if let Operand::Value(value) = operand {
                visit(value, Use::Term(*block));
            }
        });
    }
}
