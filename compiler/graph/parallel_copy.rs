//! The parallel copy: turns moves that happen all at once into a sequence of moves with the same effect.
//!
//! Used for φs that become copies on edges, for arguments and results around calls, and for the edges of the register
//! allocator. The method: a move is emitted as soon as nothing left reads its destination. When every move left has a
//! reader, what is left are cycles; a cycle is broken by rescuing what one destination holds into a fresh temporary,
//! which the one reader of that destination reads from then on. Moves of constants read nothing and stand last. (Compare
//! Boissinot, Darte, Rastello, de Dinechin, Guillon: Revisiting Out-of-SSA Translation for Correctness, Code Quality,
//! and Efficiency, 2009, algorithm 1.)
//!
//! ```text
//! x, y = y, x        t = x   (rescue)
//!                    x = y
//!                    y = t
//! ```
//!
//! **In**: moves with distinct destinations; any location may be read any number of times. **Out**: a sequence with the
//! effect of the simultaneous assignment; moves of a location to itself are gone, every other move stands once, and each
//! cycle costs one rescue. Cost: linear in the moves, with a hash table of the destinations where they are many.

use rustc_hash::{FxHashMap, FxHashSet};
use std::hash::Hash;

/// Up to so many moves are looked through one by one.
const SMALL: usize = 4;

/// What a move reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Source<L, C> {
    /// A location, which a move may overwrite.
    Location(L),
    /// Something that no move changes.
    Constant(C),
}

/// One step of a sequence.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Step<L, C> {
    /// `dst = src`.
    Move { dst: L, src: Source<L, C> },
    /// `temp = victim`: keeps what the victim holds before the next step overwrites it. Broken a cycle.
    Rescue { temp: L, victim: L },
}

/// A move of a location that is not yet emitted.
struct Pending<L> {
    dst: L,
    src: L,
    /// How many pending moves read the destination.
    readers: u32,
    /// The pending move that writes the source.
    writer: Option<usize>,
    emitted: bool,
}

/// Sequences the moves, in their order where there is a choice. `fresh(victim)` makes a location that nothing else uses
/// and that can hold what the victim holds.
pub fn sequence<L, C>(moves: &[(L, Source<L, C>)], mut fresh: impl FnMut(L) -> L) -> Vec<Step<L, C>>
where
    L: Copy + Eq + Hash,
    C: Copy,
{
    debug_assert!(
        moves.iter().map(|(dst, _)| dst).collect::<FxHashSet<_>>().len() == moves.len(),
        "the destinations of a parallel copy must be distinct"
    );
    let mut steps = Vec::with_capacity(moves.len());
    let mut pending: Vec<Pending<L>> = moves
        .iter()
        .filter_map(|(dst, src)| match src {
            Source::Location(src) if src != dst => {
                Some(Pending { dst: *dst, src: *src, readers: 0, writer: None, emitted: false })
            }
            Source::Location(_) | Source::Constant(_) => None,
        })
        .collect();

    link(&mut pending);

    let mut ready: Vec<usize> = (0..pending.len()).rev().filter(|n| pending[*n].readers == 0).collect();
    emit_ready(&mut pending, &mut ready, &mut steps);
    // Every move left has a reader among the moves left; as there are no more readers than moves, each has exactly one:
    // they form cycles.
    for victim in 0..pending.len() {
        if pending[victim].emitted {
            continue;
        }
        let temp = fresh(pending[victim].dst);
        steps.push(Step::Rescue { temp, victim: pending[victim].dst });
        let reader = cycle_reader(&pending, victim);
        pending[reader].src = temp;
        pending[reader].writer = None;
        pending[victim].readers = 0;
        ready.push(victim);
        emit_ready(&mut pending, &mut ready, &mut steps);
    }

    steps.extend(moves.iter().filter_map(|(dst, src)| match src {
        Source::Constant(_) => Some(Step::Move { dst: *dst, src: *src }),
        Source::Location(_) => None,
    }));
    steps
}

/// Finds for each move the move that writes its source, and counts readers.
fn link<L: Copy + Eq + Hash>(pending: &mut [Pending<L>]) {
    if pending.len() < 2 {
        return;
    }
    // Most parallel copies are small, and then looking through them is cheaper than a table.
    let table: FxHashMap<L, usize> = match pending.len() {
        0..=SMALL => FxHashMap::default(),
        _ => pending.iter().enumerate().map(|(n, item)| (item.dst, n)).collect(),
    };
    for n in 0..pending.len() {
        let source = pending[n].src;
        let writer = match pending.len() {
            0..=SMALL => pending.iter().position(|item| item.dst == source),
            _ => table.get(&source).copied(),
        };
        pending[n].writer = writer;
        if let Some(writer) = writer {
            pending[writer].readers += 1;
        }
    }
}

/// Emits what is ready and what becomes ready by that.
fn emit_ready<L: Copy, C>(pending: &mut [Pending<L>], ready: &mut Vec<usize>, steps: &mut Vec<Step<L, C>>) {
    while let Some(n) = ready.pop() {
        pending[n].emitted = true;
        steps.push(Step::Move { dst: pending[n].dst, src: Source::Location(pending[n].src) });
        if let Some(writer) = pending[n].writer {
            pending[writer].readers -= 1;
            if pending[writer].readers == 0 {
                ready.push(writer);
            }
        }
    }
}

