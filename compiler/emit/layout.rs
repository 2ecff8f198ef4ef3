//! The order of the blocks, and which of them are left.
//!
//! Allocation leaves blocks empty whose copies have vanished. Jumps to them go on to where they lead, and what nothing
//! reaches any more is dropped. Then blocks are strung into chains, the edges that run most often first: an edge joins the
//! chain that it leaves and the one that it enters, if it can be a fall-through. A loop that tests at its top so becomes
//! one that tests at its bottom, since the jump back runs as often as the way in to the body, without a choice:
//!
//! ```text
//! b0: jmp b1                            b0: jmp b1
//! b1: cmp …, jge b3 else b2      →      b2: …                  (falls through to b1)
//! b2: …, jmp b1                         b1: cmp …, jl b2       (falls through to b3)
//! b3: ret                               b3: ret
//! ```
//!
//! Source: K. Pettis, R. Hansen, "Profile Guided Code Positioning" (1990), the bottom-up algorithm, with loop depths for a
//! profile. **in** allocated code · **out** the same code; the entry stays first. Cost: n log n in the edges.

use crate::x64::*;
use cranelift_entity::{EntitySet, SecondaryMap};

/// Orders the blocks; how many were dropped.
pub fn run(function: &mut Function<PReg>) -> usize {
    let before = function.layout.len();
    thread_jumps(function);
    drop_unreachable(function);
    order(function);
    before - function.layout.len()
}

/// Lets every jump to a block that only jumps go to where that one goes.
fn thread_jumps(function: &mut Function<PReg>) {
    // Where a jump to each block ends up, once that is known.
    let mut ends: SecondaryMap<Block, Option<Block>> = SecondaryMap::new();
    for position in 0..function.layout.len() {
        let mut path = Vec::new();
        let mut at = function.layout[position];
        let end = loop {
            if let Some(end) = ends[at] {
                break end;
            }
            // A block on its own path jumps in a circle: endless loops stay.
            ends[at] = Some(at);
            path.push(at);
            match &function.blocks[at] {
                BlockData { insts, term: Terminator::Jump(target), .. } if insts.is_empty() => at = *target,
                _ => break at,
            }
        };
        for block in path {
            ends[block] = Some(end);
        }
    }
    for position in 0..function.layout.len() {
        let block = function.layout[position];
        let term = &mut function.blocks[block].term;
        term.for_each_successor_mut(|target| *target = ends[*target].unwrap_or(*target));
        if let Terminator::Branch { then, els, .. } = term
            && then == els
        {
            *term = Terminator::Jump(*then);
        }
    }
}

fn drop_unreachable(function: &mut Function<PReg>) {
    let mut reached = EntitySet::new();
    let mut work = vec![function.layout[0]];
    reached.insert(function.layout[0]);
    while let Some(block) = work.pop() {
        for target in function.blocks[block].term.successors() {
            if reached.insert(target) {
                work.push(target);
            }
        }
    }
    function.layout.retain(|block| reached.contains(*block));
}

/// An edge that could be a fall-through. The order is that of joining: the most frequent first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Edge {
    /// How deep in loops the edge is, counted downwards from the deepest.
    rarity: u32,
    /// Edges that are always taken come before those of a branch.
    branches: bool,
    /// Edges to the block that came next so far come first.
    moves: bool,
    /// Ties end here.
    number: u32,
    from: Block,
    to: Block,
}

fn order(function: &mut Function<PReg>) {
    let mut edges = Vec::new();
    for (position, &from) in function.layout.iter().enumerate() {
        let next = function.layout.get(position + 1).copied();
        let data = &function.blocks[from];
        let targets = data.term.successors();
        for &to in &targets {
            let depth = data.loop_depth.min(function.blocks[to].loop_depth);
            edges.push(Edge {
                rarity: u32::MAX - depth,
                branches: targets.len() > 1,
                moves: next != Some(to),
                number: edges.len() as u32,
                from,
                to,
            });
        }
    }
    edges.sort_unstable();
    let mut chains = Chains::new(function);
    let entry = function.layout[0];
    for edge in edges {
        if edge.to != entry {
            chains.join(edge.from, edge.to);
        }
    }
    function.layout = chains.flatten(function);
}

/// Chains of blocks: each block's neighbours, and each chain's ends, known at both of them.
struct Chains {
    next: SecondaryMap<Block, Option<Block>>,
    previous: SecondaryMap<Block, Option<Block>>,
    /// For the first and the last block of a chain, the other one.
    other_end: SecondaryMap<Block, Option<Block>>,
}

impl Chains {
    fn new(function: &Function<PReg>) -> Chains {
        let mut other_end = SecondaryMap::new();
        for &block in &function.layout {
            other_end[block] = Some(block);
        }
        Chains { next: SecondaryMap::new(), previous: SecondaryMap::new(), other_end }
    }

    /// Lets `to` come right behind `from`, if one ends and the other starts a chain, and not the same one.
    fn join(&mut self, from: Block, to: Block) {
        if self.next[from].is_some() || self.previous[to].is_some() {
            return;
        }
        let first = self.other_end[from].expect("the last block of a chain knows the first");
        let last = self.other_end[to].expect("the first block of a chain knows the last");
        if first == to {
            return;
        }
        self.next[from] = Some(to);
        self.previous[to] = Some(from);
        self.other_end[first] = Some(last);
        self.other_end[last] = Some(first);
    }

