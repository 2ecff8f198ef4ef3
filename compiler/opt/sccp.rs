//! Sparse conditional constant propagation: finds the values that are the same constant on every path that can run,
//! replaces them, and folds the branches that they decide.
//!
//! Wegman & Zadeck, "Constant propagation with conditional branches", 1991. Every value starts as "no evidence", may be
//! lowered to one constant and then to "varies"; two worklists follow edges found executable and values lowered. An
//! operation is computed by `semantics`, so it wraps as at run time; one that would trap varies, and stays.
//!
//! ```text
//! b0: jump b1                                    b0: jump b1
//! b1: %1 = phi [1 from b0, %3 from b3]           b1: jump b3
//!     %2 = bool %1 == 1                     →    b3: …
//!     branch %2 ? b3 : b2
//! b2: jump b3
//! b3: %3 = phi [%1 from b1, 2 from b2] …
//! ```
//!
//! **In**: SSA. **Out**: SSA; unreachable blocks are gone, and with them their φ operands (which stand on their edges).
//! Cost: linear in uses and edges: a value is lowered at most twice.

use super::fuel::Fuel;
use super::renaming::Renaming;
use super::simplify_cfg::fold_branch;
use super::unreachable;
use super::uses::{Use, Uses};
use crate::ir::{Block, Function, Inst, Op, Operand, Terminator, Type, Value};
use crate::semantics::BinaryOp;
use cranelift_entity::{EntitySet, SecondaryMap};

/// What is known of a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Lattice {
    /// No path that can run has given it a value yet.
    #[default]
    Unknown,
    /// This constant, as a register holds it.
    Constant(i64),
    /// More than one value, or not computable.
    Varies,
}

impl Lattice {
    /// What is known where paths meet.
    fn meet(self, other: Lattice) -> Lattice {
        match (self, other) {
            (Lattice::Unknown, other) => other,
            (known, Lattice::Unknown) => known,
            (Lattice::Constant(a), Lattice::Constant(b)) if a == b => self,
            (Lattice::Constant(_) | Lattice::Varies, Lattice::Constant(_) | Lattice::Varies) => Lattice::Varies,
        }
    }
}

/// Propagates constants; gives the number of values and branches replaced and blocks removed.
pub fn run(function: &mut Function, fuel: &mut Fuel) -> usize {
    let solution = Solver::new(function).solve();
    let mut renaming = Renaming::new();
    let mut changes = 0;
    for index in 0..function.layout.len() {
        let block = function.layout[index];
        if !solution.reached.contains(block) {
            continue;
        }
        for param in 0..function.blocks[block].params.len() {
            let value = function.blocks[block].params[param];
            if let Some(constant) = solution.constant(function, value)
                && fuel.take()
            {
                // The φ itself stays, unread, for dead code elimination.
                renaming.replace(function, value, constant);
            }
        }
        let insts = std::mem::take(&mut function.blocks[block].insts);
        let mut kept = Vec::with_capacity(insts.len());
        for inst in insts {
            let constant = function.insts[inst]
                .result
                .expand()
                .and_then(|value| Some((value, solution.constant(function, value)?)));
            match constant {
                Some((value, constant)) if fuel.take() => renaming.replace(function, value, constant),
                Some(_) | None => kept.push(inst),
            }
        }
        function.blocks[block].insts = kept;
    }
    changes += renaming.count();
    renaming.apply(function);
    for index in 0..function.layout.len() {
        let block = function.layout[index];
        changes += usize::from(fold_branch(function, block, fuel));
    }
    changes + unreachable::run(function, fuel)
}

/// What the propagation found.
struct Solution {
    values: SecondaryMap<Value, Lattice>,
    reached: EntitySet<Block>,
}

impl Solution {
    /// The constant that a value is, if it is one.
    fn constant(&self, function: &Function, value: Value) -> Option<Operand> {
        match (self.values[value], function.values[value].ty) {
            (Lattice::Constant(bits), Type::Scalar(scalar)) => Some(Operand::from_constant(scalar, bits)),
            (Lattice::Constant(_), Type::Array(_)) | (Lattice::Unknown | Lattice::Varies, _) => None,
        }
    }
}

/// The propagation while it runs.
struct Solver<'a> {
    function: &'a Function,
    uses: Uses,
    values: SecondaryMap<Value, Lattice>,
    reached: EntitySet<Block>,
    /// For each block, which of its two edges can run.
    runs: SecondaryMap<Block, [bool; 2]>,
    /// Edges found executable, as block and number.
    edges: Vec<(Block, usize)>,
    /// Values lowered.
    lowered: Vec<Value>,
}

