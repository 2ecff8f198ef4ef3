//! Selects what is compared and what depends on it: conditions of branches, selects and assertions, and bools that are
//! values.
//!
//! A condition is the flags, as long as nothing needs it as a bool:
//!
//! ```text
//! %3 = bool %1 < %2
//! assert %3 @2:1        →   cmp v1, v2 · trapge assert
//! ```
//!
//! A bool that is a value is made by `set` into a register that was zeroed before the comparison, because zeroing may
//! change the flags and `set` writes only a byte. Cost: constant for each instruction.

use super::Selector;
use super::plan::masks;
use crate::ir::{Op as IrOp, Operand, Type};
use crate::semantics::{CompareOp, Scalar, UnaryOp as IrUnary};
use crate::x64::*;
use smallvec::{SmallVec, smallvec};

/// The condition on the flags after `cmp a, b`, signed.
fn condition_of(op: CompareOp) -> Cond {
    match op {
        CompareOp::Eq => Cond::E,
        CompareOp::Ne => Cond::NE,
        CompareOp::Lt => Cond::L,
        CompareOp::Le => Cond::LE,
        CompareOp::Gt => Cond::G,
        CompareOp::Ge => Cond::GE,
    }
}

impl<'a> Selector<'a> {
    /// Sets the flags; the condition holds when the operand is true.
    pub(super) fn condition(&mut self, operand: Operand) -> Cond {
        match self.plan.sunk(operand) {
            Some(op) => self.condition_of_op(op),
            None => {
                let reg = self.reg(operand);
                self.emit(Op::Test { width: Width::W32, lhs: RegMem::Reg(reg), rhs: RegMemImm::Reg(reg) });
                Cond::NE
            }
        }
    }

    fn condition_of_op(&mut self, op: &'a IrOp) -> Cond {
        match op {
            IrOp::Compare { op, args } => self.compare(*op, *args),
            IrOp::Unary { op: IrUnary::Not, arg } => self.condition(*arg).negate(),
            IrOp::Load { element: Scalar::Bool, array, index } => {
                let lhs = self.element_address(Scalar::Bool, *array, *index);
                self.emit(Op::CmpByte { lhs, imm: 0 });
                Cond::NE
            }
            _ => panic!("an instruction became part of a condition that makes none"),
        }
    }

    /// Compares; the condition holds when the comparison does.
    fn compare(&mut self, op: CompareOp, args: [Operand; 2]) -> Cond {
        let [mut lhs, mut rhs] = args;
        let mut op = op;
        if let Some([value, mask]) = self.plan.sunk(lhs).and_then(masks) {
            self.test(value, mask);
            return condition_of(op);
        }
        // The right side may be an immediate, the left one may not.
        if lhs.constant().is_some() && rhs.constant().is_none() {
            (lhs, rhs, op) = (rhs, lhs, op.swap());
        }
        let width = if self.function.type_of(lhs) == Type::BOOL { Width::W32 } else { Width::W64 };
        let left = self.reg_mem(lhs);
        match (left, rhs.constant()) {
            (RegMem::Reg(reg), Some(0)) => self.emit(Op::Test { width, lhs: left, rhs: RegMemImm::Reg(reg) }),
            _ => {
                let right = self.source(rhs);
                self.emit(Op::Cmp { width, lhs: left, rhs: right });
            }
        }
        condition_of(op)
    }

    /// `test`, for `value & mask` compared with 0.
    fn test(&mut self, value: Operand, mask: Operand) {
        let (value, mask) = if value.constant().is_some() { (mask, value) } else { (value, mask) };
        // Only the first operand of `test` may be in memory.
        let (value, mask) = if self.absorbed_word(mask).is_some() { (mask, value) } else { (value, mask) };
        let lhs = self.reg_mem(value);
        let narrow = mask.constant().is_some_and(|mask| (0..=i64::from(i32::MAX)).contains(&mask));
        let rhs = self.reg_imm(mask);
        self.emit(Op::Test { width: if narrow { Width::W32 } else { Width::W64 }, lhs, rhs });
    }

    /// A comparison as a value.
    pub(super) fn compare_value(&mut self, op: &'a IrOp, dst: VReg) {
        self.imm(dst, 0);
        let cond = self.condition_of_op(op);
        self.emit(Op::Set { cond, dst });
    }

    /// `!arg` as a value.
    pub(super) fn not_value(&mut self, arg: Operand, dst: VReg) {
        match self.plan.sunk(arg) {
            Some(op) => {
                self.imm(dst, 0);
                let cond = self.condition_of_op(op).negate();
                self.emit(Op::Set { cond, dst });
            }
            None => {
                self.copy(dst, arg);
                self.alu(AluOp::Xor, Width::W32, dst, RegMemImm::Imm(1));
            }
        }
    }

    /// `int(arg)`: the bool itself.
    pub(super) fn int_of_bool(&mut self, arg: Operand, dst: VReg) {
        match self.plan.sunk(arg) {
            Some(op) => self.compare_value(op, dst),
            None => self.copy(dst, arg),
        }
    }

    /// `cond ? args[0] : args[1]`.
    pub(super) fn select(&mut self, cond: Operand, args: [Operand; 2], dst: VReg) {
        if let Some(truth) = cond.constant() {
            self.copy(dst, args[usize::from(truth == 0)]);
            return;
        }
        // Both values are in registers before the comparison: bringing them there may change the flags.
        let src = self.reg(args[0]);
        self.copy(dst, args[1]);
        let cond = self.condition(cond);
        self.emit(Op::Cmov { cond, dst, src: RegMem::Reg(src) });
    }

    /// Traps unless the operand is true.
    pub(super) fn assert(&mut self, operand: Operand) {
        let cond = match operand.constant() {
            Some(0) => None,
            Some(_) => return,
            None => Some(self.condition(operand).negate()),
        };
        self.emit(Op::Trap { cond, kind: TrapKind::Assert, args: SmallVec::new() });
    }

    /// Traps unless `0 <= index < len`: one unsigned comparison, to which a negative index is above all lengths.
    pub(super) fn bounds(&mut self, index: Operand, len: Operand) {
        let length = self.source(len);
        let cond = match (index.constant(), length) {
            (Some(_), RegMemImm::Reg(_) | RegMemImm::Mem(_)) => {
                let lhs = self.reg_mem(len);
                let rhs = self.reg_imm(index);
                self.emit(Op::Cmp { width: Width::W64, lhs, rhs });
                Cond::BE
            }
            _ => {
                let lhs = RegMem::Reg(self.reg(index));
                self.emit(Op::Cmp { width: Width::W64, lhs, rhs: length });
                Cond::AE
            }
        };
        let index = match index.constant() {
            Some(value) => RegMemImm::Imm(value),
            None => RegMemImm::Reg(self.reg(index)),
        };
        self.emit(Op::Trap { cond: Some(cond), kind: TrapKind::Index, args: smallvec![index, length] });
    }
}
