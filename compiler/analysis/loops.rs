//! The natural loops of a function and how they nest.
//!
//! A back edge goes from a block, the latch, to one that dominates it, the header; the loop of a header is what reaches
//! its latches without passing through the header. Headers are taken from the innermost outwards, and a walk backwards
//! from the latches steps over loops already found as if they were one block (as Havlak: Nesting of Reducible and
//! Irreducible Loops, 1997, does with union-find).
//!
//! ```text
//! b0 → b1; b1 → b2, b3; b2 → b1       one loop: header b1, latch b2, blocks b1 b2
//! ```
//!
//! **In**: a function's graph and dominator tree. **Out**: the forest of loops. A cycle without a header that dominates it
//! (irreducible) is no loop; [`Loops::is_reducible`] says whether there is one, and then passes that rely on loops should
//! know that code may repeat outside them. Cost: near-linear.

use super::cfg::{Cfg, targets};
use super::dominators::DomTree;
use crate::ir::{Block, Function};
use cranelift_entity::{PrimaryMap, SecondaryMap, entity_impl, packed_option::PackedOption};

/// A natural loop, within its function. Inner loops have smaller numbers than those around them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Loop(u32);
entity_impl!(Loop, "loop");

/// What is known of a loop.
#[derive(Clone, Debug)]
struct LoopData {
    header: Block,
    parent: PackedOption<Loop>,
    depth: u32,
    latches: Vec<Block>,
    /// Its blocks are `blocks[start..end]`.
    start: u32,
    end: u32,
}

/// All loops of a function.
#[derive(Clone, Debug)]
pub struct Loops {
    loops: PrimaryMap<Loop, LoopData>,
    innermost: SecondaryMap<Block, PackedOption<Loop>>,
    blocks: Vec<Block>,
    reducible: bool,
}

impl Loops {
    /// Finds the loops.
    pub fn compute(function: &Function, cfg: &Cfg, dominators: &DomTree) -> Loops {
        let mut loops = Loops {
            loops: PrimaryMap::new(),
            innermost: SecondaryMap::new(),
            blocks: Vec::new(),
            reducible: is_reducible(function, cfg, dominators),
        };
        // The outermost loop found so far around each loop, by union-find.
        let mut around: SecondaryMap<Loop, PackedOption<Loop>> = SecondaryMap::new();
        // What a header dominates comes later in preorder, so that inner headers are taken first.
        for &header in dominators.preorder().iter().rev() {
            let latches: Vec<Block> = cfg
                .preds(header)
                .iter()
                .map(|pred| pred.block)
                .filter(|pred| dominators.dominates(header, *pred))
                .collect();
            if !latches.is_empty() {
                loops.walk(header, latches, cfg, &mut around);
            }
        }
        loops.nest(cfg);
        loops
    }

    /// Collects the loop of a header.
    fn walk(
        &mut self,
        header: Block,
        mut latches: Vec<Block>,
        cfg: &Cfg,
        around: &mut SecondaryMap<Loop, PackedOption<Loop>>,
    ) {
        let mut work = latches.clone();
        // Both edges of one branch may go back; they stand next to each other.
        latches.dedup();
        let data = LoopData { header, parent: None.into(), depth: 0, latches, start: 0, end: 0 };
        let this = self.loops.push(data);
        self.innermost[header] = this.into();
        while let Some(block) = work.pop() {
            let entered = match self.innermost[block].expand() {
                None => {
                    self.innermost[block] = this.into();
                    block
                }
                Some(inner) => {
                    let outermost = find(around, inner);
                    if outermost == this {
                        continue;
                    }
                    self.loops[outermost].parent = this.into();
                    around[outermost] = this.into();
                    self.loops[outermost].header
                }
            };
            // Every way into the block or loop comes from within the loop around it, as its header dominates it.
            work.extend(cfg.preds(entered).iter().map(|pred| pred.block).filter(|pred| cfg.is_reachable(*pred)));
        }
    }

    /// Settles depths, and orders blocks so that each loop's are together.
    fn nest(&mut self, cfg: &Cfg) {
        let mut sizes: SecondaryMap<Loop, u32> = SecondaryMap::new();
        for block in cfg.rpo() {
            if let Some(inner) = self.innermost[*block].expand() {
                sizes[inner] += 1;
            }
        }
        // Inner loops have smaller numbers: sizes add up outwards, then places are given out inwards.
        for inner in self.loops.keys() {
            if let Some(parent) = self.loops[inner].parent.expand() {
                sizes[parent] += sizes[inner];
            }
        }
        let mut free: SecondaryMap<Loop, u32> = SecondaryMap::new();
        let mut top = 0;
        for this in self.loops.keys().rev() {
            let parent = self.loops[this].parent.expand();
            let start = match parent {
                Some(parent) => &mut free[parent],
                None => &mut top,
            };
            self.loops[this].start = *start;
            *start += sizes[this];
            self.loops[this].end = *start;
            self.loops[this].depth = parent.map_or(0, |parent| self.loops[parent].depth) + 1;
            free[this] = self.loops[this].start;
        }
        self.blocks = vec![Block::from_u32(0); top as usize];
        for block in cfg.rpo() {
            if let Some(inner) = self.innermost[*block].expand() {
                self.blocks[free[inner] as usize] = *block;
                free[inner] += 1;
            }
        }
    }

    /// All loops, inner ones before those around them.
    pub fn all(&self) -> impl DoubleEndedIterator<Item = Loop> + use<> {
        self.loops.keys()
    }

