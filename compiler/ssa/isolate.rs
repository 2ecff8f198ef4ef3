//! Leaves SSA form by isolating every φ: each operand is copied into a value of the φ's own at the end of the block that
//! its edge leaves, and the φ becomes a copy of that value at the start of its block.
//!
//! The value belongs to nobody else, so it may be written on a way that does not lead to the φ, and no critical edge needs
//! a block; and no copy reads what another one of its place writes, so that their order is free and no cycle arises. The
//! price is two copies where one could do, and the allocator's work to get rid of them. (Sreedhar, Ju, Gillies,
//! Santhanam: Translating Out of Static Single Assignment Form, 1999, method I; LLVM eliminates φs this way.)
//!
//! ```text
//! b1: %3 = phi x [1 from b0, %4 from b2]       b0: … parallel %8 = 1, %9 = 2
//!     %4 = phi y [2 from b0, %3 from b2]   →   b1: parallel %3 = %8, %4 = %9
//!                                              b2: … parallel %8 = %4, %9 = %3
//! ```
//!
//! **In**: [`Form::Ssa`] without unreachable blocks, and without a branch whose edges go to one block with different
//! arguments ([`super::split_edges::run_twins`]). **Out**: [`Form::ParallelCopies`]; each φ is written once, the new values
//! once in each predecessor. `copy_origins` names the edge of parallel copies at a block's end that jumps. Cost: linear
//! in φ operands.

use crate::analysis::cfg::Cfg;
use crate::ir::{Block, CopyOrigin, Edge, Form, Function, Op, Operand, Terminator, Value};
use cranelift_entity::SecondaryMap;

/// The copies of one edge: the block at whose end they stand, the edge, and what they copy.
type EdgeCopies = (Block, Option<CopyOrigin>, Vec<(Value, Operand)>);

/// Replaces φs by isolating copies.
pub fn run(function: &mut Function) {
    assert!(function.form == Form::Ssa, "φs are isolated in SSA form");
    let cfg = Cfg::compute(function);
    let mut into: Vec<(Block, Vec<(Value, Operand)>)> = Vec::new();
    let mut out: Vec<EdgeCopies> = Vec::new();
    // The value of each φ, kept by φ.
    let mut own: SecondaryMap<Value, Option<Value>> = SecondaryMap::new();
    for block in function.layout.clone() {
        let phis = std::mem::take(&mut function.blocks[block].params);
        if phis.is_empty() {
            continue;
        }
        assert!(!cfg.preds(block).is_empty(), "{block} has φs and no edges into it");
        let mut copies = Vec::with_capacity(phis.len());
        for phi in &phis {
            let (ty, variable) = (function.values[*phi].ty, function.values[*phi].variable.expand());
            let value = function.make_value(ty, variable);
            own[*phi] = Some(value);
            copies.push((*phi, Operand::Value(value)));
        }
        into.push((block, copies));
        // The φs are gone from the block; edges need them once more.
        for pred in cfg.preds(block) {
            let args = std::mem::take(&mut pred.edge_mut(function).args);
            let copies: Vec<(Value, Operand)> = phis
                .iter()
                .zip(args)
                .map(|(phi, arg)| (own[*phi].expect("each φ has just got its value"), arg))
                .collect();
            let jumps = matches!(function.blocks[pred.block].term, Terminator::Jump(_));
            let origin = jumps.then_some(CopyOrigin::Phi { phi: phis[0], pred: pred.block, edge: pred.edge });
            out.push((pred.block, origin, copies));
        }
    }
    for (block, copies) in into {
        let span = function.blocks[block].term_span;
        let inst = function.make_inst(Op::Parallel(copies), None, span);
        function.blocks[block].insts.insert(0, inst);
    }
    // The copies of both edges of a branch stand together.
    out.sort_by_key(|(block, _, _)| *block);
    for group in out.chunk_by(|a, b| a.0 == b.0) {
        let (block, origin, first) = &group[0];
        let mut copies = first.clone();
        for (_, _, others) in &group[1..] {
            // Twin edges with the same arguments have the same copies.
            if others != first {
                copies.extend(others);
            }
        }
        append(function, *block, *origin, copies);
    }
    debug_assert!(function.layout.iter().all(|block| function.blocks[*block].term.edges().all(is_plain)));
    function.form = Form::ParallelCopies;
}

fn is_plain(edge: &Edge) -> bool {
    edge.args.is_empty()
}

/// Puts a parallel copy in front of the block's terminator.
fn append(function: &mut Function, block: Block, origin: Option<CopyOrigin>, copies: Vec<(Value, Operand)>) {
    let span = function.blocks[block].term_span;
    let inst = function.make_inst(Op::Parallel(copies), None, span);
    if let Some(origin) = origin {
        function.copy_origins.insert(inst, origin);
    }
    function.blocks[block].insts.push(inst);
}
