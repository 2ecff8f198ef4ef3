//! The dominator tree of a function's control-flow graph: `graph::dominators` over its edges.
//!
//! **In**: a function and its graph. **Out**: the tree of the blocks that the entry reaches. Cost: near-linear.

use super::cfg::{Cfg, targets};
use crate::graph::dominators::{self, Tree};
use crate::ir::{Block, Function};

/// A dominator tree of blocks.
pub type DomTree = Tree<Block>;

impl DomTree {
    /// Computes the tree.
    pub fn compute(function: &Function, cfg: &Cfg) -> DomTree {
        let postorder: Vec<Block> = cfg.rpo().iter().rev().copied().collect();
        dominators::compute(
            &postorder,
            |block| targets(function, block),
            |block| cfg.preds(block).iter().map(|pred| pred.block),
        )
    }
}
