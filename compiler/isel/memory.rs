//! Selects what reads and writes arrays: elements, lengths, and addresses that other instructions take as operands.
//!
//! An array is the address of its first element, its length the 8 bytes before it. Element `i` of an `[int]` is
//! `[array+i*8]`, of a `[bool]` `[array+i]`; constants that are added to the index become displacements.
//! Cost: constant for each instruction.

use super::Selector;
use super::plan::offset;
use crate::ir::{Op as IrOp, Operand};
use crate::semantics::Scalar;
use crate::x64::*;

impl Selector<'_> {
    /// Where the length of the array is.
    pub(super) fn len_address(&mut self, array: Operand) -> Address<VReg> {
        Address::base(self.reg(array), -8)
    }

    /// Where the element of the array is.
    pub(super) fn element_address(&mut self, element: Scalar, array: Operand, index: Operand) -> Address<VReg> {
        let base = self.reg(array);
        let size = element.size();
        let constant = index.constant().and_then(|index| i32::try_from(index.checked_mul(size as i64)?).ok());
        if let Some(disp) = constant {
            return Address::base(base, disp);
        }
        let (index, disp) = match self.plan.sunk(index).and_then(|op| offset(op, element)) {
            Some(offset) => (self.vreg(offset.value), (offset.add * size as i64) as i32),
            None => (self.reg(index), 0),
        };
        Address { base: Some(base), index: Some((index, size as u8)), disp }
    }

    /// The address of a word that the instruction that reads the operand absorbs.
    pub(super) fn absorbed_word(&mut self, operand: Operand) -> Option<Address<VReg>> {
        match self.plan.sunk(operand)? {
            IrOp::Len(array) => Some(self.len_address(*array)),
            IrOp::Load { element: Scalar::Int, array, index } => {
                Some(self.element_address(Scalar::Int, *array, *index))
            }
            _ => None,
        }
    }

    /// Stores the value.
    pub(super) fn store(&mut self, element: Scalar, array: Operand, index: Operand, value: Operand) {
        let small = value.constant().and_then(|value| i32::try_from(value).ok());
        let src = match small {
            Some(value) => StoreSource::Imm(value),
            None => StoreSource::Reg(self.reg(value)),
        };
        let dst = self.element_address(element, array, index);
        self.emit(Op::Store { ty: element, dst, src });
    }
}
