//! Unreachable block removal: drops the blocks that no path from the entry reaches.
//!
//! A φ's operands are arguments on edges, so those that came from a removed block go with it.
//!
//! ```text
//! b0: jump b2            b0: jump b2
//! b1: jump b2(1)    →    b2: …
//! b2: …
//! ```
//!
//! **In**: any form. **Out**: every block of the layout can be reached. Cost: linear.

use super::fuel::Fuel;
use crate::ir::{Block, Function};
use cranelift_entity::EntitySet;

/// Removes unreachable blocks from the layout; gives their number.
pub fn run(function: &mut Function, fuel: &mut Fuel) -> usize {
    let reached = reachable(function);
    if function.layout.iter().all(|block| reached.contains(*block)) || !fuel.take() {
        return 0;
    }
    let before = function.layout.len();
    function.layout.retain(|block| reached.contains(*block));
    before - function.layout.len()
}

/// The blocks that a path from the entry reaches.
pub fn reachable(function: &Function) -> EntitySet<Block> {
    let mut reached = EntitySet::with_capacity(function.blocks.len());
    let mut work = vec![function.entry()];
    reached.insert(function.entry());
    while let Some(block) = work.pop() {
        for edge in function.blocks[block].term.edges() {
            if reached.insert(edge.target) {
                work.push(edge.target);
            }
        }
    }
    reached
}
