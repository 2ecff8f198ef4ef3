//! If-conversion: turns a branch around a few cheap operations into `select`s.
//!
//! Allen, Kennedy, Porterfield & Warren, "Conversion of control dependence to data dependence", 1983, for triangles and
//! diamonds only. The arms must be free of effects and cost little, since both run from then on; only a few φs may depend
//! on the branch. This pays where the branch goes either way: minimum and maximum, absolute values, steps that depend on
//! data. Branches that leave loops are no such shapes. A choice between two addresses by what has just been loaded stays a
//! branch: the processor guesses it and loads ahead, where a `select` would make every load wait for the one before.
//!
//! ```text
//! b0: %2 = bool %0 < %1               b0: %2 = bool %0 < %1
//!     branch %2 ? b2 : b1       →         %4 = select %2 ? %0 : %1
//! b1: jump b2                             jump b2
//! b2: %3 = phi [%0 from b0, %1 from b1]
//! ```
//!
//! **In**: SSA. **Out**: SSA. Cost: linear; blocks in postorder, so that inner shapes are gone before outer ones.

use super::flow::Flow;
use super::fuel::Fuel;
use super::uses::{Use, Uses};
use crate::ir::effects::effects;
use crate::ir::{Block, Edge, Function, Inst, Op, Operand, Terminator, Type, Value};
use crate::semantics::BinaryOp;
use cranelift_entity::{EntitySet, SecondaryMap, packed_option::PackedOption};

/// The most that both arms together may cost, in simple operations.
const COST_LIMIT: u32 = 6;

/// The most φs that may depend on one branch.
const SELECT_LIMIT: usize = 2;

/// Converts branches; gives their number.
pub fn run(function: &mut Function, fuel: &mut Fuel) -> usize {
    let flow = Flow::compute(function);
    let chains = Chains::compute(function);
    let mut gone: EntitySet<Block> = EntitySet::with_capacity(function.blocks.len());
    let changes =
        flow.order().iter().rev().filter(|block| convert(function, &flow, &chains, **block, &mut gone, fuel)).count();
    function.layout.retain(|block| !gone.contains(*block));
    changes
}

/// Converts the branch that ends the block, if it can be and pays.
fn convert(
    function: &mut Function,
    flow: &Flow,
    chains: &Chains,
    block: Block,
    gone: &mut EntitySet<Block>,
    fuel: &mut Fuel,
) -> bool {
    let Terminator::Branch { cond, then, els } = &function.blocks[block].term else { return false };
    let cond = *cond;
    let (first, second) = (arm(function, flow, then), arm(function, flow, els));
    // Either arm, or both, or none may be missing where its edge goes straight to the join.
    let shapes = [(first.clone(), second.clone()), (first.clone(), None), (None, second.clone()), (None, None)];
    let end = |arm: Option<Arm>, edge: &Edge| arm.map_or_else(|| edge.clone(), |arm| arm.end);
    let found = shapes.into_iter().find_map(|(first, second)| {
        let arms = [first.as_ref().map(|arm| arm.block), second.as_ref().map(|arm| arm.block)];
        let cost = first.as_ref().map_or(0, |arm| arm.cost) + second.as_ref().map_or(0, |arm| arm.cost);
        let (a, b) = (end(first, then), end(second, els));
        (a.target == b.target && a.target != block).then_some((arms, cost, a, b))
    });
    let Some((arms, cost, a, b)) = found else { return false };
    let differ = a.args.iter().zip(&b.args).filter(|(a, b)| a != b).count();
    let arrays = a.args.iter().any(|arg| matches!(function.type_of(*arg), Type::Array(_)));
    if cost > COST_LIMIT || differ > SELECT_LIMIT || arrays {
        return false;
    }
    let mut chosen = function.blocks[a.target].params.iter().zip(a.args.iter().zip(&b.args));
    let chases = chains.compares_loads(function, cond)
        && chosen.any(|(param, (a, b))| a != b && chains.is_index(function, *param));
    if chases || !fuel.take() {
        return false;
    }
    for arm in arms.into_iter().flatten() {
        let mut insts = std::mem::take(&mut function.blocks[arm].insts);
        function.blocks[block].insts.append(&mut insts);
        gone.insert(arm);
    }
    let target = a.target;
    let mut args = Vec::with_capacity(a.args.len());
    for (index, (a, b)) in a.args.into_iter().zip(b.args).enumerate() {
        if a == b {
            args.push(a);
            continue;
        }
        let param = function.blocks[target].params[index];
        let (ty, variable) = (function.values[param].ty, function.values[param].variable.expand());
        let value = function.make_value(ty, variable);
        let span = function.blocks[block].term_span;
        let inst = function.make_inst(Op::Select { cond, args: [a, b] }, Some(value), span);
        function.blocks[block].insts.push(inst);
        args.push(value.into());
    }
    function.blocks[block].term = Terminator::Jump(Edge { target, args });
    true
}