    /// The innermost loop that the block is in.
    pub fn innermost(&self, block: Block) -> Option<Loop> {
        self.innermost[block].expand()
    }

    /// How many loops the block is in.
    pub fn depth(&self, block: Block) -> u32 {
        self.innermost(block).map_or(0, |inner| self.loops[inner].depth)
    }

    /// How many loops there are around it, itself counted.
    pub fn loop_depth(&self, this: Loop) -> u32 {
        self.loops[this].depth
    }

    /// The only block through which control comes into the loop.
    pub fn header(&self, this: Loop) -> Block {
        self.loops[this].header
    }

    /// The blocks of the loop with an edge to the header, in layout order.
    pub fn latches(&self, this: Loop) -> &[Block] {
        &self.loops[this].latches
    }

    /// The loop around it.
    pub fn parent(&self, this: Loop) -> Option<Loop> {
        self.loops[this].parent.expand()
    }

    /// The loop's blocks, those of inner loops included: the header is among them, in no particular place.
    pub fn blocks(&self, this: Loop) -> &[Block] {
        &self.blocks[self.loops[this].start as usize..self.loops[this].end as usize]
    }

    /// Is the block in the loop, or in one within? Cost: the nesting between both.
    pub fn contains(&self, this: Loop, block: Block) -> bool {
        self.encloses(this, self.innermost(block))
    }

    /// Is what is in the loop `inner`, if it is in any, in the loop `this` as well? Cost: the nesting between both.
    pub fn encloses(&self, this: Loop, inner: Option<Loop>) -> bool {
        let mut at = inner;
        while let Some(inner) = at {
            if inner >= this {
                return inner == this;
            }
            at = self.parent(inner);
        }
        false
    }

    /// Is every cycle of the graph a loop?
    pub fn is_reducible(&self) -> bool {
        self.reducible
    }
}

/// The outermost loop found so far around it.
fn find(around: &mut SecondaryMap<Loop, PackedOption<Loop>>, start: Loop) -> Loop {
    let mut top = start;
    while let Some(next) = around[top].expand() {
        top = next;
    }
    let mut at = start;
    while let Some(next) = around[at].expand() {
        if next != top {
            around[at] = top.into();
        }
        at = next;
    }
    top
}

/// Does every edge that goes back in reverse postorder go to a block that dominates where it leaves?
fn is_reducible(function: &Function, cfg: &Cfg, dominators: &DomTree) -> bool {
    cfg.rpo().iter().all(|block| {
        targets(function, *block)
            .all(|target| cfg.place(target) > cfg.place(*block) || dominators.dominates(target, *block))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::parse::parse;
    use crate::ir::random::{Shape, generate};
    use crate::support::span::Source;
    use std::collections::BTreeSet;

    /// The loop of a header by definition: the header, and what reaches a latch without passing through it.
    fn natural_loop(cfg: &Cfg, dominators: &DomTree, header: Block) -> BTreeSet<Block> {
        let mut found = BTreeSet::from([header]);
        let mut work: Vec<Block> = cfg
            .preds(header)
            .iter()
            .map(|pred| pred.block)
            .filter(|pred| dominators.dominates(header, *pred))
            .collect();
        if work.is_empty() {
            return BTreeSet::new();
        }
        while let Some(block) = work.pop() {
            if cfg.is_reachable(block) && found.insert(block) {
                work.extend(cfg.preds(block).iter().map(|pred| pred.block));
            }
        }
        found
    }

    #[test]
    fn agrees_with_the_definition_on_random_programs() {
        let mut seen = 0;
        for seed in 0..600 {
            let program = generate(seed, &Shape::webs());
            for function in program.functions.values() {
                let cfg = Cfg::compute(function);
                let dominators = DomTree::compute(function, &cfg);
                let loops = Loops::compute(function, &cfg, &dominators);
                let mut depths: SecondaryMap<Block, u32> = SecondaryMap::new();
                for block in &function.layout {
                    let expected = natural_loop(&cfg, &dominators, *block);
                    expected.iter().for_each(|block| depths[*block] += 1);
                    let found = loops.all().find(|this| loops.header(*this) == *block);
                    assert_eq!(found.is_some(), !expected.is_empty());
                    if let Some(found) = found {
                        seen += 1;
                        assert_eq!(loops.blocks(found).iter().copied().collect::<BTreeSet<_>>(), expected);
                        assert_eq!(loops.blocks(found).len(), expected.len());
                        for other in &function.layout {
                            assert_eq!(loops.contains(found, *other), expected.contains(other));
                        }
                    }
                }
                for block in &function.layout {
                    assert_eq!(loops.depth(*block), depths[*block], "{block} of seed {seed}");
                }
            }
        }
        assert!(seen > 300, "the random programs have loops, but only {seen}");
    }

    #[test]
    fn a_cycle_with_two_entries_is_no_loop() {
        let text =
            "fn main() {\nb0:\n%0 = eof\nbranch %0 ? b1 : b2\nb1:\njump b2\nb2:\nbranch %0 ? b1 : b3\nb3:\nreturn\n}";
        let program = parse(&Source::new("t", text)).unwrap();
        let function = &program.functions[program.entry];
        let cfg = Cfg::compute(function);
        let loops = Loops::compute(function, &cfg, &DomTree::compute(function, &cfg));
        assert_eq!(loops.all().count(), 0);
        assert!(!loops.is_reducible());
    }
}
