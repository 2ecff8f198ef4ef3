//! Dominance frontiers, and joins: the iterated frontier of a set of nodes, which is where φs stand.
//!
//! The frontier of n holds each node that n does not strictly dominate but a predecessor of which n dominates (Cytron,
//! Ferrante, Rosen, Wegman, Zadeck: Efficiently Computing Static Single Assignment Form and the Control Dependence Graph,
//! 1991). [`compute`] gives these sets as they are, by running from each join's predecessors up the tree (Cooper, Harvey,
//! Kennedy: A Simple, Fast Dominance Algorithm, 2001).
//!
//! The sets are large where loops nest deeply, as an inner node has all headers around it in its frontier. [`Joins`] keeps
//! less: where n's frontier has a header k above n, what lies beyond k is found from k's own frontier, so that n need not
//! list it. Following the lists to the end gives the same iterated frontiers.
//!
//! ```text
//! a → b, c; b → d; c → d        DF(b) = DF(c) = {d}, DF(a) = DF(d) = {}
//! ```
//!
//! **In**: a graph and its dominator tree. **Out**: frontiers of what the entry reaches; what it does not reach is in none
//! and has none. Cost: of `compute`, the size of the sets; of `Joins`, about the edges for structured programs; of a
//! query, the lists of the nodes found.

use super::dominators::Tree;
use cranelift_entity::{EntityRef, SecondaryMap, packed_option::PackedOption, packed_option::ReservedValue};
use smallvec::SmallVec;

/// The frontier of each node, in preorder of the dominator tree.
pub fn compute<N, J>(tree: &Tree<N>, predecessors: impl Fn(N) -> J) -> SecondaryMap<N, Vec<N>>
where
    N: EntityRef + ReservedValue,
    J: Iterator<Item = N>,
{
    let mut frontiers: SecondaryMap<N, Vec<N>> = SecondaryMap::new();
    for &join in tree.preorder() {
        for pred in predecessors(join) {
            let mut runner = Some(pred).filter(|pred| tree.is_reachable(*pred));
            while let Some(node) = runner.filter(|node| Some(*node) != tree.idom(join)) {
                // A second predecessor meets the way of the first.
                if frontiers[node].last() == Some(&join) {
                    break;
                }
                frontiers[node].push(join);
                runner = tree.idom(node);
            }
        }
    }
    frontiers
}

/// What is needed to find iterated frontiers.
#[derive(Clone, Debug)]
pub struct Joins<N: EntityRef + ReservedValue> {
    next: SecondaryMap<N, SmallVec<[N; 2]>>,
}

impl<N: EntityRef + ReservedValue> Joins<N> {
    /// Prepares the graph.
    pub fn compute<J: Iterator<Item = N>>(tree: &Tree<N>, predecessors: impl Fn(N) -> J) -> Joins<N> {
        let mut next: SecondaryMap<N, SmallVec<[N; 2]>> = SecondaryMap::new();
        // The highest proper ancestor among `next` of each node.
        let mut above: SecondaryMap<N, PackedOption<N>> = SecondaryMap::new();
        // Deep joins first, so that a node knows the headers close to it before those further out.
        let mut joins: Vec<N> = tree.preorder().to_vec();
        joins.sort_by_key(|node| std::cmp::Reverse(tree.level(*node)));
        for join in joins {
            let end = tree.idom(join);
            for pred in predecessors(join) {
                let mut runner = Some(pred).filter(|pred| tree.is_reachable(*pred));
                while let Some(node) = runner.filter(|node| Some(*node) != end) {
                    match above[node].expand() {
                        // It is at least as deep as the join, so it lies on the way and will list the join, as will
                        // all between.
                        Some(header) => runner = Some(header),
                        None => {
                            if next[node].last() == Some(&join) {
                                break;
                            }
                            next[node].push(join);
                            if tree.strictly_dominates(join, node) {
                                above[node] = join.into();
                            }
                            runner = tree.idom(node);
                        }
                    }
                }
            }
        }
        Joins { next }
    }

