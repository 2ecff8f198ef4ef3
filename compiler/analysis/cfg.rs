//! The control-flow graph of a function: predecessors, reverse postorder, reachability.
//!
//! ```text
//! b0: jump b1            preds(b1) = b0 (edge 0), b2 (edge 0)
//! b1: branch … b2 : b3   rpo = b0, b1, b2, b3
//! b2: jump b1
//! ```
//!
//! **In**: a function whose terminators go to blocks of its layout. **Out**: facts that hold until an edge changes.
//! Predecessors include those that the entry does not reach, as these too give φs operands. Cost: linear.

use crate::graph::postorder;
use crate::ir::{Block, Edge, Function};
use cranelift_entity::{EntityRef, SecondaryMap};

/// An edge into a block: the block that it leaves, and its number in [`crate::ir::Terminator::edges`] there.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord)]
pub struct Pred {
    /// The block that the edge leaves.
    pub block: Block,
    /// 0 or 1.
    pub edge: u8,
}

impl Pred {
    /// The edge itself.
    pub fn edge(self, function: &Function) -> &Edge {
        let edge = function.blocks[self.block].term.edges().nth(usize::from(self.edge));
        edge.expect("the terminator has not changed since the graph was computed")
    }

    /// The edge itself, to change its arguments.
    pub fn edge_mut(self, function: &mut Function) -> &mut Edge {
        let edge = function.blocks[self.block].term.edges_mut().nth(usize::from(self.edge));
        edge.expect("the terminator has not changed since the graph was computed")
    }
}

/// The graph.
#[derive(Clone, Debug)]
pub struct Cfg {
    /// Edges into the block with index n: `preds[starts[n]..starts[n + 1]]`.
    starts: Vec<u32>,
    preds: Vec<Pred>,
    rpo: Vec<Block>,
    /// Place in `rpo`; `u32::MAX` for what is not reached.
    places: SecondaryMap<Block, u32>,
}

impl Cfg {
    /// Computes the graph.
    pub fn compute(function: &Function) -> Cfg {
        let mut starts = vec![0_u32; function.blocks.len() + 2];
        for block in &function.layout {
            for edge in function.blocks[*block].term.edges() {
                starts[edge.target.index() + 2] += 1;
            }
        }
        for n in 2..starts.len() {
            starts[n] += starts[n - 1];
        }
        let mut preds = vec![Pred { block: function.entry(), edge: 0 }; starts[starts.len() - 1] as usize];
        for block in &function.layout {
            for (number, edge) in function.blocks[*block].term.edges().enumerate() {
                let slot = &mut starts[edge.target.index() + 1];
                preds[*slot as usize] = Pred { block: *block, edge: number as u8 };
                *slot += 1;
            }
        }
        // The last edge first, so that in reverse postorder what a branch's first edge leads to comes first.
        let mut rpo = postorder::compute(function.entry(), |block| targets(function, block).rev());
        rpo.reverse();
        let mut places = SecondaryMap::with_default(u32::MAX);
        for (place, block) in rpo.iter().enumerate() {
            places[*block] = place as u32;
        }
        Cfg { starts, preds, rpo, places }
    }

    /// The edges into the block, in layout order of the blocks that they leave.
    pub fn preds(&self, block: Block) -> &[Pred] {
        &self.preds[self.starts[block.index()] as usize..self.starts[block.index() + 1] as usize]
    }

    /// The blocks that the entry reaches, in reverse postorder: each before its successors, back edges apart.
    pub fn rpo(&self) -> &[Block] {
        &self.rpo
    }

    /// The block's place in [`Cfg::rpo`], if it is reached.
    pub fn place(&self, block: Block) -> Option<u32> {
        Some(self.places[block]).filter(|place| *place != u32::MAX)
    }

    /// Does the entry reach the block?
    pub fn is_reachable(&self, block: Block) -> bool {
        self.places[block] != u32::MAX
    }
}

/// The blocks that a block's edges go to, in order, doubles included.
pub fn targets(function: &Function, block: Block) -> impl DoubleEndedIterator<Item = Block> {
    function.blocks[block].term.edges().map(|edge| edge.target)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::parse::parse;
    use crate::support::span::Source;

    #[test]
    fn both_edges_of_a_branch_are_predecessors_and_unreached_blocks_too() {
        let text =
            "fn main() {\nb0:\n%0 = eof\nbranch %0 ? b1 : b2\nb1:\nbranch %0 ? b2 : b2\nb2:\nreturn\nb3:\njump b2\n}";
        let program = parse(&Source::new("t", text)).unwrap();
        let function = &program.functions[program.entry];
        let cfg = Cfg::compute(function);
        let b = Block::new;
        let pred = |block, edge| Pred { block: b(block), edge };
        assert_eq!(cfg.preds(b(2)), [pred(0, 1), pred(1, 0), pred(1, 1), pred(3, 0)]);
        assert_eq!(cfg.preds(b(0)), []);
        assert_eq!(cfg.rpo(), [b(0), b(1), b(2)]);
        assert!(!cfg.is_reachable(b(3)));
        assert_eq!(cfg.place(b(2)), Some(2));
        assert_eq!(pred(1, 1).edge(function).target, b(2));
    }
}