impl<'a> Solver<'a> {
    fn new(function: &'a Function) -> Solver<'a> {
        Solver {
            function,
            uses: Uses::compute(function),
            values: SecondaryMap::with_capacity(function.values.len()),
            reached: EntitySet::with_capacity(function.blocks.len()),
            runs: SecondaryMap::with_capacity(function.blocks.len()),
            edges: Vec::new(),
            lowered: Vec::new(),
        }
    }

    fn solve(mut self) -> Solution {
        for param in &self.function.params {
            self.values[*param] = Lattice::Varies;
        }
        self.visit_block(self.function.entry());
        loop {
            if let Some((block, number)) = self.edges.pop() {
                self.visit_phis(block, number);
                let edge = self.function.blocks[block].term.edges().nth(number).expect("the edge was found there");
                self.visit_block(edge.target);
            } else if let Some(value) = self.lowered.pop() {
                for index in 0..self.uses.of(value).len() {
                    match self.uses.of(value)[index] {
                        Use::Inst(block, inst) if self.reached.contains(block) => self.visit_inst(inst),
                        Use::Term(block) if self.reached.contains(block) => self.visit_term(block),
                        Use::Inst(..) | Use::Term(_) => {}
                    }
                }
            } else {
                break;
            }
        }
        Solution { values: self.values, reached: self.reached }
    }

    /// What is known of an operand.
    fn lattice(&self, operand: Operand) -> Lattice {
        match operand {
            Operand::Value(value) => self.values[value],
            Operand::Int(bits) => Lattice::Constant(bits),
            Operand::Bool(bit) => Lattice::Constant(i64::from(bit)),
        }
    }

    /// Notes what was found of a value.
    fn lower(&mut self, value: Value, found: Lattice) {
        let met = self.values[value].meet(found);
        if met != self.values[value] {
            self.values[value] = met;
            self.lowered.push(value);
        }
    }

    /// Visits a block that has been reached, the first time.
    fn visit_block(&mut self, block: Block) {
        if !self.reached.insert(block) {
            return;
        }
        let function = self.function;
        for inst in &function.blocks[block].insts {
            self.visit_inst(*inst);
        }
        self.visit_term(block);
    }

    /// Gives the φs at the end of an edge that can run what the edge brings.
    fn visit_phis(&mut self, block: Block, number: usize) {
        let function = self.function;
        let edge = function.blocks[block].term.edges().nth(number).expect("the edge exists");
        for (param, arg) in function.blocks[edge.target].params.iter().zip(&edge.args) {
            let found = self.lattice(*arg);
            self.lower(*param, found);
        }
    }

    /// Finds the edges that a terminator can take, and passes on what they bring.
    fn visit_term(&mut self, block: Block) {
        let runs = match &self.function.blocks[block].term {
            Terminator::Jump(_) => [true, false],
            Terminator::Branch { cond, .. } => match self.lattice(*cond) {
                Lattice::Unknown => [false, false],
                Lattice::Constant(bit) => [bit != 0, bit == 0],
                Lattice::Varies => [true, true],
            },
            Terminator::Return(_) | Terminator::Unreachable => [false, false],
        };
        for (number, run) in runs.into_iter().enumerate() {
            if self.runs[block][number] {
                self.visit_phis(block, number);
            } else if run {
                self.runs[block][number] = true;
                self.edges.push((block, number));
            }
        }
    }

    fn visit_inst(&mut self, inst: Inst) {
        let data = &self.function.insts[inst];
        if let Some(result) = data.result.expand() {
            let found = self.evaluate(&data.op);
            self.lower(result, found);
        }
    }

    /// What an operation gives, by what is known of its operands.
    fn evaluate(&self, op: &Op) -> Lattice {
        match op {
            Op::Copy(a) => self.lattice(*a),
            Op::Binary { op, args, .. } => match (self.lattice(args[0]), self.lattice(args[1])) {
                (Lattice::Constant(a), Lattice::Constant(b)) => {
                    // Bools are 0 and 1, on which `& | ^` do the same as on ints.
                    op.eval(a, b).map_or(Lattice::Varies, Lattice::Constant)
                }
                (Lattice::Constant(0), _) | (_, Lattice::Constant(0)) if absorbs_zero(*op) => Lattice::Constant(0),
                (Lattice::Unknown, _) | (_, Lattice::Unknown) => Lattice::Unknown,
                (Lattice::Varies, _) | (_, Lattice::Varies) => Lattice::Varies,
            },
            Op::Compare { op, args } => match (self.lattice(args[0]), self.lattice(args[1])) {
                (Lattice::Constant(a), Lattice::Constant(b)) => Lattice::Constant(i64::from(op.eval(a, b))),
                (Lattice::Unknown, _) | (_, Lattice::Unknown) => Lattice::Unknown,
                (Lattice::Varies, _) | (_, Lattice::Varies) => Lattice::Varies,
            },
            Op::Unary { op, arg } => match self.lattice(*arg) {
                Lattice::Constant(a) => Lattice::Constant(op.eval(a)),
                Lattice::Unknown => Lattice::Unknown,
                Lattice::Varies => Lattice::Varies,
            },
            Op::Select { cond, args } => match self.lattice(*cond) {
                Lattice::Constant(bit) => self.lattice(args[usize::from(bit == 0)]),
                Lattice::Unknown => Lattice::Unknown,
                Lattice::Varies => self.lattice(args[0]).meet(self.lattice(args[1])),
            },
            Op::Array { .. }
            | Op::Len(_)
            | Op::Load { .. }
            | Op::Call { .. }
            | Op::Read
            | Op::Eof
            | Op::Parallel(_)
            | Op::Free(_)
            | Op::Bounds { .. }
            | Op::Store { .. }
            | Op::Print(_)
            | Op::Assert(_) => Lattice::Varies,
        }
    }
}

/// Is the result 0 whatever the other operand is? (`0 / x` is not: it traps on 0.)
fn absorbs_zero(op: BinaryOp) -> bool {
    match op {
        BinaryOp::Mul | BinaryOp::And => true,
        BinaryOp::Add
        | BinaryOp::Sub
        | BinaryOp::Div
        | BinaryOp::Rem
        | BinaryOp::Or
        | BinaryOp::Xor
        | BinaryOp::Shl
        | BinaryOp::Shr => false,
    }
}
