//! Immediate dominators and the dominator tree: Lengauer, Tarjan: A Fast Algorithm for Finding Dominators in a Flowgraph,
//! 1979, in the version with path compression and without balancing.
//!
//! A node d dominates n if every way from the entry to n goes through d; the immediate dominator is the closest other one.
//!
//! ```text
//! a → b, c; b → d; c → d        idom: b ← a, c ← a, d ← a
//! ```
//!
//! **In**: any graph of dense ids, also irreducible, with an entry. **Out**: the tree of what the entry reaches, with
//! pre- and postorder numbers, so that "dominates" is two comparisons. Nodes that the entry does not reach are not in the
//! tree: they have no dominator and dominate nothing. Cost: edges times logarithm of nodes, on every graph (the simpler
//! iterative method of Cooper, Harvey and Kennedy is quadratic on some); no recursion.

use cranelift_entity::{EntityRef, SecondaryMap, packed_option::PackedOption, packed_option::ReservedValue};

/// "No number": not reached, or no ancestor yet.
const NONE: u32 = u32::MAX;

#[derive(Clone, Debug)]
struct Node<N: ReservedValue> {
    idom: PackedOption<N>,
    /// Preorder number in the tree; `NONE` for what is not reached.
    enter: u32,
    /// The largest preorder number in its subtree.
    last: u32,
    /// Depth in the tree; the entry's is 0.
    level: u32,
}

impl<N: ReservedValue> Default for Node<N> {
    fn default() -> Node<N> {
        Node { idom: PackedOption::default(), enter: NONE, last: 0, level: 0 }
    }
}

/// A dominator tree.
#[derive(Clone, Debug)]
pub struct Tree<N: EntityRef + ReservedValue> {
    nodes: SecondaryMap<N, Node<N>>,
    preorder: Vec<N>,
    /// Children of the node with preorder number n: `children[starts[n]..starts[n + 1]]`.
    starts: Vec<u32>,
    children: Vec<N>,
}

impl<N: EntityRef + ReservedValue> Tree<N> {
    /// The immediate dominator; none for the entry and for what is not reached.
    pub fn idom(&self, node: N) -> Option<N> {
        self.nodes[node].idom.expand()
    }

    /// Does the entry reach the node?
    pub fn is_reachable(&self, node: N) -> bool {
        self.nodes[node].enter != NONE
    }

    /// Does `a` dominate `b`? Every reached node dominates itself.
    pub fn dominates(&self, a: N, b: N) -> bool {
        let (a, b) = (&self.nodes[a], &self.nodes[b]);
        a.enter != NONE && b.enter != NONE && a.enter <= b.enter && b.enter <= a.last
    }

    /// Does `a` dominate `b`, and are they different?
    pub fn strictly_dominates(&self, a: N, b: N) -> bool {
        a != b && self.dominates(a, b)
    }

    /// The nodes that it dominates immediately, in reverse postorder of the graph.
    pub fn children(&self, node: N) -> &[N] {
        let number = self.nodes[node].enter;
        if number == NONE {
            return &[];
        }
        &self.children[self.starts[number as usize] as usize..self.starts[number as usize + 1] as usize]
    }

    /// The tree in preorder: each node before what it dominates. What a node dominates follows it without a gap.
    pub fn preorder(&self) -> &[N] {
        &self.preorder
    }

    /// The node's place in [`Tree::preorder`]. Panics if it is not reached.
    pub fn number(&self, node: N) -> u32 {
        let number = self.nodes[node].enter;
        assert!(number != NONE, "only reached nodes have a number in the dominator tree");
        number
    }

    /// The largest place in [`Tree::preorder`] of what the node dominates.
    pub fn last_number(&self, node: N) -> u32 {
        self.nodes[node].last
    }

    /// How many nodes dominate it, itself not counted.
    pub fn level(&self, node: N) -> u32 {
        self.nodes[node].level
    }

