//! Reverse postorder of a function's blocks: every block before its successors, but along back edges.
//!
//! Depth-first search with a stack of its own. **In**: any form. **Out**: the reachable blocks, the entry first. Cost: linear.

use crate::ir::{Block, Function};
use cranelift_entity::EntitySet;

/// The reachable blocks in reverse postorder.
pub fn reverse_postorder(function: &Function) -> Vec<Block> {
    let mut seen: EntitySet<Block> = EntitySet::with_capacity(function.blocks.len());
    let mut stack = vec![(function.entry(), 0)];
    seen.insert(function.entry());
    let mut order = Vec::with_capacity(function.layout.len());
    while let Some((block, next)) = stack.last_mut() {
        match function.blocks[*block].term.edges().nth(*next) {
            Some(edge) => {
                *next += 1;
                if seen.insert(edge.target) {
                    stack.push((edge.target, 0));
                }
            }
            None => {
                order.push(*block);
                stack.pop();
            }
        }
    }
    order.reverse();
    order
}
