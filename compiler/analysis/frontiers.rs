//! Dominance frontiers of a function's blocks: `graph::frontiers` over its edges.
//!
//! **In**: a function's graph and dominator tree. **Out**: what `graph::frontiers` says. Cost: see there.

use super::cfg::Cfg;
use super::dominators::DomTree;
use crate::graph::frontiers;
use crate::ir::Block;
use cranelift_entity::SecondaryMap;

/// What is needed to place φs.
pub type Joins = frontiers::Joins<Block>;

/// The dominance frontier of each block, for display.
pub fn compute(cfg: &Cfg, dominators: &DomTree) -> SecondaryMap<Block, Vec<Block>> {
    frontiers::compute(dominators, |block| cfg.preds(block).iter().map(|pred| pred.block))
}

/// What answers queries for iterated frontiers.
pub fn joins(cfg: &Cfg, dominators: &DomTree) -> Joins {
    Joins::compute(dominators, |block| cfg.preds(block).iter().map(|pred| pred.block))
}
