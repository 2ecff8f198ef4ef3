//! Control flow facts that passes ask for together: order of blocks, edges in, dominators.
//!
//! Dominators by Cooper, Harvey & Kennedy, "A simple, fast dominance algorithm", 2001. Only reachable blocks have facts.
//! **In**: any form. **Out**: facts of the function as it is now. Cost: near-linear.

use super::order::reverse_postorder;
use crate::ir::{Block, Edge, Function};
use cranelift_entity::{SecondaryMap, packed_option::PackedOption};

/// The facts of a function.
pub struct Flow {
    /// The reachable blocks in reverse postorder.
    pub order: Vec<Block>,
    /// The position of each block in `order`; `u32::MAX` for unreachable ones.
    pub position: SecondaryMap<Block, u32>,
    preds: SecondaryMap<Block, Vec<(Block, u8)>>,
    idom: SecondaryMap<Block, PackedOption<Block>>,
    /// For each block when a walk of the dominator tree enters and leaves it.
    walk: SecondaryMap<Block, (u32, u32)>,
    /// The reachable blocks in preorder of the dominator tree; children in reverse postorder.
    pub preorder: Vec<Block>,
}

impl Flow {
    /// Computes the facts.
    pub fn compute(function: &Function) -> Flow {
        let order = reverse_postorder(function);
        let mut position: SecondaryMap<Block, u32> = SecondaryMap::with_default(u32::MAX);
        position.resize(function.blocks.len());
        let mut preds: SecondaryMap<Block, Vec<(Block, u8)>> = SecondaryMap::with_capacity(function.blocks.len());
        for (index, block) in order.iter().enumerate() {
            position[*block] = index as u32;
            for (number, edge) in function.blocks[*block].term.edges().enumerate() {
                preds[edge.target].push((*block, number as u8));
            }
        }
        let idom = dominators(&order, &position, &preds);
        let mut children: SecondaryMap<Block, Vec<Block>> = SecondaryMap::with_capacity(function.blocks.len());
        for block in order.iter().rev() {
            if let Some(parent) = idom[*block].expand() {
                children[parent].push(*block);
            }
        }
        let mut walk: SecondaryMap<Block, (u32, u32)> = SecondaryMap::with_capacity(function.blocks.len());
        let mut preorder = Vec::with_capacity(order.len());
        let mut stack = vec![(order[0], false)];
        while let Some((block, left)) = stack.pop() {
            if left {
                walk[block].1 = preorder.len() as u32;
                continue;
            }
            walk[block].0 = preorder.len() as u32;
            preorder.push(block);
            stack.push((block, true));
            // They were listed in reverse, so the first in reverse postorder is pushed last.
            stack.extend(children[block].iter().map(|child| (*child, false)));
        }
        Flow { order, position, preds, idom, walk, preorder }
    }

    /// Can the block be reached?
    pub fn reachable(&self, block: Block) -> bool {
        self.position[block] != u32::MAX
    }

    /// The edges into a block, as block and number of the edge.
    pub fn preds(&self, block: Block) -> &[(Block, u8)] {
        &self.preds[block]
    }

    /// The edge of that number out of a block.
    pub fn edge<'f>(&self, function: &'f Function, from: (Block, u8)) -> &'f Edge {
        function.blocks[from.0].term.edges().nth(usize::from(from.1)).expect("the edge exists")
    }

    /// The block's immediate dominator; none for the entry.
    pub fn idom(&self, block: Block) -> Option<Block> {
        self.idom[block].expand()
    }

    /// Does every path to `b` pass `a`? Both are reachable.
    pub fn dominates(&self, a: Block, b: Block) -> bool {
        self.walk[a].0 <= self.walk[b].0 && self.walk[b].1 <= self.walk[a].1
    }
}

/// The immediate dominators.
fn dominators(
    order: &[Block],
    position: &SecondaryMap<Block, u32>,
    preds: &SecondaryMap<Block, Vec<(Block, u8)>>,
) -> SecondaryMap<Block, PackedOption<Block>> {
    // By position: the entry is its own dominator while it is computed.
    const NONE: u32 = u32::MAX;
    let mut idom = vec![NONE; order.len()];
    idom[0] = 0;
    let mut changed = true;
    while changed {
        changed = false;
        for (index, block) in order.iter().enumerate().skip(1) {
            let mut common = NONE;
            for (pred, _) in &preds[*block] {
                let mut other = position[*pred];
                if idom[other as usize] == NONE {
                    continue;
                }
                if common == NONE {
                    common = other;
                    continue;
                }
                while common != other {
                    if common > other {
                        common = idom[common as usize];
                    } else {
                        other = idom[other as usize];
                    }
                }
            }
            if idom[index] != common {
                idom[index] = common;
                changed = true;
            }
        }
    }
    let mut found = SecondaryMap::with_capacity(order.len());
    for (index, block) in order.iter().enumerate().skip(1) {
        found[*block] = order[idom[index] as usize].into();
    }
    found
}
