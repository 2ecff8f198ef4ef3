//! Lower bounds: for each int value a constant that it is never below.
//!
//! An optimistic sparse propagation (in the manner of Wegman & Zadeck 1991): bounds start high and are lowered until they
//! hold, each at most [`LOWERINGS`] times before it is given up. `i + 1` keeps its bound only where it cannot wrap: where a
//! branch that dominates it has shown `i < x` for some x. Lengths are not negative, and so on.
//!
//! ```text
//! b1: %1 = phi i [0 from b0, %3 from b2]      0 <= %1
//!     %2 = bool %1 < %0
//!     branch %2 ? b2 : b3
//! b2: %3 = int %1 + 1                         1 <= %3
//! ```
//!
//! **In**: SSA. **Out**: bounds that hold wherever the value is defined. Cost: linear in uses.

use super::flow::Flow;
use super::uses::{Use, Uses};
use crate::ir::{Block, Function, Op, Operand, Terminator, Type, Value};
use crate::semantics::{BinaryOp, CompareOp, Scalar, UnaryOp};
use cranelift_entity::SecondaryMap;

/// How often a bound may be lowered before it is given up.
const LOWERINGS: u8 = 4;

/// How many dominators are looked at for a branch that shows that an addition cannot wrap.
const CLIMB: usize = 16;

/// A bound for each value.
pub struct LowerBounds {
    bounds: SecondaryMap<Value, i64>,
}

impl LowerBounds {
    /// A constant that the operand is never below.
    pub fn of(&self, operand: Operand) -> i64 {
        match operand {
            Operand::Value(value) => self.bounds[value],
            Operand::Int(constant) => constant,
            Operand::Bool(bit) => i64::from(bit),
        }
    }

    /// Computes the bounds of a function's values.
    pub fn compute(function: &Function, flow: &Flow) -> LowerBounds {
        let uses = Uses::compute(function);
        let mut solver = Solver {
            function,
            flow,
            found: LowerBounds { bounds: SecondaryMap::with_default(i64::MAX) },
            lowered: SecondaryMap::with_default(0),
            work: Vec::new(),
        };
        solver.found.bounds.resize(function.values.len());
        for param in &function.params {
            solver.lower(*param, i64::MIN);
        }
        for block in flow.order() {
            for inst in &function.blocks[*block].insts {
                solver.visit_inst(*block, *inst);
            }
            solver.visit_term(*block);
        }
        while let Some(value) = solver.work.pop() {
            for place in uses.of(value) {
                match place {
                    Use::Inst(block, inst) if flow.cfg.is_reachable(*block) => solver.visit_inst(*block, *inst),
                    Use::Term(block) if flow.cfg.is_reachable(*block) => solver.visit_term(*block),
                    Use::Inst(..) | Use::Term(_) => {}
                }
            }
        }
        solver.found
    }
}

struct Solver<'a> {
    function: &'a Function,
    flow: &'a Flow,
    found: LowerBounds,
    lowered: SecondaryMap<Value, u8>,
    work: Vec<Value>,
}

impl Solver<'_> {
    fn lower(&mut self, value: Value, bound: i64) {
        if self.function.values[value].ty != Type::INT || bound >= self.found.bounds[value] {
            return;
        }
        self.lowered[value] += 1;
        let given_up = self.lowered[value] > LOWERINGS;
        self.found.bounds[value] = if given_up { i64::MIN } else { bound };
        self.work.push(value);
    }

    fn visit_term(&mut self, block: Block) {
        let function = self.function;
        for edge in function.blocks[block].term.edges() {
            for (param, arg) in function.blocks[edge.target].params.iter().zip(&edge.args) {
                let bound = self.found.of(*arg);
                self.lower(*param, bound);
            }
        }
    }

    fn visit_inst(&mut self, block: Block, inst: crate::ir::Inst) {
        let data = &self.function.insts[inst];
        if let Some(result) = data.result.expand() {
            let bound = self.bound(block, &data.op);
            self.lower(result, bound);
        }
    }

    /// The lower bound of what an operation gives.
    fn bound(&self, block: Block, op: &Op) -> i64 {
        let of = |operand: &Operand| self.found.of(*operand);
        match op {
            Op::Copy(a) => of(a),
            Op::Len(_) | Op::Unary { op: UnaryOp::IntOfBool, .. } => 0,
            Op::Select { args: [a, b], .. } => of(a).min(of(b)),
            Op::Binary { op, ty: Scalar::Int, args: [a, b] } => match (op, b) {
                // Where the bound does not wrap, nothing above it does.
                (BinaryOp::Add, Operand::Int(c)) if *c <= 0 => of(a).checked_add(*c).unwrap_or(i64::MIN),
                (BinaryOp::Add, Operand::Int(c)) => {
                    let bound = of(a);
                    if bound == i64::MAX {
                        return i64::MAX;
                    }
                    if *c == 1 && self.is_below_something(block, *a) { bound.saturating_add(1) } else { i64::MIN }
                }
                (BinaryOp::And, _) if of(a) >= 0 || of(b) >= 0 => 0,
                (BinaryOp::Or | BinaryOp::Xor, _) if of(a) >= 0 && of(b) >= 0 => 0,
                (BinaryOp::Shr, _) if of(a) >= 0 => 0,
                (BinaryOp::Div, Operand::Int(c)) if *c > 0 && of(a) >= 0 => 0,
                (BinaryOp::Rem, _) if of(a) >= 0 => 0,
                (BinaryOp::Rem, Operand::Int(c)) if *c != 0 && *c != i64::MIN => 1 - c.abs(),
                (
                    BinaryOp::Add
                    | BinaryOp::Sub
                    | BinaryOp::Mul
                    | BinaryOp::Div
                    | BinaryOp::Rem
                    | BinaryOp::And
                    | BinaryOp::Or
                    | BinaryOp::Xor
                    | BinaryOp::Shl
                    | BinaryOp::Shr,
                    _,
                ) => i64::MIN,
            },
            Op::Unary { .. }
            | Op::Binary { .. }
            | Op::Compare { .. }
            | Op::Load { .. }
            | Op::Call { .. }
            | Op::Read
            | Op::Eof
            | Op::Parallel(_)
            | Op::Array { .. }
            | Op::Free(_)
            | Op::Bounds { .. }
            | Op::Store { .. }
            | Op::Print(_)
            | Op::Assert(_) => i64::MIN,
        }
    }

    /// Has a branch on the way to the block shown that the operand is less than some int, so that adding 1 cannot wrap?
    fn is_below_something(&self, block: Block, operand: Operand) -> bool {
        let mut current = block;
        for _ in 0..CLIMB {
            if let [pred] = self.flow.preds(current)
                && let Terminator::Branch { cond: Operand::Value(cond), .. } = &self.function.blocks[pred.block].term
                && let Some((op, [a, b])) = self.comparison(pred.block, *cond)
            {
                let op = if pred.edge == 0 { op } else { op.negate() };
                if (a == operand && op == CompareOp::Lt) || (b == operand && op == CompareOp::Gt) {
                    return true;
                }
            }
            match self.flow.idom(current) {
                Some(above) => current = above,
                None => return false,
            }
        }
        false
    }

    /// The comparison that defines a condition near the end of the block.
    fn comparison(&self, block: Block, cond: Value) -> Option<(CompareOp, [Operand; 2])> {
        self.function.blocks[block].insts.iter().rev().take(4).find_map(|inst| {
            let data = &self.function.insts[*inst];
            match &data.op {
                Op::Compare { op, args } if data.result.expand() == Some(cond) => Some((*op, *args)),
                _ => None,
            }
        })
    }
}