/// Where values come from and go to.
struct Chains {
    defs: SecondaryMap<Value, PackedOption<Inst>>,
    uses: Uses,
}

impl Chains {
    fn compute(function: &Function) -> Chains {
        let mut defs: SecondaryMap<Value, PackedOption<Inst>> = SecondaryMap::with_capacity(function.values.len());
        for block in &function.layout {
            for inst in &function.blocks[*block].insts {
                if let Some(result) = function.insts[*inst].result.expand() {
                    defs[result] = (*inst).into();
                }
            }
        }
        Chains { defs, uses: Uses::compute(function) }
    }

    fn op<'f>(&self, function: &'f Function, operand: Operand) -> Option<&'f Op> {
        Some(&function.insts[self.defs[operand.value()?].expand()?].op)
    }

    /// Does the condition compare what has been loaded?
    fn compares_loads(&self, function: &Function, cond: Operand) -> bool {
        match self.op(function, cond) {
            Some(Op::Compare { args, .. }) => {
                args.iter().any(|arg| matches!(self.op(function, *arg), Some(Op::Load { .. })))
            }
            _ => false,
        }
    }

    /// Is the value the index of an element?
    fn is_index(&self, function: &Function, value: Value) -> bool {
        self.uses.of(value).iter().any(|place| match place {
            Use::Inst(_, inst) => match &function.insts[*inst].op {
                Op::Bounds { index, .. } | Op::Load { index, .. } | Op::Store { index, .. } => *index == value.into(),
                _ => false,
            },
            Use::Term(_) => false,
        })
    }
}

/// A block between a branch and a join.
#[derive(Clone)]
struct Arm {
    block: Block,
    /// The edge by which it ends.
    end: Edge,
    /// What its instructions cost.
    cost: u32,
}

/// The arm that the edge of a branch leads to, if that could run on either way.
fn arm(function: &Function, flow: &Flow, edge: &Edge) -> Option<Arm> {
    let block = edge.target;
    let data = &function.blocks[block];
    if flow.preds(block).len() != 1 || !data.params.is_empty() {
        return None;
    }
    let Terminator::Jump(end) = &data.term else { return None };
    let mut total = 0;
    for inst in &data.insts {
        let op = &function.insts[*inst].op;
        total += cost(op)?;
        if !effects(op).speculatable() || total > COST_LIMIT {
            return None;
        }
    }
    Some(Arm { block, end: end.clone(), cost: total })
}

/// About how many simple operations an operation is worth, if it is cheap at all.
fn cost(op: &Op) -> Option<u32> {
    match op {
        Op::Binary { op, args, .. } => match op {
            BinaryOp::Add | BinaryOp::Sub | BinaryOp::And | BinaryOp::Or | BinaryOp::Xor => Some(1),
            BinaryOp::Shl | BinaryOp::Shr => Some(if args[1].constant().is_some() { 1 } else { 2 }),
            BinaryOp::Mul => Some(if matches!(args[1], Operand::Int(3 | 5 | 9)) { 1 } else { 3 }),
            // By a power of two, a shift with a correction.
            BinaryOp::Div => args[1].constant().filter(|c| c.count_ones() == 1 && *c > 0).map(|_| 3),
            BinaryOp::Rem => args[1].constant().filter(|c| c.count_ones() == 1 && *c > 0).map(|_| 4),
        },
        Op::Unary { .. } | Op::Copy(_) => Some(1),
        Op::Compare { .. } | Op::Select { .. } => Some(2),
        Op::Parallel(_)
        | Op::Array { .. }
        | Op::Free(_)
        | Op::Len(_)
        | Op::Bounds { .. }
        | Op::Load { .. }
        | Op::Store { .. }
        | Op::Call { .. }
        | Op::Read
        | Op::Eof
        | Op::Print(_)
        | Op::Assert(_) => None,
    }
}