    /// The closest node that dominates both. Panics if one is not reached. Cost: their distance.
    pub fn common(&self, mut a: N, mut b: N) -> N {
        while a != b {
            let deeper = if self.level(a) >= self.level(b) { &mut a } else { &mut b };
            *deeper = self.idom(*deeper).expect("both nodes are reached, so the entry dominates both");
        }
        a
    }
}

/// The dominator tree of what `entry` reaches. `postorder` is that of `graph::postorder` from `entry`; `predecessors` may
/// name nodes that are not reached.
pub fn compute<N, I, J>(postorder: &[N], successors: impl Fn(N) -> I, predecessors: impl Fn(N) -> J) -> Tree<N>
where
    N: EntityRef + ReservedValue,
    I: Iterator<Item = N>,
    J: Iterator<Item = N>,
{
    let entry = *postorder.last().expect("a graph has an entry");
    let mut search = Search::run(entry, postorder.len(), successors);
    let idoms = search.immediate_dominators(predecessors);
    let mut idom: SecondaryMap<N, PackedOption<N>> = SecondaryMap::new();
    for (number, node) in search.nodes.iter().enumerate().skip(1) {
        idom[*node] = search.nodes[idoms[number] as usize].into();
    }
    build(postorder, idom)
}

/// The state of the algorithm. All numbers are those of the depth-first search, from 0.
struct Search<N: EntityRef> {
    nodes: Vec<N>,
    number: SecondaryMap<N, u32>,
    parent: Vec<u32>,
    /// The parent in the forest of linked nodes; compressed on the way.
    ancestor: Vec<u32>,
    /// The node of smallest semidominator on the compressed way up.
    label: Vec<u32>,
    semi: Vec<u32>,
}

impl<N: EntityRef> Search<N> {
    fn run<I: Iterator<Item = N>>(entry: N, count: usize, successors: impl Fn(N) -> I) -> Search<N> {
        let mut nodes = Vec::with_capacity(count);
        let mut parent = Vec::with_capacity(count);
        let mut number = SecondaryMap::with_default(NONE);
        number[entry] = 0;
        nodes.push(entry);
        parent.push(NONE);
        let mut stack = vec![(0, successors(entry))];
        while let Some((from, rest)) = stack.last_mut() {
            match rest.next() {
                Some(next) if number[next] == NONE => {
                    let own = nodes.len() as u32;
                    number[next] = own;
                    nodes.push(next);
                    parent.push(*from);
                    stack.push((own, successors(next)));
                }
                Some(_) => {}
                None => {
                    stack.pop();
                }
            }
        }
        let count = nodes.len() as u32;
        Search {
            nodes,
            number,
            parent,
            ancestor: vec![NONE; count as usize],
            label: (0..count).collect(),
            semi: (0..count).collect(),
        }
    }

    fn immediate_dominators<J: Iterator<Item = N>>(&mut self, predecessors: impl Fn(N) -> J) -> Vec<u32> {
        let count = self.nodes.len();
        let mut idom = vec![NONE; count];
        // The nodes with semidominator n are a list: `first[n]`, then `next` of each.
        let mut first = vec![NONE; count];
        let mut next = vec![NONE; count];
        let mut path = Vec::new();
        for node in (1..count).rev() {
            for pred in predecessors(self.nodes[node]) {
                let pred = self.number[pred];
                if pred != NONE {
                    let best = self.eval(pred, &mut path);
                    self.semi[node] = self.semi[node].min(self.semi[best as usize]);
                }
            }
            let semi = self.semi[node] as usize;
            next[node] = first[semi];
            first[semi] = node as u32;
            let parent = self.parent[node];
            self.ancestor[node] = parent;
            // The parent's list can be settled: all ways from it are linked now.
            let mut member = std::mem::replace(&mut first[parent as usize], NONE);
            while member != NONE {
                let best = self.eval(member, &mut path);
                let closer = self.semi[best as usize] < self.semi[member as usize];
                idom[member as usize] = if closer { best } else { parent };
                member = next[member as usize];
            }
        }
        for node in 1..count {
            if idom[node] != self.semi[node] {
                idom[node] = idom[idom[node] as usize];
            }
        }
        idom
    }

