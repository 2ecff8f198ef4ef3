//! Tail recursion elimination: turns calls of a function to itself, right before it returns, into jumps to its start.
//!
//! Where the result of the call is added to something first, the sum is kept in an accumulator (Burstall & Darlington,
//! "A transformation system for developing recursive programs", 1977): addition of 64-bit integers is associative and
//! commutative when it wraps, and so is multiplication, so `return f(n - 1) + x` adds x to the accumulator and jumps. What
//! stands between call and return must neither have an effect nor need the call's result, but for that one operation.
//!
//! ```text
//! fn sum(%0 n: int) -> int {             fn sum(%0 n: int) -> int {
//! b0: branch … ? b1 : b2                 b3: jump b0
//! b1: return 0                           b0: %5 = phi n [%0 from b3, %3 from b2]
//! b2: %3 = int %0 - 1                        %6 = phi [0 from b3, %8 from b2]
//!     %4 = call sum(%3)            →         branch … ? b1 : b2
//!     %7 = int %4 + %0                   b1: %9 = int 0 + %6
//!     return %7                              return %9
//! }                                      b2: %3 = int %5 - 1
//!                                            %8 = int %6 + %5
//!                                            jump b0
//! ```
//!
//! **In**: SSA. **Out**: SSA; may have redundant φs, for parameters that all calls pass on. Cost: linear.

use super::fuel::Fuel;
use super::renaming::Renaming;
use crate::ir::effects::effects;
use crate::ir::{Block, Edge, FuncId, Function, Inst, Op, Operand, Program, Role, Terminator, Type, Value};
use crate::semantics::{BinaryOp, Scalar};

/// A call that can become a jump.
struct Site {
    block: Block,
    /// The index of the call in its block.
    call: usize,
    /// What its result is combined by before the return, and the instruction that does it.
    combined: Option<(BinaryOp, Inst)>,
}

/// Turns tail calls into jumps; gives their number.
pub fn run(program: &mut Program, fuel: &mut Fuel) -> usize {
    let ids: Vec<FuncId> = program.functions.keys().collect();
    ids.into_iter().map(|id| run_function(id, &mut program.functions[id], fuel)).sum()
}

fn run_function(id: FuncId, function: &mut Function, fuel: &mut Fuel) -> usize {
    let mut sites: Vec<Site> = function.layout.iter().filter_map(|block| tail_call(id, function, *block)).collect();
    // One accumulator serves one operation: the first one found.
    let operation = sites.iter().find_map(|site| site.combined.map(|(op, ..)| op));
    sites.retain(|site| site.combined.is_none_or(|(op, ..)| Some(op) == operation));
    if sites.is_empty() || !fuel.take() {
        return 0;
    }
    let start = function.entry();
    let accumulator = operation.map(|op| (op, function.make_value(Type::INT, None)));
    // The parameters are φs of the old entry from now on.
    let entry = function.make_block(Role::Entry);
    let params = function.params.clone();
    let mut args: Vec<Operand> = Vec::new();
    let mut phis = Vec::new();
    for param in params {
        let (ty, variable) = (function.values[param].ty, function.values[param].variable.expand());
        let phi = function.make_value(ty, variable);
        phis.push((param, phi));
        args.push(param.into());
    }
    // Both values exist side by side, so this is no replacement to be noted: the φ is a later version of the parameter.
    Renaming::rename_uses(function, &phis);
    function.blocks[start].params = phis.iter().map(|(_, phi)| *phi).collect();
    if let Some((op, accumulator)) = accumulator {
        function.blocks[start].params.push(accumulator);
        args.push(Operand::Int(identity(op)));
    }
    function.blocks[entry].term = Terminator::Jump(Edge { target: start, args });
    if function.blocks[start].role == Role::Entry {
        function.blocks[start].role = Role::Other;
    }
    function.layout.insert(0, entry);
    for site in &sites {
        jump_instead(function, start, site, accumulator);
    }
    if let Some((op, accumulator)) = accumulator {
        combine_returns(function, op, accumulator);
    }
    sites.len()
}

/// What leaves the other operand as it is.
fn identity(op: BinaryOp) -> i64 {
    i64::from(op == BinaryOp::Mul)
}

