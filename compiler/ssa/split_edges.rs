//! Splits critical edges, so that each edge has a place for its copies.
//!
//! An edge is critical when the block that it leaves has another edge out and the block that it enters has another edge
//! in: copies at the end of the one would also run on the other edge out, copies at the start of the other also on the
//! other edges in. A block of its own, with nothing but a jump, takes them. Only edges with arguments need one. (Briggs,
//! Cooper, Harvey, Simpson: Practical Improvements to the Construction and Destruction of Static Single Assignment Form,
//! 1998, show what goes wrong without it: the lost copy.)
//!
//! ```text
//! b1: branch %1 ? b1 : b2       →    b1: branch %1 ? b3 : b2
//!                                    b3: jump b1
//! ```
//!
//! **In**: [`Form::Ssa`]. **Out**: [`Form::SplitSsa`]. A self loop is split like any edge; both edges of a branch to one
//! block get a block each. A new block stands behind the one that the edge leaves. Blocks that the entry does not reach
//! are dropped. Cost: linear.

use crate::analysis::cfg::Cfg;
use crate::ir::{Block, Edge, Form, Function, Role, Terminator};
use cranelift_entity::SecondaryMap;

/// Splits the edges. The new blocks have the role [`Role::Split`].
pub fn run(function: &mut Function) {
    let preds = prepare(function);
    let splits = |_: &Function, _: Block, edge: &Edge, _: usize| !edge.args.is_empty() && preds[edge.target] > 1;
    split(function, splits);
    function.form = Form::SplitSsa;
}

/// Splits only the second edge of branches whose edges both go to one block with different arguments: copies at the
/// branch's end could not tell which way it goes. The function stays in [`Form::Ssa`].
pub fn run_twins(function: &mut Function) {
    prepare(function);
    split(function, |function, block, edge, number| {
        let first = function.blocks[block].term.edges().next().expect("a branch has two edges");
        number == 1 && first.target == edge.target && first.args != edge.args
    });
}

/// Drops blocks that nothing reaches: one without edges into it would lose the definitions of its φs with the φs. Gives
/// the number of edges into each block.
fn prepare(function: &mut Function) -> SecondaryMap<Block, u32> {
    assert!(function.form == Form::Ssa, "only edges of SSA form are split");
    let cfg = Cfg::compute(function);
    function.layout.retain(|block| cfg.is_reachable(*block));
    let mut preds = SecondaryMap::new();
    for block in &function.layout {
        function.blocks[*block].term.edges().for_each(|edge| preds[edge.target] += 1);
    }
    preds
}

/// Splits the edges of branches that `splits` picks, given the block that an edge leaves and the edge's number there.
fn split(function: &mut Function, splits: impl Fn(&Function, Block, &Edge, usize) -> bool) {
    let mut layout = Vec::with_capacity(function.layout.len());
    for block in std::mem::take(&mut function.layout) {
        layout.push(block);
        if !matches!(function.blocks[block].term, Terminator::Branch { .. }) {
            continue;
        }
        for number in 0..2 {
            let span = function.blocks[block].term_span;
            let edge = function.blocks[block].term.edges().nth(number).expect("a branch has two edges");
            if !splits(function, block, edge, number) {
                continue;
            }
            let old = edge.clone();
            let middle = function.make_block(Role::Split);
            *edge_mut(function, block, number) = Edge::to(middle);
            function.blocks[middle].term = Terminator::Jump(old);
            function.blocks[middle].term_span = span;
            layout.push(middle);
        }
    }
    function.layout = layout;
}

fn edge_mut(function: &mut Function, block: Block, number: usize) -> &mut Edge {
    function.blocks[block].term.edges_mut().nth(number).expect("a branch has two edges")
}
