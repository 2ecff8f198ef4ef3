//! Draws random control-flow graphs for the generators of test programs: forward and backward edges (loops, also
//! irreducible ones), self loops, branches whose two edges go to one block, critical edges, blocks that nothing reaches.
//!
//! Blocks are numbered from 0, the entry, to the last, the exit. Each cycle has a *header*, whose two edges go on and to
//! the exit, in this order: a program whose headers count down, and go on only while the count lasts, ends.
//!
//! **out**: no edge goes to the entry; the entry's edges are block 1 and the exit; the exit has none; each block has at
//! most two. Cost: linear.

use crate::support::random::Random;

/// A graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Graph {
    /// The targets of each block's edges, in order. The last block is the exit.
    pub targets: Vec<Vec<usize>>,
    /// Which blocks are headers.
    pub headers: Vec<bool>,
}

impl Graph {
    /// The number of the exit.
    pub fn exit(&self) -> usize {
        self.targets.len() - 1
    }

    /// The number of edges into each block.
    pub fn edges_in(&self) -> Vec<usize> {
        let mut edges_in = vec![0; self.targets.len()];
        self.targets.iter().flatten().for_each(|target| edges_in[*target] += 1);
        edges_in
    }
}

/// A graph with at most `blocks` blocks (at least one) between entry and exit.
pub fn draw(random: &mut Random, blocks: usize) -> Graph {
    let inner = random.between(1, blocks.max(1));
    let exit = inner + 1;
    let mut targets = vec![Vec::new(); inner + 2];
    targets[0] = vec![1, exit];
    for (block, edges) in targets.iter_mut().enumerate().take(exit).skip(1) {
        let count = match random.below(12) {
            0 => 0,
            1..=4 => 1,
            _ => 2,
        };
        for edge in 0..count {
            let target = match random.below(10) {
                0..=4 if edge == 0 => block + 1,
                0..=5 => (block + random.between(1, 4)).min(exit),
                6 => block,
                7 => random.between(1, exit),
                _ => random.between(block.saturating_sub(4).max(1), exit),
            };
            edges.push(target);
        }
        if count == 2 && random.chance(5) {
            edges[1] = edges[0];
        }
    }
    // Every cycle has an edge that does not go forward in the numbers; its target counts down.
    let mut headers = vec![false; inner + 2];
    for (block, edges) in targets.iter().enumerate() {
        for target in edges {
            if *target <= block {
                headers[*target] = true;
            }
        }
    }
    for (edges, header) in targets.iter_mut().zip(&headers) {
        if *header {
            let on = edges.first().copied().unwrap_or(exit);
            *edges = vec![on, exit];
        }
    }
    Graph { targets, headers }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Without the headers, no cycle is left: each block's successors can be numbered before it.
    #[test]
    fn every_cycle_has_a_header() {
        for seed in 0..500 {
            let graph = draw(&mut Random::new(seed), 20);
            for (block, targets) in graph.targets.iter().enumerate() {
                assert!(targets.len() <= 2 && !targets.contains(&0));
                if !graph.headers[block] {
                    for target in targets {
                        assert!(*target > block || graph.headers[*target], "seed {seed}: {block} to {target}");
                    }
                }
            }
            for (header, _) in graph.headers.iter().enumerate().filter(|(_, is)| **is) {
                assert_eq!(graph.targets[header].len(), 2);
                assert_eq!(graph.targets[header][1], graph.exit());
            }
        }
    }
}
