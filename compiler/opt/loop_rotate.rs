//! Loop rotation: turns a loop that tests at its top into a test in front and a loop that tests at its bottom.
//!
//! The header's instructions and branch are copied in front of the loop (Muchnick, "Advanced compiler design and
//! implementation", 1997, section 18.5, loop inversion); the header itself becomes the last block of the loop. A round has
//! one jump less, and what the first block of the body does is sure to happen once the loop is entered, which lets code
//! motion hoist it. Values of the header then have two definitions, which `ssa_repair` joins by φs. This is also how the
//! lost-copy shape arises: a φ whose old value lives on beyond the edge that gives it a new one.
//!
//! ```text
//! b0: jump b1                            b0: branch (0 < %0) ? b2 : b3
//! b1: %1 = phi [0 from b0, %3 from b2]   b2: %4 = phi [0 from b0, %3 from b1]
//!     %2 = bool %1 < %0                      %3 = int %4 + 1
//!     branch %2 ? b2 : b3          →         jump b1
//! b2: %3 = int %1 + 1                    b1: %2 = bool %3 < %0
//!     jump b1                                branch %2 ? b2 : b3
//! ```
//!
//! **In**: SSA. **Out**: SSA; may have redundant φs. Cost: near-linear; only headers of at most [`LIMIT`] instructions
//! are copied.

use super::flow::Flow;
use super::fuel::Fuel;
use super::ssa_repair::Repair;
use super::unreachable;
use crate::analysis::loops::{Loop, Loops};
use crate::ir::{Block, Function, Operand, Terminator, Type, Value};
use cranelift_entity::SecondaryMap;
use rustc_hash::FxHashMap;

/// The most instructions of a header that is copied.
const LIMIT: usize = 24;

/// Rotates loops; gives their number.
pub fn run(function: &mut Function, fuel: &mut Fuel) -> usize {
    // `ssa_repair` wants every block reached.
    let removed = unreachable::run(function, fuel);
    let flow = Flow::compute(function);
    let loops = Loops::compute(function, &flow.cfg, &flow.dominators);
    let mut repair = Repair::new();
    // For each rotated header the copy in front of its loop, and for each copy the loop around that.
    let mut copies: SecondaryMap<Block, Option<Block>> = SecondaryMap::with_capacity(function.blocks.len());
    let mut around: SecondaryMap<Block, Option<Loop>> = SecondaryMap::with_capacity(function.blocks.len());
    function.layout.iter().for_each(|block| around[*block] = loops.innermost(*block));
    let mut rotated = Vec::new();
    for number in loops.all() {
        let header = loops.header(number);
        if tests_at_top(function, &loops, number) && fuel.take() {
            let copy = copy_header(function, header, &mut repair);
            copies[header] = Some(copy);
            around[copy] = loops.parent(number);
            rotated.push(number);
        }
    }
    if rotated.is_empty() {
        return removed;
    }
    lay_out(function, &loops, &rotated, &copies);
    enter_by_copies(function, &loops, &copies, &around);
    let flow = Flow::compute(function);
    repair.apply(function, &flow);
    removed + rotated.len()
}

/// Does the loop leave from its header, and not from its end?
fn tests_at_top(function: &Function, loops: &Loops, number: Loop) -> bool {
    let header = loops.header(number);
    let data = &function.blocks[header];
    if data.insts.len() > LIMIT || header == function.entry() {
        return false;
    }
    let Terminator::Branch { then, els, .. } = &data.term else { return false };
    let inside = |block: Block| loops.contains(number, block);
    let stay = match (inside(then.target), inside(els.target)) {
        (true, false) => then.target,
        (false, true) => els.target,
        (true, true) | (false, false) => return false,
    };
    let leaves = |latch: &Block| function.blocks[*latch].term.edges().any(|edge| !inside(edge.target));
    // An array keeps one name: with two definitions it would need a φ.
    let is_array = |value: Value| matches!(function.values[value].ty, Type::Array(_));
    let makes_array = data.params.iter().any(|param| is_array(*param))
        || data.insts.iter().any(|inst| function.insts[*inst].result.expand().is_some_and(is_array));
    stay != header && !makes_array && !matches!(loops.latches(number), [latch] if leaves(latch))
}

/// Copies a header; its values then have two definitions.
fn copy_header(function: &mut Function, header: Block, repair: &mut Repair) -> Block {
    let copy = function.make_block(function.blocks[header].role);
    let mut map: FxHashMap<Value, Operand> = FxHashMap::default();
    for index in 0..function.blocks[header].params.len() {
        let param = function.blocks[header].params[index];
        let new = twin(function, param);
        function.blocks[copy].params.push(new);
        map.insert(param, new.into());
        repair.add(param, header, new, copy);
    }
    let renamed = |map: &FxHashMap<Value, Operand>, operand: &mut Operand| {
        if let Operand::Value(value) = *operand
            && let Some(new) = map.get(&value)
        {
            *operand = *new;
        }
    };
    for index in 0..function.blocks[header].insts.len() {
        let inst = function.blocks[header].insts[index];
        let mut data = function.insts[inst].clone();
        data.op.for_each_operand_mut(|operand| renamed(&map, operand));
        if let Some(result) = data.result.expand() {
            let new = twin(function, result);
            data.result = new.into();
            map.insert(result, new.into());
            repair.add(result, header, new, copy);
        }
        let new = function.insts.push(data);
        function.blocks[copy].insts.push(new);
    }
    let mut term = function.blocks[header].term.clone();
    term.for_each_operand_mut(|operand| renamed(&map, operand));
    function.blocks[copy].term = term;
    function.blocks[copy].term_span = function.blocks[header].term_span;
    copy
}

/// A new value of the same type and variable.
fn twin(function: &mut Function, value: Value) -> Value {
    let (ty, variable) = (function.values[value].ty, function.values[value].variable.expand());
    function.make_value(ty, variable)
}

/// Sends every edge that enters a rotated loop to the copy of its header.
fn enter_by_copies(
    function: &mut Function,
    loops: &Loops,
    copies: &SecondaryMap<Block, Option<Block>>,
    around: &SecondaryMap<Block, Option<Loop>>,
) {
    for block in &function.layout {
        for edge in function.blocks[*block].term.edges_mut() {
            let Some(copy) = copies[edge.target] else { continue };
            let entered = loops.innermost(edge.target).expect("a header is in its loop");
            if !loops.encloses(entered, around[*block]) {
                edge.target = copy;
            }
        }
    }
}

/// Puts each copy where its header was, and the header behind the last block of its loop.
fn lay_out(function: &mut Function, loops: &Loops, rotated: &[Loop], copies: &SecondaryMap<Block, Option<Block>>) {
    let mut place: SecondaryMap<Block, u32> = SecondaryMap::with_capacity(function.blocks.len());
    for (index, block) in function.layout.iter().enumerate() {
        place[*block] = index as u32;
    }
    let mut behind: Vec<Vec<Block>> = vec![Vec::new(); function.layout.len()];
    for number in rotated {
        let last = loops.blocks(*number).iter().map(|block| place[*block]).max().expect("a loop has blocks");
        behind[last as usize].push(loops.header(*number));
    }
    let mut layout = Vec::with_capacity(function.layout.len() + rotated.len());
    for (block, behind) in function.layout.iter().zip(behind) {
        layout.push(copies[*block].unwrap_or(*block));
        layout.extend(behind);
    }
    function.layout = layout;
}
