//! Natural loops: for each loop its header, its blocks and the loop around it.
//!
//! A back edge goes to a block that dominates its source; the loop of a header has the blocks from which a back edge's source
//! can be left backwards without passing the header (Aho, Lam, Sethi & Ullman, "Compilers", section 9.6). Headers are
//! taken inner first, and a loop found is walked over as one block. Cycles with several entries are no loops here.
//!
//! **In**: dominators. **Out**: inner loops come before those around them. Cost: near-linear, plus the depth of nesting
//! for the lists of blocks.

use super::flow::Flow;
use crate::ir::Block;
use cranelift_entity::SecondaryMap;

/// A loop.
pub struct Loop {
    /// Its header, the only way in.
    pub header: Block,
    /// All its blocks, those of inner loops included, in reverse postorder.
    pub blocks: Vec<Block>,
    /// The sources of its back edges.
    pub latches: Vec<Block>,
    /// The loop around it, by its number.
    pub parent: Option<usize>,
}

/// The loops of a function.
pub struct Loops {
    /// Inner ones first.
    pub list: Vec<Loop>,
    /// The innermost loop of each block.
    pub innermost: SecondaryMap<Block, Option<usize>>,
}

impl Loops {
    /// Finds the loops.
    pub fn compute(flow: &Flow) -> Loops {
        let mut list: Vec<Loop> = Vec::new();
        let mut innermost: SecondaryMap<Block, Option<usize>> = SecondaryMap::new();
        // The outermost loop found so far around a loop, with path compression.
        let mut outermost: Vec<usize> = Vec::new();
        for header in flow.order.iter().rev() {
            let latches: Vec<Block> = flow
                .preds(*header)
                .iter()
                .map(|(pred, _)| *pred)
                .filter(|pred| flow.dominates(*header, *pred))
                .collect();
            if latches.is_empty() {
                continue;
            }
            let number = list.len();
            list.push(Loop { header: *header, blocks: Vec::new(), latches: latches.clone(), parent: None });
            outermost.push(number);
            let mut work = latches;
            while let Some(block) = work.pop() {
                let entered = match innermost[block] {
                    None => {
                        innermost[block] = Some(number);
                        block
                    }
                    Some(inner) => {
                        let mut top = inner;
                        while outermost[top] != top {
                            outermost[top] = outermost[outermost[top]];
                            top = outermost[top];
                        }
                        if top == number {
                            continue;
                        }
                        list[top].parent = Some(number);
                        outermost[top] = number;
                        list[top].header
                    }
                };
                if entered != *header {
                    // Only blocks that the header dominates are of its loop; a way in beside it would make it irreducible.
                    work.extend(flow.preds(entered).iter().map(|(pred, _)| *pred));
                }
            }
            if innermost[*header].is_none() {
                innermost[*header] = Some(number);
            }
        }
        for block in &flow.order {
            let mut current = innermost[*block];
            while let Some(number) = current {
                list[number].blocks.push(*block);
                current = list[number].parent;
            }
        }
        Loops { list, innermost }
    }

    /// Is the block in the loop?
    pub fn contains(&self, number: usize, block: Block) -> bool {
        self.encloses(number, self.innermost[block])
    }

    /// Is what is in the loop `inner` (if in any) in the loop `number` too?
    pub fn encloses(&self, number: usize, inner: Option<usize>) -> bool {
        let mut current = inner;
        while let Some(inner) = current {
            // Inner loops have smaller numbers.
            if inner >= number {
                return inner == number;
            }
            current = self.list[inner].parent;
        }
        false
    }
}