/// The call of the function to itself that ends the block, if there is one.
fn tail_call(id: FuncId, function: &Function, block: Block) -> Option<Site> {
    let data = &function.blocks[block];
    let returned = returned(function, block)?;
    let call = data.insts.iter().rposition(|inst| !effects(&function.insts[*inst].op).speculatable())?;
    let inst = &function.insts[data.insts[call]];
    match &inst.op {
        Op::Call { callee, .. } if *callee == id => {}
        _ => return None,
    }
    let behind = &data.insts[call + 1..];
    let reads = |inst: Inst, value: Value| {
        let mut found = false;
        function.insts[inst].op.for_each_operand(|operand| found |= operand == Operand::Value(value));
        found
    };
    let Some(result) = inst.result.expand() else {
        return (returned.is_none() && function.result.is_none()).then_some(Site { block, call, combined: None });
    };
    if returned == Some(Operand::Value(result)) {
        // What stands behind it has no effect, and nothing reads it.
        return (!behind.iter().any(|inst| reads(*inst, result))).then_some(Site { block, call, combined: None });
    }
    if returned.is_none() {
        return (!behind.iter().any(|inst| reads(*inst, result))).then_some(Site { block, call, combined: None });
    }
    let mut readers = behind.iter().filter(|inst| reads(**inst, result));
    let (reader, None) = (*readers.next()?, readers.next()) else { return None };
    let combined = &function.insts[reader];
    if Some(Operand::Value(combined.result.expand()?)) != returned {
        return None;
    }
    match &combined.op {
        Op::Binary { op: op @ (BinaryOp::Add | BinaryOp::Mul), ty: Scalar::Int, args: [a, b] } if a != b => {
            Some(Site { block, call, combined: Some((*op, reader)) })
        }
        _ => None,
    }
}

/// What the block returns, if it does so itself or by a block that does nothing else. The outer `None`: it does not.
fn returned(function: &Function, block: Block) -> Option<Option<Operand>> {
    match &function.blocks[block].term {
        Terminator::Return(operand) => Some(*operand),
        Terminator::Jump(edge) => {
            let target = &function.blocks[edge.target];
            match &target.term {
                Terminator::Return(None) if target.insts.is_empty() => Some(None),
                Terminator::Return(Some(operand)) if target.insts.is_empty() => {
                    match target.params.iter().position(|param| Operand::Value(*param) == *operand) {
                        Some(index) => Some(Some(edge.args[index])),
                        None => Some(Some(*operand)),
                    }
                }
                _ => None,
            }
        }
        Terminator::Branch { .. } | Terminator::Unreachable => None,
    }
}

/// Makes the call a jump to the start.
fn jump_instead(function: &mut Function, start: Block, site: &Site, accumulator: Option<(BinaryOp, Value)>) {
    let call = function.blocks[site.block].insts.remove(site.call);
    let span = function.insts[call].span;
    let Op::Call { args, .. } = &function.insts[call].op else { panic!("{call} is a call") };
    let mut args = args.clone();
    if let Some((op, accumulator)) = accumulator {
        let mut sum = Operand::Value(accumulator);
        if let Some((_, reader)) = site.combined {
            let Op::Binary { args: [a, b], .. } = &function.insts[reader].op else { panic!("{reader} is a sum") };
            let result = function.insts[call].result.expand().expect("the sum reads it");
            let other = if *a == Operand::Value(result) { *b } else { *a };
            let span = function.insts[reader].span;
            function.blocks[site.block].insts.retain(|inst| *inst != reader);
            let result = function.make_value(Type::INT, None);
            let add = Op::Binary { op, ty: Scalar::Int, args: [sum, other] };
            let inst = function.make_inst(add, Some(result), span);
            function.blocks[site.block].insts.push(inst);
            sum = result.into();
        }
        args.push(sum);
    }
    function.blocks[site.block].term = Terminator::Jump(Edge { target: start, args });
    function.blocks[site.block].term_span = span;
}

/// Combines every returned value with the accumulator.
fn combine_returns(function: &mut Function, op: BinaryOp, accumulator: Value) {
    for index in 0..function.layout.len() {
        let block = function.layout[index];
        let Terminator::Return(Some(value)) = function.blocks[block].term else { continue };
        let span = function.blocks[block].term_span;
        let result = function.make_value(Type::INT, None);
        let add = Op::Binary { op, ty: Scalar::Int, args: [value, accumulator.into()] };
        let inst = function.make_inst(add, Some(result), span);
        let data = &mut function.blocks[block];
        data.insts.push(inst);
        data.term = Terminator::Return(Some(result.into()));
    }
}
