//! Selects arithmetic on ints and bools, except division.
//!
//! Two-address instructions change a copy of their first operand; allocation makes the copy vanish where the operand ends
//! there. Sums that absorb something become one `lea`. Products with constants become shifts and `lea` where those are
//! faster than the three cycles of `imul`.
//!
//! ```text
//! %3 = int %1 - %2      →   mov v3, v1 · sub v3, v2
//! %3 = int %1 * 10      →   lea v4, [v1+v1*4] · mov v3, v4 · shl v3, 1
//! ```
//!
//! Source: H. Warren, "Hacker's Delight" (2nd ed. 2012), chapter 8. Cost: constant for each instruction.

use super::Selector;
use super::plan::logical_shift;
use crate::ir::Operand;
use crate::semantics::{BinaryOp, Scalar};
use crate::x64::*;

impl Selector<'_> {
    /// Selects a binary operation.
    pub(super) fn binary(&mut self, op: BinaryOp, ty: Scalar, args: [Operand; 2], dst: VReg) {
        let width = match ty {
            Scalar::Int => Width::W64,
            Scalar::Bool => Width::W32,
        };
        match op {
            BinaryOp::Add | BinaryOp::Sub => self.sum(op, args, dst),
            BinaryOp::Mul => self.product(args, dst),
            BinaryOp::Div | BinaryOp::Rem => self.divide(op, args, dst),
            BinaryOp::And => self.mask(width, args, dst),
            BinaryOp::Or => self.two_address(AluOp::Or, width, args, true, dst),
            BinaryOp::Xor => self.exclusive_or(width, args, dst),
            BinaryOp::Shl => self.shifted(ShiftOp::Shl, args, dst),
            BinaryOp::Shr => self.shifted(ShiftOp::Sar, args, dst),
        }
    }

    /// `dst ← args[0] op args[1]`.
    fn two_address(&mut self, op: AluOp, width: Width, args: [Operand; 2], commutes: bool, dst: VReg) {
        let [mut first, mut second] = args;
        if commutes && self.prefers_swap(first, second) {
            (first, second) = (second, first);
        }
        // The source is brought into its register before the destination is written, which it may outlive.
        let src = self.source(second);
        self.copy(dst, first);
        self.alu(op, width, dst, src);
    }

    /// Of two operands that may be exchanged, should the second be the one that is changed? Constants and memory can only
    /// be the source; else it is the one that ends here, and of two such the one that is assigned anew: it is most likely
    /// the variable of a loop that the result becomes.
    fn prefers_swap(&mut self, first: Operand, second: Operand) -> bool {
        if second.constant().is_some() || self.absorbed_word(second).is_some() {
            return false;
        }
        if first.constant().is_some() || self.absorbed_word(first).is_some() {
            return true;
        }
        match (self.ends(0), self.ends(1)) {
            (false, true) => true,
            (true, false) => false,
            (true, true) | (false, false) => self.is_variable(second) && !self.is_variable(first),
        }
    }

    fn is_variable(&self, operand: Operand) -> bool {
        operand.value().is_some_and(|value| self.facts.redefined(value))
    }

    /// Does that operand of the instruction that is being selected end there?
    fn ends(&self, operand: u32) -> bool {
        self.origin.expand().is_some_and(|inst| self.facts.ends(inst, operand))
    }

    /// A sum of operands that all go on: `lea` leaves them as they are, where `add` would change a copy.
    fn sum_of_lasting(&mut self, args: [Operand; 2]) -> Option<Address<VReg>> {
        let [first, second] = args;
        if self.absorbed_word(first).is_some() || self.absorbed_word(second).is_some() {
            return None;
        }
        match (first.value(), second.value()) {
            (Some(a), Some(b)) if !self.ends(0) && !self.ends(1) => {
                Some(Address { base: Some(self.vreg(a)), index: Some((self.vreg(b), 1)), disp: 0 })
            }
            (Some(a), None) if !self.ends(0) => {
                Some(Address::base(self.vreg(a), i32::try_from(second.constant()?).ok()?))
            }
            (None, Some(b)) if !self.ends(1) => {
                Some(Address::base(self.vreg(b), i32::try_from(first.constant()?).ok()?))
            }
            (Some(_), Some(_)) | (Some(_), None) | (None, Some(_)) | (None, None) => None,
        }
    }

    fn sum(&mut self, op: BinaryOp, args: [Operand; 2], dst: VReg) {
        if let Some(shape) = self.plan.lea(op, args) {
            let index = shape.index.map(|(index, scale)| (self.vreg(index), scale));
            let src = Address { base: Some(self.vreg(shape.base)), index, disp: shape.disp };
            self.emit(Op::Lea { width: Width::W64, dst, src });
        } else if op == BinaryOp::Sub && args[0].constant() == Some(0) {
            self.copy_word(dst, args[1]);
            self.unary(UnaryOp::Neg, dst);
        } else if let Some(src) = self.sum_as_added(op, args).and_then(|args| self.sum_of_lasting(args)) {
            self.emit(Op::Lea { width: Width::W64, dst, src });
        } else if op == BinaryOp::Add {
            self.two_address(AluOp::Add, Width::W64, args, true, dst);
        } else {
            self.two_address(AluOp::Sub, Width::W64, args, false, dst);
        }
    }

    /// The operands of which the difference with a constant is the sum.
    fn sum_as_added(&self, op: BinaryOp, args: [Operand; 2]) -> Option<[Operand; 2]> {
        match (op, args[1].constant()) {
            (BinaryOp::Add, _) => Some(args),
            (_, constant) => Some([args[0], Operand::Int(constant?.checked_neg()?)]),
        }
    }

    /// Brings the operand into a register that will be changed, also from memory.
    fn copy_word(&mut self, dst: VReg, operand: Operand) {
        match self.absorbed_word(operand) {
            Some(src) => self.emit(Op::Load { ty: Scalar::Int, dst, src }),
            None => self.copy(dst, operand),
        }
    }

    fn mask(&mut self, width: Width, args: [Operand; 2], dst: VReg) {
        let shifted = self.plan.sunk(args[0]).zip(args[1].constant());
        if let Some((value, count)) = shifted.and_then(|(op, mask)| logical_shift(op, mask)) {
            self.copy(dst, value);
            self.shift(ShiftOp::Shr, dst, count);
            return;
        }
        let constant = args[0].constant().or(args[1].constant());
        let value = if args[0].constant().is_some() { args[1] } else { args[0] };
        match constant {
            // A mask without upper bits: the 32-bit instruction zeroes them.
            Some(mask) if width == Width::W64 && u32::try_from(mask).is_ok() => {
                self.copy(dst, value);
                let imm = RegMemImm::Imm(i64::from(mask as i32));
                self.alu(AluOp::And, Width::W32, dst, imm);
            }
            _ => self.two_address(AluOp::And, width, args, true, dst),
        }
    }

    fn exclusive_or(&mut self, width: Width, args: [Operand; 2], dst: VReg) {
        let value = if args[0].constant() == Some(-1) { args[1] } else { args[0] };
        if width == Width::W64 && args.iter().any(|arg| arg.constant() == Some(-1)) {
            self.copy(dst, value);
            self.unary(UnaryOp::Not, dst);
        } else {
            self.two_address(AluOp::Xor, width, args, true, dst);
        }
    }

    fn product(&mut self, args: [Operand; 2], dst: VReg) {
        let [mut first, mut second] = args;
        if self.prefers_swap(first, second) {
            (first, second) = (second, first);
        }
        match second.constant() {
            Some(factor) => {
                let src = self.reg(first);
                self.multiply(src, factor, dst);
            }
            None => {
                let src = self.reg_mem(second);
                self.copy(dst, first);
                self.emit(Op::Imul { dst, src });
            }
        }
    }

    /// `dst ← src * factor`.
    pub(super) fn multiply(&mut self, src: VReg, factor: i64, dst: VReg) {
        let shift = factor.trailing_zeros();
        let odd = if factor == 0 { 0 } else { factor >> shift };
        match odd {
            0 => self.imm(dst, 0),
            1 => {
                self.mov(dst, src);
                self.shift(ShiftOp::Shl, dst, shift);
            }
            -1 => {
                self.mov(dst, src);
                self.unary(UnaryOp::Neg, dst);
                self.shift(ShiftOp::Shl, dst, shift);
            }
            3 | 5 | 9 => {
                let address = Address { base: Some(src), index: Some((src, odd as u8 - 1)), disp: 0 };
                self.emit(Op::Lea { width: Width::W64, dst, src: address });
                self.shift(ShiftOp::Shl, dst, shift);
            }
            _ => match i32::try_from(factor) {
                Ok(imm) => self.emit(Op::ImulImm { dst, src: RegMem::Reg(src), imm }),
                Err(_) => {
                    let factor = self.constant(factor);
                    self.mov(dst, src);
                    self.emit(Op::Imul { dst, src: RegMem::Reg(factor) });
                }
            },
        }
    }

    fn shifted(&mut self, op: ShiftOp, args: [Operand; 2], dst: VReg) {
        match args[1].constant() {
            Some(count) => {
                self.copy(dst, args[0]);
                self.shift(op, dst, (count & 63) as u32);
            }
            None => {
                let count = self.reg(args[1]);
                self.copy(dst, args[0]);
                let cl = self.pinned(PReg::RCX);
                self.mov(cl, count);
                let count = Count::Cl(cl);
                self.emit(Op::Shift { op, width: Width::W64, dst: RegMem::Reg(dst), count });
            }
        }
    }
}
