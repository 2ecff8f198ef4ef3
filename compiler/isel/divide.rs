//! Selects `/` and `%`: by constants without a division instruction, else `idiv` behind a check for zero and, out of line,
//! the answer for a divisor of -1, whose quotient `idiv` cannot give when the dividend is the least integer.
//!
//! By powers of two: a shift of the dividend, to which `2^k - 1` is added if it is negative, so that the shift truncates
//! towards zero. By other constants: the high half of the product with a scaled reciprocal, then a shift; the sign bit of
//! the dividend corrects what is rounded down. A remainder is the dividend less quotient times divisor.
//!
//! ```text
//! %2 = int %1 / 7     →   mov v3{rax}, 5270498306774157605 · imul v4{rdx}:v3{rax}, v1 · mov v2, v4{rdx} · sar v2, 1
//!                         mov v5, v1 · shr v5, 63 · add v2, v5
//! ```
//!
//! Source: T. Granlund, P. Montgomery, "Division by Invariant Integers using Multiplication" (1994); H. Warren,
//! "Hacker's Delight" (2nd ed. 2012), sections 10-1 and 10-5. Cost: constant for each instruction.

use super::Selector;
use crate::ir::Operand;
use crate::semantics::BinaryOp;
use crate::x64::*;
use smallvec::SmallVec;

/// The scaled reciprocal of a divisor: `x / d` is the high half of `x * multiplier` (plus `x` if the multiplier, which is
/// read as signed, came out negative), shifted right by `shift`, plus 1 if `x` is negative.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reciprocal {
    pub multiplier: i64,
    pub shift: u32,
}

impl Reciprocal {
    /// For a divisor from 3 up that is no power of two.
    ///
    /// With `m = 2^(64+s) / d` rounded up, the error of `m * x / 2^(64+s)` stays below `1/d` for all `x` when
    /// `m * d - 2^(64+s) <= 2^(s+1)`; the least such `s` gives the smallest multiplier.
    pub fn of(divisor: i64) -> Reciprocal {
        assert!(divisor >= 3 && !(divisor as u64).is_power_of_two(), "{divisor} has a simpler quotient");
        let wide = divisor as u128;
        for shift in 0..63 {
            let power = 1u128 << (64 + shift);
            let multiplier = power / wide + 1;
            if multiplier * wide - power <= 1u128 << (shift + 1) {
                return Reciprocal { multiplier: multiplier as u64 as i64, shift };
            }
        }
        panic!("every divisor below 2^63 has a reciprocal with a shift below 63")
    }
}

