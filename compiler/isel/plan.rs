//! Decides which instructions of a block are not selected where they stand, but as part of the instruction that uses
//! them: a comparison with its branch, a load with the addition that reads it, `i + 1` within an address.
//!
//! One walk over the block, before anything is selected. An instruction is *absorbed* by a use when its value has one
//! definition, in the same block, and everything it reads is unchanged between its place and the use: values out of SSA
//! form may be assigned again, and memory may be written. It disappears (is *sunk*) when all uses of its value absorb it.
//!
//! ```text
//! %5 = int %2 + 1
//! %6 = load int %1[%5]        →   add v3, [v1+v2*8+8]
//! %7 = int %3 + %6
//! ```
//!
//! Source: maximal munch by use counts, as in A. Koes, S. Goldstein, "Near-Optimal Instruction Selection on DAGs" (2008),
//! without its duplication of what costs something.
//! **in** out of SSA · **out** for each value, whether it is sunk. Cost: linear; patterns are at most 4 deep.

use super::facts::Facts;
use crate::ir::{Block, Function, Inst, Op, Operand, PrintArg, Terminator, Value};
use crate::semantics::{BinaryOp, CompareOp, Scalar, UnaryOp};
use cranelift_entity::SecondaryMap;

/// Patterns no deeper than this are formed.
const DEPTH: u32 = 4;

/// What is absorbed.
pub struct Plan<'a> {
    function: &'a Function,
    facts: &'a Facts,
    /// How many of its uses absorb each value.
    absorbed: SecondaryMap<Value, u32>,
    /// The last definition so far, in the block that is walked, of values with several.
    redefined: SecondaryMap<Value, Option<(Block, u32)>>,
    block: Block,
    /// One more than the position of the last instruction so far that may write elements of that kind, or free arrays.
    int_written: u32,
    bool_written: u32,
    freed: u32,
}

/// `value + add`, or a constant: how an index enters an address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Offset {
    pub value: Value,
    pub add: i64,
}

/// A summand of an address that `lea` computes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part {
    /// A value in a register.
    Value(Value),
    /// A constant.
    Constant(i32),
    /// A value times 2, 4 or 8.
    Scaled(Value, u8),
    /// A value times 3, 5 or 9.
    Multiple(Value, u8),
    /// A value plus a constant.
    Plus(Value, i32),
    /// The sum of two values.
    Sum(Value, Value),
}

/// `base + index * scale + disp` over values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LeaShape {
    pub base: Value,
    pub index: Option<(Value, u8)>,
    pub disp: i32,
}