    /// The iterated frontier of `nodes`, in no particular but a reproducible order. `marks` is scratch space that must be
    /// all false, and is again afterwards.
    pub fn iterated(&self, nodes: impl Iterator<Item = N>, marks: &mut SecondaryMap<N, bool>) -> Vec<N> {
        let mut found: Vec<N> = Vec::new();
        let mut visit = |node: N, found: &mut Vec<N>| {
            for &join in &self.next[node] {
                if !std::mem::replace(&mut marks[join], true) {
                    found.push(join);
                }
            }
        };
        nodes.for_each(|node| visit(node, &mut found));
        let mut at = 0;
        while at < found.len() {
            visit(found[at], &mut found);
            at += 1;
        }
        found.iter().for_each(|node| marks[*node] = false);
        found
    }
}

#[cfg(test)]
mod tests {
    use super::super::dominators::tests::{predecessors, random_graph, tree_of};
    use super::*;
    use crate::support::ids::Block;
    use crate::support::random::Random;
    use std::collections::BTreeSet;

    #[test]
    fn agrees_with_the_definition_on_random_graphs() {
        let mut random = Random::new(2);
        for _ in 0..2000 {
            let nodes = random.between(1, 16);
            let graph = random_graph(&mut random, nodes);
            let (tree, preds) = (tree_of(&graph), predecessors(&graph));
            let preds_of = |block: Block| preds[block.index()].iter().copied();
            let frontiers = compute(&tree, preds_of);
            let joins = Joins::compute(&tree, preds_of);
            let mut sets: Vec<BTreeSet<usize>> = Vec::new();
            for n in (0..nodes).map(Block::new) {
                let member = |m: &Block| {
                    !tree.strictly_dominates(n, *m) && preds[m.index()].iter().any(|pred| tree.dominates(n, *pred))
                };
                let expected: BTreeSet<usize> = (0..nodes).map(Block::new).filter(member).map(|m| m.index()).collect();
                let found: BTreeSet<usize> = frontiers[n].iter().map(|m| m.index()).collect();
                assert_eq!(found, expected, "DF({n}) in {graph:?}");
                assert_eq!(found.len(), frontiers[n].len());
                sets.push(expected);
            }
            // Iterated frontiers by repeated union until nothing changes.
            let start: Vec<usize> = (0..random.between(1, 3)).map(|_| random.below(nodes)).collect();
            let mut expected: BTreeSet<usize> = BTreeSet::new();
            loop {
                let before = expected.len();
                let from: Vec<usize> = start.iter().copied().chain(expected.iter().copied()).collect();
                from.iter().for_each(|n| expected.extend(&sets[*n]));
                if expected.len() == before {
                    break;
                }
            }
            let mut marks = SecondaryMap::new();
            let found = joins.iterated(start.iter().map(|n| Block::new(*n)), &mut marks);
            let set: BTreeSet<usize> = found.iter().map(|m| m.index()).collect();
            assert_eq!(set, expected, "DF+({start:?}) in {graph:?}");
            assert_eq!(found.len(), set.len());
            assert!((0..nodes).all(|n| !marks[Block::new(n)]));
        }
    }

    #[test]
    fn nested_loops_left_from_within_do_not_add_up() {
        // Header n goes to header n + 1; from the innermost, node n leads out of loop n: back to header n or out.
        let depth = 2_000;
        let mut graph: Vec<Vec<Block>> = (0..depth).map(|n| vec![Block::new(n + 1)]).collect();
        for n in 0..depth {
            graph.push(vec![Block::new(depth - 1 - n), Block::new(depth + n + 1)]);
        }
        graph.push(vec![]);
        let (tree, preds) = (tree_of(&graph), predecessors(&graph));
        let preds_of = |block: Block| preds[block.index()].iter().copied();
        let joins = Joins::compute(&tree, preds_of);
        let size: usize = joins.next.values().map(SmallVec::len).sum();
        assert!(size <= 2 * graph.len(), "{size}");
        let full: usize = compute(&tree, preds_of).values().map(Vec::len).sum();
        assert!(full > depth * depth / 2);
        let found = joins.iterated([Block::new(depth)].into_iter(), &mut SecondaryMap::new());
        assert_eq!(found.len(), depth);
    }
}
