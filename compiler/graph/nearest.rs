//! Answers: which of these nodes is the closest one that dominates a given node?
//!
//! The subtrees of nodes in a dominator tree are intervals of preorder numbers, nested or apart. A sweep over a family of
//! them notes from which number on which one is the innermost; a query is a binary search.
//!
//! ```text
//! a over b over c; a over d; sites a, b       closest(c) = b, closest(d) = a
//! ```
//!
//! **In**: intervals of one dominator tree. **Out**: one table for many families, each a range of it. Cost: a family is
//! linear in its nodes, a query logarithmic.

/// "None of them."
const NONE: u32 = u32::MAX;

/// A family of nodes in a [`Nearest`]. The default is the empty family.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Family {
    start: u32,
    end: u32,
}

impl Family {
    /// Has it no nodes?
    pub fn is_empty(self) -> bool {
        self.start == self.end
    }
}

/// Families of nodes of one dominator tree.
#[derive(Clone, Debug, Default)]
pub struct Nearest {
    /// From this preorder number on, that node of the family is the closest.
    events: Vec<(u32, u32)>,
}

impl Nearest {
    /// Adds a family: for each node its preorder number, the last one of its subtree, and what a query shall answer; by
    /// distinct ascending numbers.
    pub fn add(&mut self, nodes: impl Iterator<Item = (u32, u32, u32)>) -> Family {
        let start = self.events.len() as u32;
        let mut open: Vec<(u32, u32)> = Vec::new();
        for (number, last, answer) in nodes {
            self.close(number, &mut open);
            open.push((last, answer));
            self.events.push((number, answer));
        }
        self.close(u32::MAX, &mut open);
        Family { start, end: self.events.len() as u32 }
    }

    /// Ends the intervals that end before a number.
    fn close(&mut self, before: u32, open: &mut Vec<(u32, u32)>) {
        while let Some((last, _)) = open.last().copied().filter(|(last, _)| *last < before) {
            open.pop();
            self.events.push((last + 1, open.last().map_or(NONE, |(_, answer)| *answer)));
        }
    }

    /// The answer of the closest node of the family that dominates the node with this number, which may be itself.
    pub fn closest(&self, family: Family, number: u32) -> Option<u32> {
        let events = &self.events[family.start as usize..family.end as usize];
        let behind = events.partition_point(|(from, _)| *from <= number);
        behind.checked_sub(1).map(|at| events[at].1).filter(|answer| *answer != NONE)
    }
}

#[cfg(test)]
mod tests {
    use super::super::dominators::tests::{random_graph, tree_of};
    use super::*;
    use crate::support::random::Random;

    #[test]
    fn agrees_with_walking_up_the_tree() {
        let mut random = Random::new(3);
        for _ in 0..1000 {
            let nodes = random.between(1, 20);
            let tree = tree_of(&random_graph(&mut random, nodes));
            let mut nearest = Nearest::default();
            for _ in 0..3 {
                let sites: Vec<_> = tree.preorder().iter().copied().filter(|_| random.chance(30)).collect();
                let family = nearest.add(sites.iter().map(|n| (tree.number(*n), tree.last_number(*n), n.as_u32())));
                assert_eq!(family.is_empty(), sites.is_empty());
                for node in tree.preorder() {
                    let mut at = Some(*node);
                    while let Some(candidate) = at.filter(|candidate| !sites.contains(candidate)) {
                        at = tree.idom(candidate);
                    }
                    assert_eq!(nearest.closest(family, tree.number(*node)), at.map(|found| found.as_u32()));
                }
            }
        }
    }
}
