//! Loop-invariant code motion: moves operations whose operands do not change in a loop in front of it.
//!
//! Aho, Lam, Sethi & Ullman, "Compilers", section 9.5. Inner loops first, so that what leaves one may leave the next. What
//! can neither trap nor read memory is moved from wherever it stands. What may trap (a bounds check, a division), reads
//! an element, or calls a function without effects is moved only if it is sure to run as soon as the loop is entered:
//! it stands in the header, or in the straight line of blocks behind it, and nothing that stays in the loop comes before
//! that may trap, print, read input or run forever. So no error and no output changes its place in the order.
//!
//! ```text
//! b1: (preheader)                   b1: bounds %1 < %2
//!     jump b2                           %5 = load int %0[%1]
//! b2: bounds %1 < %2          →         jump b2
//!     %5 = load int %0[%1]          b2: …
//!     …
//! ```
//!
//! **In**: SSA. **Out**: SSA; each loop has one block before it that only jumps there. Cost: blocks times the depth of loops.

use super::flow::Flow;
use super::fuel::Fuel;
use super::memory::{Classes, Memory};
use super::summaries::Summaries;
use crate::analysis::loops::{Loop, Loops};
use crate::ir::{Block, Edge, Function, Inst, Op, Operand, Role, Terminator, Type, Value};
use cranelift_entity::SecondaryMap;

/// Moves invariant operations; gives their number.
pub fn run(function: &mut Function, summaries: &Summaries, fuel: &mut Fuel) -> usize {
    let flow = Flow::compute(function);
    let loops = Loops::compute(function, &flow.cfg, &flow.dominators);
    if loops.all().next().is_none() {
        return 0;
    }
    let added = make_preheaders(function, &flow, &loops, fuel);
    // The new blocks are in loops themselves.
    let flow = Flow::compute(function);
    let loops = Loops::compute(function, &flow.cfg, &flow.dominators);
    let memory = Memory::compute(function);
    // The loop in whose blocks a value is defined.
    let mut home: SecondaryMap<Value, Option<Loop>> = SecondaryMap::with_capacity(function.values.len());
    for block in flow.order() {
        let data = &function.blocks[*block];
        let number = loops.innermost(*block);
        data.params.iter().for_each(|param| home[*param] = number);
        for inst in &data.insts {
            if let Some(result) = function.insts[*inst].result.expand() {
                home[result] = number;
            }
        }
    }
    let mut changes = added;
    for number in loops.all() {
        // Without fuel some loops have got none.
        if let Some(preheader) = preheader(function, &flow, &loops, number) {
            changes += hoist(function, summaries, &flow, &loops, &memory, number, preheader, &mut home, fuel);
        }
    }
    changes
}

/// The block that alone enters the loop, and only jumps there.
fn preheader(function: &Function, flow: &Flow, loops: &Loops, number: Loop) -> Option<Block> {
    let header = loops.header(number);
    let mut entries = flow.preds(header).iter().filter(|pred| !loops.contains(number, pred.block));
    match (entries.next(), entries.next()) {
        (Some(pred), None) if matches!(function.blocks[pred.block].term, Terminator::Jump(_)) => Some(pred.block),
        (_, _) => None,
    }
}

/// Gives every loop a preheader; gives the number of new ones.
fn make_preheaders(function: &mut Function, flow: &Flow, loops: &Loops, fuel: &mut Fuel) -> usize {
    let mut made: SecondaryMap<Block, Option<Block>> = SecondaryMap::with_capacity(function.blocks.len());
    let mut count = 0;
    for number in loops.all() {
        let header = loops.header(number);
        if header == function.entry() || preheader(function, flow, loops, number).is_some() || !fuel.take() {
            continue;
        }
        let preheader = function.make_block(Role::Preheader);
        let mut args = Vec::new();
        for index in 0..function.blocks[header].params.len() {
            let param = function.blocks[header].params[index];
            let (ty, variable) = (function.values[param].ty, function.values[param].variable.expand());
            let new = function.make_value(ty, variable);
            function.blocks[preheader].params.push(new);
            args.push(new.into());
        }
        function.blocks[preheader].term = Terminator::Jump(Edge { target: header, args });
        function.blocks[preheader].term_span = function.blocks[header].term_span;
        for pred in flow.preds(header) {
            if !loops.contains(number, pred.block) {
                pred.edge_mut(function).target = preheader;
            }
        }
        made[header] = Some(preheader);
        count += 1;
    }
    function.layout = function.layout.iter().flat_map(|block| made[*block].into_iter().chain([*block])).collect();
    count
}