impl<'a> Plan<'a> {
    /// Plans the whole function.
    pub fn compute(function: &'a Function, facts: &'a Facts) -> Plan<'a> {
        let mut plan = Plan {
            function,
            facts,
            absorbed: SecondaryMap::new(),
            redefined: SecondaryMap::new(),
            block: function.entry(),
            int_written: 0,
            bool_written: 0,
            freed: 0,
        };
        for &block in &function.layout {
            plan.block = block;
            (plan.int_written, plan.bool_written, plan.freed) = (0, 0, 0);
            for (position, &inst) in function.blocks[block].insts.iter().enumerate() {
                plan.inst(inst);
                plan.record(inst, position as u32);
            }
            match &function.blocks[block].term {
                Terminator::Branch { cond, .. } => plan.condition(*cond),
                Terminator::Jump(_) | Terminator::Return(_) | Terminator::Unreachable => {}
            }
        }
        plan
    }

    /// The instruction that defines the operand, if that is selected as part of its uses.
    pub fn sunk(&self, operand: Operand) -> Option<&'a Op> {
        let value = operand.value()?;
        if self.absorbed[value] == 0 || self.absorbed[value] < self.facts.uses(value) {
            return None;
        }
        self.facts.site(value).map(|site| &self.function.insts[site.inst].op)
    }

    /// What changes behind the instruction: memory and values that are assigned again.
    fn record(&mut self, inst: Inst, position: u32) {
        let data = &self.function.insts[inst];
        match &data.op {
            Op::Store { element: Scalar::Int, .. } => self.int_written = position + 1,
            Op::Store { element: Scalar::Bool, .. } => self.bool_written = position + 1,
            Op::Call { .. } => (self.int_written, self.bool_written) = (position + 1, position + 1),
            Op::Free(_) => {
                (self.int_written, self.bool_written, self.freed) = (position + 1, position + 1, position + 1);
            }
            Op::Copy(_)
            | Op::Parallel(_)
            | Op::Binary { .. }
            | Op::Compare { .. }
            | Op::Unary { .. }
            | Op::Select { .. }
            | Op::Array { .. }
            | Op::Len(_)
            | Op::Bounds { .. }
            | Op::Load { .. }
            | Op::Read
            | Op::Eof
            | Op::Print(_)
            | Op::Assert(_) => {}
        }
        data.for_each_def(|value| {
            if self.facts.redefined(value) {
                self.redefined[value] = Some((self.block, position));
            }
        });
    }

    /// Plans what the instruction absorbs.
    fn inst(&mut self, inst: Inst) {
        let function = self.function;
        match &function.insts[inst].op {
            Op::Binary { op, ty, args } => self.binary(*op, *ty, *args),
            Op::Compare { op, args } => self.compare(*op, *args),
            Op::Unary { op: UnaryOp::Not | UnaryOp::IntOfBool, arg } => self.comparison(*arg),
            Op::Select { cond, .. } => self.condition(*cond),
            Op::Assert(cond) => self.condition(*cond),
            Op::Bounds { len, .. } => {
                self.absorb(*len, |op| matches!(op, Op::Len(_)));
            }
            Op::Load { element, index, .. } | Op::Store { element, index, .. } => self.index(*element, *index),
            Op::Unary { op: UnaryOp::Neg | UnaryOp::BitNot, .. }
            | Op::Copy(_)
            | Op::Parallel(_)
            | Op::Array { .. }
            | Op::Free(_)
            | Op::Len(_)
            | Op::Call { .. }
            | Op::Read
            | Op::Eof => {}
            Op::Print(args) => {
                debug_assert!(args.iter().all(|arg| matches!(arg, PrintArg::Operand(_) | PrintArg::Str(_))))
            }
        }
    }

    /// Absorbs what only this use reads, if its instruction is of the kind.
    fn absorb(&mut self, operand: Operand, kind: impl Fn(&Op) -> bool) -> bool {
        let Some(op) = self.candidate(operand) else { return false };
        let absorbs = kind(op);
        if absorbs && let Some(value) = operand.value() {
            self.absorbed[value] += 1;
        }
        absorbs
    }

    /// The operand's instruction, if only this use reads it and it could as well stand here.
    fn candidate(&self, operand: Operand) -> Option<&'a Op> {
        let value = operand.value()?;
        if self.facts.uses(value) != 1 { None } else { self.movable(value) }
    }

    /// The value's instruction, if it could as well stand here.
    fn movable(&self, value: Value) -> Option<&'a Op> {
        let site = self.facts.site(value).filter(|site| site.block == self.block)?;
        self.unchanged(value, 0).then(|| &self.function.insts[site.inst].op)
    }

    /// Would the value's instruction, with all that it absorbs, give the same here as at its place?
    fn unchanged(&self, value: Value, depth: u32) -> bool {
        let Some(site) = self.facts.site(value).filter(|site| site.block == self.block) else { return false };
        let op = &self.function.insts[site.inst].op;
        let written = match op {
            Op::Load { element: Scalar::Int, .. } => self.int_written,
            Op::Load { element: Scalar::Bool, .. } => self.bool_written,
            Op::Len(_) => self.freed,
            Op::Binary { .. } | Op::Compare { .. } | Op::Unary { .. } => 0,
            Op::Copy(_)
            | Op::Parallel(_)
            | Op::Select { .. }
            | Op::Array { .. }
            | Op::Free(_)
            | Op::Bounds { .. }
            | Op::Store { .. }
            | Op::Call { .. }
            | Op::Read
            | Op::Eof
            | Op::Print(_)
            | Op::Assert(_) => return false,
        };
        let mut same = depth < DEPTH && written <= site.position;
        op.for_each_operand(|operand| {
            let Some(read) = operand.value().filter(|_| same) else { return };
            same = if self.absorbed[read] > 0 {
                self.unchanged(read, depth + 1)
            } else {
                self.redefined[read].is_none_or(|(block, position)| block != self.block || position <= site.position)
            };
        });
        same
    }

    /// Has no use of the operand been absorbed?
    fn plain(&self, operand: Operand) -> Option<Value> {
        operand.value().filter(|value| self.absorbed[*value] == 0)
    }

    /// A condition that is only tested: the comparison, negation or load behind it need not make a bool. A comparison may
    /// be made once for each of several tests, as it costs no more than testing a bool; where the flags are still those
    /// of the comparison before, it goes again.
    fn condition(&mut self, cond: Operand) {
        let Some(value) = cond.value() else { return };
        let Some(op) = self.movable(value) else { return };
        let absorbs = match op {
            Op::Compare { .. } => true,
            Op::Unary { op: UnaryOp::Not, .. } | Op::Load { element: Scalar::Bool, .. } => self.facts.uses(value) == 1,
            _ => false,
        };
        if absorbs {
            self.absorbed[value] += 1;
        }
    }

    fn comparison(&mut self, arg: Operand) {
        self.absorb(arg, |op| matches!(op, Op::Compare { .. }));
    }

    fn compare(&mut self, op: CompareOp, args: [Operand; 2]) {
        let with_zero = args[1].constant() == Some(0) && matches!(op, CompareOp::Eq | CompareOp::Ne);
        if with_zero && self.absorb(args[0], |op| masks(op).is_some()) {
            return;
        }
        if !self.absorb(args[1], is_word_in_memory) {
            self.absorb(args[0], is_word_in_memory);
        }
    }

    fn index(&mut self, element: Scalar, index: Operand) {
        let Some(value) = index.value() else { return };
        if let Some(op) = self.movable(value)
            && offset(op, element).is_some_and(|offset| self.absorbed[offset.value] == 0)
        {
            self.absorbed[value] += 1;
        }
    }

    fn binary(&mut self, op: BinaryOp, ty: Scalar, args: [Operand; 2]) {
        if ty == Scalar::Bool {
            return;
        }
        if matches!(op, BinaryOp::Add | BinaryOp::Sub) && self.sum(op, args) {
            return;
        }
        let reads_memory = match op {
            BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul | BinaryOp::And | BinaryOp::Or | BinaryOp::Xor => true,
            BinaryOp::Div | BinaryOp::Rem | BinaryOp::Shl | BinaryOp::Shr => false,
        };
        if op == BinaryOp::And
            && let Some(mask) = args[1].constant()
            && self.absorb(args[0], |op| logical_shift(op, mask).is_some())
        {
            return;
        }
        // With a constant on the other side, the value must be brought into a register anyway.
        if !reads_memory || args.iter().any(|arg| arg.constant().is_some()) || args[0] == args[1] {
            return;
        }
        if !self.absorb(args[1], is_word_in_memory) && op.commutes() {
            self.absorb(args[0], is_word_in_memory);
        }
    }

    /// Sums that one `lea` computes.
    fn sum(&mut self, op: BinaryOp, args: [Operand; 2]) -> bool {
        let Some([first, second]) = plain_parts(op, args) else { return false };
        let parts = [self.candidate_part(args[0]), self.candidate_part(args[1])];
        let choices = [(parts[0], parts[1]), (parts[0], None), (None, parts[1])];
        for (left, right) in choices {
            if (left.is_none() && right.is_none()) || (op == BinaryOp::Sub && right.is_some()) {
                continue;
            }
            if combine(left.unwrap_or(first), right.unwrap_or(second)).is_some() {
                for (part, arg) in [(left, args[0]), (right, args[1])] {
                    if let (Some(_), Some(value)) = (part, arg.value()) {
                        self.absorbed[value] += 1;
                    }
                }
                return true;
            }
        }
        false
    }

    fn candidate_part(&self, operand: Operand) -> Option<Part> {
        let op = self.candidate(operand)?;
        let mut plain = true;
        op.for_each_operand(|operand| plain &= operand.value().is_none() || self.plain(operand).is_some());
        if plain { part(op) } else { None }
    }

    /// The sum as one address, if `lea` is to compute it: that is if it absorbs something.
    pub fn lea(&self, op: BinaryOp, args: [Operand; 2]) -> Option<LeaShape> {
        let parts = plain_parts(op, args)?;
        let absorbed = args.map(|arg| self.sunk(arg).and_then(part));
        if absorbed == [None, None] {
            return None;
        }
        combine(absorbed[0].unwrap_or(parts[0]), absorbed[1].unwrap_or(parts[1]))
    }
}