/// The move of the victim's cycle that reads the victim's destination.
fn cycle_reader<L>(pending: &[Pending<L>], victim: usize) -> usize {
    let mut reader = victim;
    loop {
        let writer = pending[reader].writer.expect("every move of a cycle reads what another writes");
        if writer == victim {
            return reader;
        }
        reader = writer;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Move = (u32, Source<u32, i64>);

    /// Runs the steps one after the other on a memory where location n holds n, and checks them against the moves done
    /// at once; constants are negative so that no location holds one before.
    fn check(moves: &[Move]) {
        let mut temps = Vec::new();
        let steps = sequence(moves, |victim| {
            temps.push(victim);
            1000 + temps.len() as u32
        });

        let mut memory: FxHashMap<u32, i64> = FxHashMap::default();
        let read = |memory: &FxHashMap<u32, i64>, at: u32| memory.get(&at).copied().unwrap_or(i64::from(at));
        let mut constants_began = false;
        let (mut made, mut rescued) = (0, 0);
        for step in &steps {
            match *step {
                Step::Move { dst, src: Source::Location(src) } => {
                    assert!(!constants_began, "{moves:?}: a constant stands before a move");
                    assert_ne!(dst, src);
                    made += 1;
                    let value = read(&memory, src);
                    memory.insert(dst, value);
                }
                Step::Move { dst, src: Source::Constant(value) } => {
                    constants_began = true;
                    made += 1;
                    memory.insert(dst, value);
                }
                Step::Rescue { temp, victim } => {
                    rescued += 1;
                    assert!(temp > 1000 && !memory.contains_key(&temp), "{moves:?}: a temporary is used twice");
                    let value = read(&memory, victim);
                    memory.insert(temp, value);
                }
            }
        }
        for location in 0..8 {
            let expected = match moves.iter().find(|(dst, _)| *dst == location) {
                Some((_, Source::Location(src))) => i64::from(*src),
                Some((_, Source::Constant(value))) => *value,
                None => i64::from(location),
            };
            assert_eq!(read(&memory, location), expected, "{moves:?} became {steps:?}");
        }
        let proper = moves.iter().filter(|(dst, src)| *src != Source::Location(*dst)).count();
        assert_eq!(made, proper, "{moves:?} became {steps:?}");
        assert_eq!(rescued, cycles(moves), "{moves:?} became {steps:?}");
        assert_eq!(temps.len(), rescued);
    }

    /// How many cycles of two moves or more there are, counted by following sources from each destination.
    fn cycles(moves: &[Move]) -> usize {
        let source_of = |at: u32| match moves.iter().find(|(dst, _)| *dst == at) {
            Some((_, Source::Location(src))) => Some(*src),
            Some((_, Source::Constant(_))) | None => None,
        };
        let smallest_of_its_cycle = |start: u32| {
            let (mut at, mut smallest) = (start, start);
            for length in 0..8 {
                match source_of(at) {
                    Some(next) if next == start => return length > 0 && smallest == start,
                    Some(next) => {
                        at = next;
                        smallest = smallest.min(at);
                    }
                    None => return false,
                }
            }
            false
        };
        (0..8).filter(|start| smallest_of_its_cycle(*start)).count()
    }

    #[test]
    fn every_parallel_copy_over_six_locations() {
        // Each of six locations is no destination, or gets one of six locations or a constant: 8^6 parallel copies.
        for code in 0..8_u32.pow(6) {
            let mut moves: Vec<Move> = Vec::new();
            for location in 0..6 {
                match code / 8_u32.pow(location) % 8 {
                    0 => {}
                    1 => moves.push((location, Source::Constant(-1 - i64::from(location)))),
                    n => moves.push((location, Source::Location(n - 2))),
                }
            }
            check(&moves);
            moves.reverse();
            check(&moves);
        }
    }

    #[test]
    fn sources_outside_the_destinations() {
        // IR03: one edge with a cycle of three, a cycle of two, a plain move, a constant, and one source for three targets.
        let at = Source::Location;
        check(&[
            (0, at(1)),
            (1, at(2)),
            (2, at(0)),
            (3, at(4)),
            (4, at(3)),
            (5, at(6)),
            (6, Source::Constant(i64::MIN)),
        ]);
        check(&[(1, at(0)), (2, at(0)), (3, at(0)), (0, at(3))]);
        // IR04: b(a, 10, b) into (b, a, c).
        check(&[(1, at(0)), (0, Source::Constant(-10)), (2, at(1))]);
    }

    #[test]
    fn the_order_is_that_of_the_moves() {
        let at = Source::<u32, i64>::Location;
        let swap = sequence(&[(3, at(4)), (4, at(3)), (5, at(7))], |_| 8);
        let expected = [
            Step::Move { dst: 5, src: at(7) },
            Step::Rescue { temp: 8, victim: 3 },
            Step::Move { dst: 3, src: at(4) },
            Step::Move { dst: 4, src: at(8) },
        ];
        assert_eq!(swap, expected);
    }

    #[test]
    fn a_million_moves_in_one_cycle_and_in_one_chain() {
        let at = Source::<u32, i64>::Location;
        let n = 1_000_000;
        let cycle: Vec<_> = (0..n).map(|i| (i, at((i + 1) % n))).collect();
        assert_eq!(sequence(&cycle, |_| n).len(), n as usize + 1);
        let chain: Vec<_> = (0..n).map(|i| (i, at(i + 1))).rev().collect();
        let steps = sequence(&chain, |_| unreachable!("a chain has no cycle"));
        assert_eq!(steps[0], Step::Move { dst: 0, src: at(1) });
    }
}
