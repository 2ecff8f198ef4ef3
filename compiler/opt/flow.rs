//! The facts about control flow that passes ask for together: the graph and its dominator tree.
//!
//! **In**: any form. **Out**: facts that hold until an edge changes. Cost: near-linear.

use crate::analysis::cfg::{Cfg, Pred};
use crate::analysis::dominators::DomTree;
use crate::ir::{Block, Function};

/// The facts of a function.
pub struct Flow {
    /// Edges in, and the order of blocks.
    pub cfg: Cfg,
    /// The dominator tree.
    pub dominators: DomTree,
}

impl Flow {
    /// Computes the facts.
    pub fn compute(function: &Function) -> Flow {
        let cfg = Cfg::compute(function);
        let dominators = DomTree::compute(function, &cfg);
        Flow { cfg, dominators }
    }

    /// The reachable blocks in reverse postorder.
    pub fn order(&self) -> &[Block] {
        self.cfg.rpo()
    }

    /// The edges into a block.
    pub fn preds(&self, block: Block) -> &[Pred] {
        self.cfg.preds(block)
    }

    /// The block's immediate dominator; none for the entry.
    pub fn idom(&self, block: Block) -> Option<Block> {
        self.dominators.idom(block)
    }
}