/// The operands of a sum as they are, a subtracted constant negated.
fn plain_parts(op: BinaryOp, args: [Operand; 2]) -> Option<[Part; 2]> {
    let part = |operand: Operand| match operand.value() {
        Some(value) => Some(Part::Value(value)),
        None => i32::try_from(operand.constant()?).ok().map(Part::Constant),
    };
    let parts = [part(args[0])?, part(args[1])?];
    match (op, parts) {
        (BinaryOp::Add, _) => Some(parts),
        (BinaryOp::Sub, [left, Part::Constant(right)]) => Some([left, Part::Constant(right.checked_neg()?)]),
        _ => None,
    }
}

/// Is it a word in memory, that other instructions can read as an operand?
fn is_word_in_memory(op: &Op) -> bool {
    matches!(op, Op::Load { element: Scalar::Int, .. } | Op::Len(_))
}

/// `x & y`, or `x % 2^k`, which is 0 when `x & (2^k - 1)` is: what `test` does.
pub fn masks(op: &Op) -> Option<[Operand; 2]> {
    match op {
        Op::Binary { op: BinaryOp::And, args, .. } => Some(*args),
        Op::Binary { op: BinaryOp::Rem, args, .. } => {
            let magnitude = args[1].constant()?.unsigned_abs();
            magnitude.is_power_of_two().then(|| [args[0], Operand::Int((magnitude - 1) as i64)])
        }
        _ => None,
    }
}