    /// The chains behind each other: the entry's first, those that no loop would miss from a loop's side last, the others
    /// as their blocks stood.
    fn flatten(&self, function: &Function<PReg>) -> Vec<Block> {
        let mut result = Vec::with_capacity(function.layout.len());
        let mut placed = EntitySet::new();
        let mut cold = Vec::new();
        for (position, &block) in function.layout.iter().enumerate() {
            if placed.contains(block) {
                continue;
            }
            let mut first = block;
            // Each step back is over a block that is placed with this one.
            while let Some(previous) = self.previous[first] {
                first = previous;
            }
            let chain = std::iter::successors(Some(first), |block| self.next[*block]);
            let is_cold = position > 0 && self.is_detour(function, first);
            for member in chain {
                placed.insert(member);
                if is_cold { cold.push(member) } else { result.push(member) }
            }
        }
        result.extend(cold);
        result
    }

    /// Is the chain one block outside of loops from which control goes back into one?
    fn is_detour(&self, function: &Function<PReg>, block: Block) -> bool {
        let data = &function.blocks[block];
        self.next[block].is_none()
            && data.term.successors().iter().any(|target| function.blocks[*target].loop_depth > data.loop_depth)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::support::span::Span;
    use cranelift_entity::{EntityRef, PrimaryMap};

    fn b(number: usize) -> Block {
        Block::new(number)
    }

    fn branch(then: usize, els: usize) -> Terminator<PReg> {
        Terminator::Branch { cond: Cond::L, then: b(then), els: b(els) }
    }

    fn jump(target: usize) -> Terminator<PReg> {
        Terminator::Jump(b(target))
    }

    const RETURN: Terminator<PReg> = Terminator::Return { value: None };

    /// Blocks by loop depth, whether they are empty, and end.
    fn laid_out(blocks: Vec<(u32, bool, Terminator<PReg>)>) -> (Vec<usize>, Vec<Terminator<PReg>>) {
        let mut function = Function {
            name: "f".to_string(),
            symbol: "atl_f".to_string(),
            incoming: 0,
            layout: Vec::new(),
            blocks: PrimaryMap::new(),
            vregs: PrimaryMap::new(),
            frame: Frame::default(),
        };
        for (loop_depth, empty, term) in blocks {
            let op = Op::Test { width: Width::W64, lhs: RegMem::Reg(PReg::RAX), rhs: RegMemImm::Imm(1) };
            let inst = Inst { op, span: Span::NONE, origin: None.into() };
            let insts = if empty { vec![] } else { vec![inst] };
            let block = function.blocks.push(BlockData { insts, term, term_span: Span::NONE, loop_depth });
            function.layout.push(block);
        }
        run(&mut function);
        let terms = function.layout.iter().map(|block| function.blocks[*block].term.clone()).collect();
        (function.layout.iter().map(|block| block.index()).collect(), terms)
    }

    #[test]
    fn a_loop_tests_at_its_bottom() {
        let (order, _) =
            laid_out(vec![(0, false, jump(1)), (1, false, branch(2, 3)), (1, false, jump(1)), (0, false, RETURN)]);
        assert_eq!(order, [0, 2, 1, 3]);
    }

    #[test]
    fn nested_loops_stay_together() {
        // b1 and b2 test the outer and the inner loop; b3 is the inner body, b4 the rest of the outer one.
        let (order, _) = laid_out(vec![
            (0, false, jump(1)),
            (1, false, branch(2, 5)),
            (2, false, branch(3, 4)),
            (2, false, jump(2)),
            (1, false, jump(1)),
            (0, false, RETURN),
        ]);
        assert_eq!(order, [0, 3, 2, 4, 1, 5]);
    }

    #[test]
    fn empty_blocks_vanish() {
        let (order, terms) =
            laid_out(vec![(0, false, branch(1, 2)), (0, true, jump(2)), (0, true, jump(3)), (0, false, RETURN)]);
        assert_eq!((order, terms), (vec![0, 3], vec![jump(3), RETURN]));
    }

    #[test]
    fn endless_loops_stay() {
        let (order, terms) = laid_out(vec![(0, true, jump(1)), (1, true, jump(2)), (1, true, jump(1))]);
        assert_eq!(order[0], 0);
        // Whatever is left goes round for ever.
        assert!(terms.iter().all(|term| matches!(term, Terminator::Jump(target) if *target != b(0))));
    }

    #[test]
    fn detours_stand_last() {
        // b2 is a way round within a loop that is hardly ever taken.
        let (order, _) = laid_out(vec![
            (0, false, jump(1)),
            (1, false, branch(2, 3)),
            (0, false, jump(4)),
            (1, false, jump(4)),
            (1, false, branch(1, 5)),
            (0, false, RETURN),
        ]);
        assert_eq!(order, [0, 1, 3, 4, 5, 2]);
    }

    #[test]
    fn large_functions_take_no_longer_for_each_block() {
        let count = 100_000;
        let blocks = (0..count).map(|n| (0, n % 3 == 1, branch((n + 2).min(count), n + 1)));
        let (order, _) = laid_out(blocks.chain([(0, false, RETURN)]).collect());
        assert_eq!(order[0], 0);
        assert!(order.len() > count / 2);
    }
}