    /// The node of smallest semidominator on the way from `node` up to, but without, the root of its linked tree; the node
    /// itself if it is a root.
    fn eval(&mut self, node: u32, path: &mut Vec<u32>) -> u32 {
        if self.ancestor[node as usize] == NONE {
            return node;
        }
        let mut at = node;
        while self.ancestor[self.ancestor[at as usize] as usize] != NONE {
            path.push(at);
            at = self.ancestor[at as usize];
        }
        // From the top down: each takes over what its ancestor has found.
        while let Some(below) = path.pop() {
            let above = self.ancestor[below as usize];
            let (own, other) = (self.label[below as usize], self.label[above as usize]);
            if self.semi[other as usize] < self.semi[own as usize] {
                self.label[below as usize] = other;
            }
            self.ancestor[below as usize] = self.ancestor[above as usize];
        }
        self.label[node as usize]
    }
}

/// Numbers the tree.
fn build<N: EntityRef + ReservedValue>(postorder: &[N], idom: SecondaryMap<N, PackedOption<N>>) -> Tree<N> {
    let count = postorder.len();
    // Children by counting: first by the parent's place in the postorder.
    let mut place: SecondaryMap<N, u32> = SecondaryMap::new();
    for (n, node) in postorder.iter().enumerate() {
        place[*node] = n as u32;
    }
    let mut starts = vec![0_u32; count + 2];
    for node in postorder {
        if let Some(parent) = idom[*node].expand() {
            starts[place[parent] as usize + 2] += 1;
        }
    }
    for n in 2..starts.len() {
        starts[n] += starts[n - 1];
    }
    let entry = postorder[count - 1];
    let mut by_place = vec![entry; count - 1];
    for node in postorder.iter().rev() {
        if let Some(parent) = idom[*node].expand() {
            let slot = &mut starts[place[parent] as usize + 1];
            by_place[*slot as usize] = *node;
            *slot += 1;
        }
    }
    let children_of = |node: N| {
        let n = place[node] as usize;
        &by_place[starts[n] as usize..starts[n + 1] as usize]
    };

    let mut nodes: SecondaryMap<N, Node<N>> = SecondaryMap::new();
    let mut preorder = Vec::with_capacity(count);
    let mut stack = vec![entry];
    while let Some(node) = stack.pop() {
        let level = idom[node].expand().map_or(0, |parent| nodes[parent].level + 1);
        let enter = preorder.len() as u32;
        nodes[node] = Node { idom: idom[node], enter, last: enter, level };
        preorder.push(node);
        stack.extend(children_of(node).iter().rev());
    }
    for node in preorder.iter().rev() {
        if let Some(parent) = idom[*node].expand() {
            nodes[parent].last = nodes[parent].last.max(nodes[*node].last);
        }
    }
    let mut children = Vec::with_capacity(count - 1);
    let mut numbered_starts = Vec::with_capacity(count + 1);
    numbered_starts.push(0);
    for node in &preorder {
        children.extend_from_slice(children_of(*node));
        numbered_starts.push(children.len() as u32);
    }
    Tree { nodes, preorder, starts: numbered_starts, children }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::super::postorder;
    use super::*;
    use crate::support::ids::Block;
    use crate::support::random::Random;

    /// A random graph: for each node its successors. Irreducible, with self loops, double edges and unreached nodes.
    pub(crate) fn random_graph(random: &mut Random, nodes: usize) -> Vec<Vec<Block>> {
        let edges = random.between(0, 3);
        let near = random.chance(50);
        let target = |random: &mut Random, from: usize| {
            let to = if near { (from + random.below(5)).saturating_sub(2) } else { random.below(nodes) };
            Block::new(to.min(nodes - 1))
        };
        (0..nodes).map(|from| (0..random.between(0, edges + 1)).map(|_| target(random, from)).collect()).collect()
    }

    pub(crate) fn predecessors(graph: &[Vec<Block>]) -> Vec<Vec<Block>> {
        let mut preds = vec![Vec::new(); graph.len()];
        for (from, successors) in graph.iter().enumerate() {
            successors.iter().for_each(|to| preds[to.index()].push(Block::new(from)));
        }
        preds
    }

    pub(crate) fn tree_of(graph: &[Vec<Block>]) -> Tree<Block> {
        let successors = |block: Block| graph[block.index()].iter().copied();
        let preds = predecessors(graph);
        compute(&postorder::compute(Block::new(0), successors), successors, |block| {
            preds[block.index()].iter().copied()
        })
    }

    /// What node 0 reaches without passing through `without`.
    fn reached(graph: &[Vec<Block>], without: Option<usize>) -> Vec<bool> {
        let mut seen = vec![false; graph.len()];
        let mut work = vec![0];
        while let Some(node) = work.pop() {
            if Some(node) != without && !std::mem::replace(&mut seen[node], true) {
                work.extend(graph[node].iter().map(|next| next.index()));
            }
        }
        seen
    }

    #[test]
    fn agrees_with_the_definition_on_random_graphs() {
        let mut random = Random::new(1);
        for _ in 0..2000 {
            let nodes = random.between(1, 14);
            let graph = random_graph(&mut random, nodes);
            let tree = tree_of(&graph);
            let all = reached(&graph, None);
            // By definition, a dominates b if b cannot be reached without a.
            let dominates: Vec<Vec<bool>> = (0..nodes)
                .map(|a| {
                    let rest = reached(&graph, Some(a));
                    (0..nodes).map(|b| all[a] && all[b] && !rest[b]).collect()
                })
                .collect();
            for (a, dominated) in dominates.iter().enumerate() {
                let block = Block::new(a);
                assert_eq!(tree.is_reachable(block), all[a]);
                for (b, expected) in dominated.iter().enumerate() {
                    assert_eq!(tree.dominates(block, Block::new(b)), *expected, "{a} over {b} in {graph:?}");
                }
                // The immediate dominator is the strict one that all other strict ones dominate.
                let strict: Vec<usize> = (0..nodes).filter(|d| *d != a && dominates[*d][a]).collect();
                let closest = strict.iter().find(|d| strict.iter().all(|other| dominates[*other][**d]));
                assert_eq!(tree.idom(block), closest.map(|d| Block::new(*d)), "{a} in {graph:?}");
                assert_eq!(tree.level(block) as usize, strict.len());
                for child in tree.children(block) {
                    assert_eq!(tree.idom(*child), Some(block));
                }
            }
            let children: usize = (0..nodes).map(|n| tree.children(Block::new(n)).len()).sum();
            assert_eq!(children + 1, tree.preorder().len());
            assert_eq!(tree.preorder().len(), all.iter().filter(|reached| **reached).count());
        }
    }

    #[test]
    fn deep_and_adversarial_graphs_are_fast() {
        let n = 200_000;
        // A chain in which every node also jumps back to its parent, and the last one to every level.
        let mut graph: Vec<Vec<Block>> =
            (0..n).map(|i: usize| vec![Block::new((i + 1).min(n - 1)), Block::new(i / 2)]).collect();
        graph[n - 1] = (0..n).map(Block::new).collect();
        assert_eq!(tree_of(&graph).level(Block::new(n - 1)) as usize, n - 1);
        // A ladder: two chains with rungs both ways, entered at both feet.
        let mut ladder: Vec<Vec<Block>> = vec![vec![Block::new(1), Block::new(2)]];
        for i in 1..n {
            ladder.push(vec![
                Block::new((i + 2).min(n - 1)),
                Block::new(if i % 2 == 0 { i - 1 } else { (i + 1).min(n - 1) }),
            ]);
        }
        assert_eq!(tree_of(&ladder).level(Block::new(n - 1)), 1);
    }
}
