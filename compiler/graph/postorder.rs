//! Depth-first postorder of what can be reached, without recursion. Its reverse visits a node before its successors,
//! back edges apart.
//!
//! ```text
//! a → b, c; b → d; c → d        d, b, c, a       (a's successors taken in the order b, c)
//! ```
//!
//! **In**: any graph of dense ids. **Out**: each node that `entry` reaches, once. Cost: linear in the edges reached.

use cranelift_entity::{EntityRef, EntitySet};

/// The nodes that `entry` reaches, in postorder.
pub fn compute<N, I>(entry: N, successors: impl Fn(N) -> I) -> Vec<N>
where
    N: EntityRef,
    I: Iterator<Item = N>,
{
    let mut order = Vec::new();
    let mut seen = EntitySet::new();
    seen.insert(entry);
    let mut stack = vec![(entry, successors(entry))];
    while let Some((node, rest)) = stack.last_mut() {
        match rest.next() {
            Some(next) => {
                if seen.insert(next) {
                    stack.push((next, successors(next)));
                }
            }
            None => {
                order.push(*node);
                stack.pop();
            }
        }
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::support::ids::Block;

    #[test]
    fn visits_what_is_reached_once_successors_first() {
        let edges: &[&[usize]] = &[&[1, 2], &[3], &[3, 2], &[1], &[3]];
        let order = compute(Block::new(0), |block| edges[block.index()].iter().map(|n| Block::new(*n)));
        let numbers: Vec<usize> = order.iter().map(|block| block.index()).collect();
        assert_eq!(numbers, [3, 1, 2, 0]);
    }

    #[test]
    fn a_long_chain_needs_no_stack() {
        let order = compute(Block::new(0), |block| {
            (block.index() < 1_000_000).then(|| Block::new(block.index() + 1)).into_iter()
        });
        assert_eq!(order.len(), 1_000_001);
    }
}
