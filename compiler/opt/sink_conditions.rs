//! Condition sinking: puts a copy of a comparison right before each branch that it decides, where it stands elsewhere.
//!
//! Comparison and branch become two machine instructions where they stand together; a condition that comes from
//! another block must be made a value, kept in a register and tested. Value numbering and code motion move conditions
//! away from their branches; this undoes it at the end, as rematerialization (Briggs, Cooper & Torczon, 1992) does for
//! constants. A comparison that nothing else reads is left to dead code elimination.
//!
//! ```text
//! b0: %2 = bool %0 < %1            b0: branch %1 ? …
//!     …                        →   b3: %5 = bool %0 < %1
//! b3: branch %2 ? b4 : b5              branch %5 ? b4 : b5
//! ```
//!
//! **In**: SSA. **Out**: SSA. Cost: linear.

use super::fuel::Fuel;
use crate::ir::{Block, Function, Inst, Op, Operand, Terminator, Type, Value};
use cranelift_entity::{SecondaryMap, packed_option::PackedOption};

/// Copies comparisons to their branches; gives the number of copies.
pub fn run(function: &mut Function, fuel: &mut Fuel) -> usize {
    let mut home: SecondaryMap<Value, PackedOption<Block>> = SecondaryMap::with_capacity(function.values.len());
    let mut comparison: SecondaryMap<Value, PackedOption<Inst>> = SecondaryMap::with_capacity(function.values.len());
    for block in &function.layout {
        for inst in &function.blocks[*block].insts {
            let data = &function.insts[*inst];
            if let (Op::Compare { .. }, Some(result)) = (&data.op, data.result.expand()) {
                home[result] = (*block).into();
                comparison[result] = (*inst).into();
            }
        }
    }
    let mut changes = 0;
    for index in 0..function.layout.len() {
        let block = function.layout[index];
        let Terminator::Branch { cond: Operand::Value(cond), .. } = function.blocks[block].term else { continue };
        let Some(inst) = comparison[cond].expand().filter(|_| home[cond].expand() != Some(block)) else { continue };
        if !fuel.take() {
            continue;
        }
        let (op, span) = (function.insts[inst].op.clone(), function.insts[inst].span);
        let value = function.make_value(Type::BOOL, None);
        let copy = function.make_inst(op, Some(value), span);
        function.blocks[block].insts.push(copy);
        if let Terminator::Branch { cond, .. } = &mut function.blocks[block].term {
            *cond = value.into();
        }
        changes += 1;
    }
    changes
}
