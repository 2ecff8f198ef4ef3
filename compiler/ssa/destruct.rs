//! Leaves SSA form, first half: the φs of a block become one parallel copy on each edge into it.
//!
//! The copy stands at the end of the block that the edge leaves, if that block jumps; else at the start of the block that
//! the edge enters, which has no other edge in, as critical edges are split. (Cytron, Ferrante, Rosen, Wegman, Zadeck:
//! Efficiently Computing Static Single Assignment Form and the Control Dependence Graph, 1991, section 7, with the copies
//! of an edge kept parallel, so that neither the lost copy nor the swap goes wrong.)
//!
//! ```text
//! b1: %3 = phi x [1 from b0, %4 from b2]       b0: … parallel %3 = 1, %4 = 2
//!     %4 = phi y [2 from b0, %3 from b2]   →       jump b1
//!                                              b2: … parallel %3 = %4, %4 = %3
//!                                                  jump b1
//! ```
//!
//! **In**: [`Form::SplitSsa`]. **Out**: [`Form::ParallelCopies`]; values that were φs are written on each edge, all others
//! still have one definition. `copy_origins` names each parallel copy's edge. Cost: linear in φ operands.

use crate::analysis::cfg::Cfg;
use crate::ir::{Block, CopyOrigin, Form, Function, Op, Operand, Role, Terminator, Value};

/// Replaces φs by parallel copies.
pub fn run(function: &mut Function) {
    assert!(function.form == Form::SplitSsa, "φs are replaced when critical edges are split");
    let cfg = Cfg::compute(function);
    for block in function.layout.clone() {
        let params = std::mem::take(&mut function.blocks[block].params);
        for pred in cfg.preds(block) {
            let args = std::mem::take(&mut pred.edge_mut(function).args);
            if args.is_empty() {
                continue;
            }
            let copies: Vec<(Value, Operand)> = params.iter().copied().zip(args).collect();
            let origin = origin(function, &cfg, params[0], pred.block, pred.edge);
            let inst = function.make_inst(Op::Parallel(copies), None, function.blocks[pred.block].term_span);
            function.copy_origins.insert(inst, origin);
            match function.blocks[pred.block].term {
                Terminator::Jump(_) => function.blocks[pred.block].insts.push(inst),
                Terminator::Branch { .. } => {
                    assert!(
                        cfg.preds(block).len() == 1,
                        "the critical edge from {} to {block} has arguments",
                        pred.block
                    );
                    function.blocks[block].insts.insert(0, inst);
                }
                Terminator::Return(_) | Terminator::Unreachable => unreachable!("{} has no edges", pred.block),
            }
        }
    }
    function.form = Form::ParallelCopies;
}

/// The edge as it was before splitting, and the first φ that it gives an operand.
fn origin(function: &Function, cfg: &Cfg, phi: Value, pred: Block, edge: u8) -> CopyOrigin {
    if function.blocks[pred].role == Role::Split
        && let [before] = cfg.preds(pred)
    {
        return CopyOrigin::Phi { phi, pred: before.block, edge: before.edge };
    }
    CopyOrigin::Phi { phi, pred, edge }
}