/// Moves what is invariant in one loop to its preheader.
#[allow(clippy::too_many_arguments, reason = "all are facts of the one function")]
fn hoist(
    function: &mut Function,
    summaries: &Summaries,
    flow: &Flow,
    loops: &Loops,
    memory: &Memory,
    number: Loop,
    preheader: Block,
    home: &mut SecondaryMap<Value, Option<Loop>>,
    fuel: &mut Fuel,
) -> usize {
    let header = loops.header(number);
    // In an order in which what defines an operand comes first.
    let mut blocks = loops.blocks(number).to_vec();
    blocks.sort_by_key(|block| flow.cfg.place(*block));
    let mut written = Classes::NONE;
    for block in &blocks {
        for inst in &function.blocks[*block].insts {
            written = written.union(memory.writes(function, summaries, &function.insts[*inst].op));
        }
    }
    let mut moved: Vec<Inst> = Vec::new();
    // The next block that is sure to run, as long as nothing that stays could end or show anything before.
    let mut sure = Some(header);
    for block in &blocks {
        let mut certain = sure == Some(*block);
        let insts = std::mem::take(&mut function.blocks[*block].insts);
        let mut kept = Vec::with_capacity(insts.len());
        for inst in insts {
            let data = &function.insts[inst];
            let effects = summaries.effects(&data.op);
            let mut invariant = true;
            data.op.for_each_operand(|operand| {
                invariant &= operand.value().is_none_or(|value| !loops.encloses(number, home[value]));
            });
            let movable = invariant
                && (effects.speculatable()
                    || (certain
                        && !(effects.io || effects.writes || effects.allocates)
                        && !reads(function, memory, &data.op, effects.reads).meets(written)));
            let result = data.result.expand();
            if movable && fuel.take() {
                if let Some(result) = result {
                    home[result] = loops.parent(number);
                }
                moved.push(inst);
            } else {
                certain &= !(effects.traps || effects.io || effects.diverges);
                kept.push(inst);
            }
        }
        function.blocks[*block].insts = kept;
        if sure == Some(*block) {
            sure = match &function.blocks[*block].term {
                Terminator::Jump(edge) if certain && flow.preds(edge.target).len() == 1 => Some(edge.target),
                Terminator::Jump(_) | Terminator::Branch { .. } | Terminator::Return(_) | Terminator::Unreachable => {
                    None
                }
            };
        }
    }
    let changes = moved.len();
    function.blocks[preheader].insts.append(&mut moved);
    changes
}

/// The classes of memory that an operation reads.
fn reads(function: &Function, memory: &Memory, op: &Op, may_read: bool) -> Classes {
    let of = |operands: &[Operand]| {
        let arrays: Vec<Operand> =
            operands.iter().copied().filter(|operand| matches!(function.type_of(*operand), Type::Array(_))).collect();
        memory.of_arguments(function, &arrays)
    };
    match op {
        Op::Load { array, .. } => of(&[*array]),
        Op::Call { args, .. } if may_read => of(args),
        Op::Copy(_)
        | Op::Parallel(_)
        | Op::Binary { .. }
        | Op::Compare { .. }
        | Op::Unary { .. }
        | Op::Select { .. }
        | Op::Array { .. }
        | Op::Free(_)
        | Op::Len(_)
        | Op::Bounds { .. }
        | Op::Store { .. }
        | Op::Call { .. }
        | Op::Read
        | Op::Eof
        | Op::Print(_)
        | Op::Assert(_) => Classes::NONE,
    }
}