impl Selector<'_> {
    /// Selects a quotient or a remainder.
    pub(super) fn divide(&mut self, op: BinaryOp, args: [Operand; 2], dst: VReg) {
        match args[1].constant() {
            Some(divisor) if op == BinaryOp::Div => {
                let dividend = self.reg(args[0]);
                self.quotient(dividend, divisor, dst);
            }
            Some(divisor) => {
                let dividend = self.reg(args[0]);
                self.remainder(dividend, divisor, dst);
            }
            None => self.divide_by_variable(op, args, dst),
        }
    }

    fn trap_division(&mut self, cond: Option<Cond>) {
        self.emit(Op::Trap { cond, kind: TrapKind::Division, args: SmallVec::new() });
    }

    /// `x / divisor`.
    fn quotient(&mut self, x: VReg, divisor: i64, dst: VReg) {
        match divisor {
            0 => {
                self.trap_division(None);
                self.imm(dst, 0);
            }
            1 => self.mov(dst, x),
            -1 => {
                self.mov(dst, x);
                self.unary(UnaryOp::Neg, dst);
            }
            // Only the least integer itself has a quotient other than 0.
            i64::MIN => {
                let least = self.constant(i64::MIN);
                self.imm(dst, 0);
                self.emit(Op::Cmp { width: Width::W64, lhs: RegMem::Reg(x), rhs: RegMemImm::Reg(least) });
                self.emit(Op::Set { cond: Cond::E, dst });
            }
            _ if divisor.unsigned_abs().is_power_of_two() => {
                self.biased(x, divisor.trailing_zeros(), dst);
                self.shift(ShiftOp::Sar, dst, divisor.trailing_zeros());
                if divisor < 0 {
                    self.unary(UnaryOp::Neg, dst);
                }
            }
            _ => self.quotient_by_product(x, divisor, dst),
        }
    }

    /// `dst ← x`, plus `2^k - 1` if x is negative.
    fn biased(&mut self, x: VReg, k: u32, dst: VReg) {
        let bias = (1i64 << k) - 1;
        match i32::try_from(bias) {
            Ok(disp) if k > 1 => {
                self.emit(Op::Lea { width: Width::W64, dst, src: Address::base(x, disp) });
                self.emit(Op::Test { width: Width::W64, lhs: RegMem::Reg(x), rhs: RegMemImm::Reg(x) });
                self.emit(Op::Cmov { cond: Cond::NS, dst, src: RegMem::Reg(x) });
            }
            _ => {
                self.bias(x, k, dst);
                self.alu(AluOp::Add, Width::W64, dst, RegMemImm::Reg(x));
            }
        }
    }

    /// `dst ← 2^k - 1` if x is negative, else 0.
    fn bias(&mut self, x: VReg, k: u32, dst: VReg) {
        self.mov(dst, x);
        if k > 1 {
            self.shift(ShiftOp::Sar, dst, 63);
        }
        self.shift(ShiftOp::Shr, dst, 64 - k);
    }

    fn quotient_by_product(&mut self, x: VReg, divisor: i64, dst: VReg) {
        let reciprocal = Reciprocal::of(divisor.abs());
        let (lo, hi) = (self.pinned(PReg::RAX), self.pinned(PReg::RDX));
        self.imm(lo, reciprocal.multiplier);
        self.emit(Op::MulHigh { signed: true, lo, hi, src: RegMem::Reg(x) });
        let sign = self.fresh();
        if divisor > 0 {
            self.mov(dst, hi);
            if reciprocal.multiplier < 0 {
                self.alu(AluOp::Add, Width::W64, dst, RegMemImm::Reg(x));
            }
            self.shift(ShiftOp::Sar, dst, reciprocal.shift);
            self.mov(sign, x);
            self.shift(ShiftOp::Shr, sign, 63);
            self.alu(AluOp::Add, Width::W64, dst, RegMemImm::Reg(sign));
        } else {
            // The negated quotient: -1 for a negative dividend, less the shifted product.
            self.mov(sign, hi);
            if reciprocal.multiplier < 0 {
                self.alu(AluOp::Add, Width::W64, sign, RegMemImm::Reg(x));
            }
            self.shift(ShiftOp::Sar, sign, reciprocal.shift);
            self.mov(dst, x);
            self.shift(ShiftOp::Sar, dst, 63);
            self.alu(AluOp::Sub, Width::W64, dst, RegMemImm::Reg(sign));
        }
    }

    /// `x % divisor`.
    fn remainder(&mut self, x: VReg, divisor: i64, dst: VReg) {
        match divisor {
            0 => {
                self.trap_division(None);
                self.imm(dst, 0);
            }
            1 | -1 => self.imm(dst, 0),
            // The least integer leaves 0, every other dividend itself.
            i64::MIN => {
                let (least, zero) = (self.constant(i64::MIN), self.constant(0));
                self.mov(dst, x);
                self.emit(Op::Cmp { width: Width::W64, lhs: RegMem::Reg(x), rhs: RegMemImm::Reg(least) });
                self.emit(Op::Cmov { cond: Cond::E, dst, src: RegMem::Reg(zero) });
            }
            _ if divisor.unsigned_abs().is_power_of_two() => {
                let k = divisor.trailing_zeros();
                let bias = self.fresh();
                self.bias(x, k, bias);
                let src = Address { base: Some(x), index: Some((bias, 1)), disp: 0 };
                let mask = (1i64 << k) - 1;
                let mask = if i32::try_from(mask).is_ok() {
                    RegMemImm::Imm(mask)
                } else {
                    RegMemImm::Reg(self.constant(mask))
                };
                self.emit(Op::Lea { width: Width::W64, dst, src });
                self.alu(AluOp::And, Width::W64, dst, mask);
                self.alu(AluOp::Sub, Width::W64, dst, RegMemImm::Reg(bias));
            }
            _ => {
                let (quotient, product) = (self.fresh(), self.fresh());
                // The sign of the divisor has no influence on the remainder.
                self.quotient_by_product(x, divisor.abs(), quotient);
                self.multiply(quotient, divisor.abs(), product);
                self.mov(dst, x);
                self.alu(AluOp::Sub, Width::W64, dst, RegMemImm::Reg(product));
            }
        }
    }

    fn divide_by_variable(&mut self, op: BinaryOp, args: [Operand; 2], dst: VReg) {
        let divisor = self.reg(args[1]);
        self.emit(Op::Test { width: Width::W64, lhs: RegMem::Reg(divisor), rhs: RegMemImm::Reg(divisor) });
        self.trap_division(Some(Cond::E));
        // Only the least integer divided by -1 overflows.
        let overflows = args[0].constant().is_none_or(|dividend| dividend == i64::MIN);
        if !overflows {
            self.divide_by_register(op, args[0], divisor, dst);
            return;
        }
        let (fast, negate, join) = (self.make_block(false), self.make_block(true), self.make_block(false));
        self.emit(Op::Cmp { width: Width::W64, lhs: RegMem::Reg(divisor), rhs: RegMemImm::Imm(-1) });
        self.end(Terminator::Branch { cond: Cond::E, then: negate, els: fast });
        self.open(fast);
        self.divide_by_register(op, args[0], divisor, dst);
        self.end(Terminator::Jump(join));
        self.open(negate);
        if op == BinaryOp::Div {
            self.copy(dst, args[0]);
            self.unary(UnaryOp::Neg, dst);
        } else {
            self.imm(dst, 0);
        }
        self.end(Terminator::Jump(join));
        self.open(join);
    }

    fn divide_by_register(&mut self, op: BinaryOp, dividend: Operand, divisor: VReg, dst: VReg) {
        let (lo, hi) = (self.pinned(PReg::RAX), self.pinned(PReg::RDX));
        self.copy(lo, dividend);
        self.emit(Op::SignExtend { hi, lo });
        self.emit(Op::Div { signed: true, width: Width::W64, lo, hi, src: RegMem::Reg(divisor) });
        self.mov(dst, if op == BinaryOp::Div { lo } else { hi });
    }
}