/// `x >> k & mask`, where the mask is what a logical shift would leave: the value and the count.
pub fn logical_shift(op: &Op, mask: i64) -> Option<(Operand, u32)> {
    let Op::Binary { op: BinaryOp::Shr, ty: Scalar::Int, args } = op else { return None };
    let count = u32::try_from(args[1].constant()?).ok().filter(|count| (1..64).contains(count))?;
    (mask as u64 == u64::MAX >> count).then_some((args[0], count))
}

/// The value and the constant that an index is the sum of. What addresses add is exact: they wrap as sums do, modulo
/// 2^64, and so does the product with the size of an element.
pub fn offset(op: &Op, element: Scalar) -> Option<Offset> {
    let (value, add) = match op {
        Op::Binary { op: BinaryOp::Add, ty: Scalar::Int, args } => match (args[0].value(), args[1].value()) {
            (Some(value), None) => (value, args[1].constant()?),
            (None, Some(value)) => (value, args[0].constant()?),
            (Some(_), Some(_)) | (None, None) => return None,
        },
        Op::Binary { op: BinaryOp::Sub, ty: Scalar::Int, args } => {
            (args[0].value()?, args[1].constant()?.checked_neg()?)
        }
        _ => return None,
    };
    let bytes = add.checked_mul(element.size() as i64)?;
    i32::try_from(bytes).is_ok().then_some(Offset { value, add })
}

/// What an absorbed summand is.
fn part(op: &Op) -> Option<Part> {
    let Op::Binary { op, ty: Scalar::Int, args } = op else { return None };
    let small = |operand: Operand| i32::try_from(operand.constant()?).ok();
    match (op, args[0].value(), args[1].value()) {
        (BinaryOp::Add, Some(left), Some(right)) => Some(Part::Sum(left, right)),
        (BinaryOp::Add, Some(value), None) => Some(Part::Plus(value, small(args[1])?)),
        (BinaryOp::Add, None, Some(value)) => Some(Part::Plus(value, small(args[0])?)),
        (BinaryOp::Sub, Some(value), None) => Some(Part::Plus(value, small(args[1])?.checked_neg()?)),
        (BinaryOp::Mul, Some(value), None) => multiple(value, small(args[1])?),
        (BinaryOp::Mul, None, Some(value)) => multiple(value, small(args[0])?),
        (BinaryOp::Shl, Some(value), None) => match small(args[1])? {
            count @ 1..=3 => Some(Part::Scaled(value, 1 << count)),
            _ => None,
        },
        _ => None,
    }
}

fn multiple(value: Value, factor: i32) -> Option<Part> {
    match factor {
        2 | 4 | 8 => Some(Part::Scaled(value, factor as u8)),
        3 | 5 | 9 => Some(Part::Multiple(value, factor as u8)),
        _ => None,
    }
}

/// The sum of two parts as one address.
fn combine(left: Part, right: Part) -> Option<LeaShape> {
    let shape = |base, index, disp| Some(LeaShape { base, index, disp });
    match (left, right) {
        (Part::Value(base), Part::Scaled(index, scale)) | (Part::Scaled(index, scale), Part::Value(base)) => {
            shape(base, Some((index, scale)), 0)
        }
        (Part::Plus(base, disp), Part::Scaled(index, scale)) | (Part::Scaled(index, scale), Part::Plus(base, disp)) => {
            shape(base, Some((index, scale)), disp)
        }
        (Part::Value(base), Part::Plus(index, disp)) | (Part::Plus(index, disp), Part::Value(base)) => {
            shape(base, Some((index, 1)), disp)
        }
        (Part::Constant(disp), Part::Sum(base, index)) | (Part::Sum(base, index), Part::Constant(disp)) => {
            shape(base, Some((index, 1)), disp)
        }
        (Part::Constant(disp), Part::Multiple(value, factor))
        | (Part::Multiple(value, factor), Part::Constant(disp)) => shape(value, Some((value, factor - 1)), disp),
        (Part::Constant(disp), Part::Scaled(value, 2)) | (Part::Scaled(value, 2), Part::Constant(disp)) => {
            shape(value, Some((value, 1)), disp)
        }
        _ => None,
    }
}
