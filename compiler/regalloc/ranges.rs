//! Live ranges: sorted segments of program points, each with the value that it holds and the register that it is of.
//!
//! A segment says "from here to there, virtual register `owner` is live and holds value `value`". Two ranges interfere
//! where they are live at once and hold *different* values: a copy does not interfere with its source while neither is
//! assigned again (Benoit Boissinot, Alain Darte, Fabrice Rastello, Benoît Dupont de Dinechin, Christophe Guillon:
//! Revisiting Out-of-SSA Translation for Correctness, Code Quality, and Efficiency, 2009).
//!
//! Small ranges are sorted vectors. Large ones are trees, so that joining thousands of small ranges into a large one
//! costs the small ones times a logarithm. **in**: segments of one range do not overlap. **out**: the same after joining.

use super::points::Point;
use crate::x64::VReg;
use std::collections::BTreeMap;

/// A value: what one assignment, one join of control flow or the function's entry brings into a virtual register. Copies
/// bring the value of their source.
pub type ValueId = u32;

/// A stretch of a live range.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Segment {
    /// Its first point.
    pub from: Point,
    /// The point behind its last.
    pub to: Point,
    /// What it holds.
    pub value: ValueId,
    /// The virtual register that is live here.
    pub owner: VReg,
}

/// Segments of one range.
#[derive(Clone, Debug)]
pub enum Segments {
    Flat(Vec<Segment>),
    Tree(BTreeMap<Point, Segment>),
}

/// Up to so many segments a vector is faster.
const FLAT: usize = 64;

impl Segments {
    /// How many segments.
    fn len(&self) -> usize {
        match self {
            Segments::Flat(segments) => segments.len(),
            Segments::Tree(segments) => segments.len(),
        }
    }

    /// The segments in order.
    pub fn into_vec(self) -> Vec<Segment> {
        match self {
            Segments::Flat(segments) => segments,
            Segments::Tree(segments) => segments.into_values().collect(),
        }
    }

    /// The first point where two ranges hold different values, with the segment of each. Of very long ranges any such
    /// point.
    pub fn conflict(&self, other: &Segments) -> Option<(Point, Segment, Segment)> {
        match (self, other) {
            (Segments::Flat(a), Segments::Flat(b)) => {
                let (mut i, mut j) = (0, 0);
                while i < a.len() && j < b.len() {
                    let (x, y) = (a[i], b[j]);
                    if x.from.max(y.from) < x.to.min(y.to) && x.value != y.value {
                        return Some((x.from.max(y.from), x, y));
                    }
                    if x.to <= y.to { i += 1 } else { j += 1 }
                }
                None
            }
            (Segments::Tree(tree), Segments::Flat(flat)) => flat.iter().find_map(|y| in_tree(tree, y)),
            (Segments::Flat(flat), Segments::Tree(tree)) => {
                flat.iter().find_map(|x| in_tree(tree, x)).map(|(point, y, x)| (point, x, y))
            }
            (Segments::Tree(a), Segments::Tree(b)) if a.len() >= b.len() => b.values().find_map(|y| in_tree(a, y)),
            (Segments::Tree(a), Segments::Tree(b)) => {
                a.values().find_map(|x| in_tree(b, x)).map(|(point, y, x)| (point, x, y))
            }
        }
    }

    /// Joins the other range into this one. They must not conflict.
    pub fn absorb(&mut self, other: Segments) {
        let mut other = other;
        if self.len() < other.len() {
            std::mem::swap(self, &mut other);
        }
        if let Segments::Flat(flat) = self {
            if flat.len() + other.len() <= FLAT {
                merge_flat(flat, &other.into_vec());
                return;
            }
            *self = Segments::Tree(flat.iter().map(|segment| (segment.from, *segment)).collect());
        }
        let Segments::Tree(tree) = self else { unreachable!("a flat range was made a tree") };
        for segment in other.into_vec() {
            insert_uncovered(tree, segment);
        }
    }
}

/// The first conflict of a segment with a tree: the point, the tree's segment, the segment.
fn in_tree(tree: &BTreeMap<Point, Segment>, segment: &Segment) -> Option<(Point, Segment, Segment)> {
    if let Some((_, before)) = tree.range(..segment.from).next_back()
        && before.to > segment.from
        && before.value != segment.value
    {
        return Some((segment.from, *before, *segment));
    }
    let mut rest = tree.range(segment.from..segment.to);
    rest.find(|(_, other)| other.value != segment.value).map(|(point, other)| (*point, *other, *segment))
}

/// Inserts the parts of a segment that the tree does not cover.
fn insert_uncovered(tree: &mut BTreeMap<Point, Segment>, segment: Segment) {
    let mut from = segment.from;
    if let Some((_, before)) = tree.range(..=from).next_back() {
        from = from.max(before.to);
    }
    while from < segment.to {
        let next = tree.range(from..segment.to).next().map(|(_, next)| *next);
        let to = next.map_or(segment.to, |next| next.from);
        if from < to {
            tree.insert(from, Segment { from, to, ..segment });
        }
        from = next.map_or(segment.to, |next| next.to);
    }
}

/// Merges sorted segments into sorted segments, where both cover a point those of `into` stay.
fn merge_flat(into: &mut Vec<Segment>, other: &[Segment]) {
    let old = std::mem::take(into);
    let mut merged = Vec::with_capacity(old.len() + 2 * other.len());
    let mut next = 0;
    for mut segment in other.iter().copied() {
        while next < old.len() && old[next].to <= segment.from {
            merged.push(old[next]);
            next += 1;
        }
        while segment.from < segment.to {
            match old.get(next) {
                Some(covering) if covering.from < segment.to => {
                    if segment.from < covering.from {
                        merged.push(Segment { to: covering.from, ..segment });
                    }
                    segment.from = segment.from.max(covering.to);
                    if covering.to <= segment.to {
                        merged.push(*covering);
                        next += 1;
                    }
                }
                _ => {
                    merged.push(segment);
                    break;
                }
            }
        }
    }
    merged.extend_from_slice(&old[next..]);
    *into = merged;
}

/// The segment that covers a point.
pub fn covering(segments: &[Segment], point: Point) -> Option<&Segment> {
    let index = segments.partition_point(|segment| segment.to <= point);
    segments.get(index).filter(|segment| segment.from <= point)
}

#[cfg(test)]
mod tests {
    use super::*;
    use cranelift_entity::EntityRef;

    fn segment(from: u32, to: u32, value: u32) -> Segment {
        Segment { from, to, value, owner: VReg::new(value as usize) }
    }

    /// Point by point: what the range holds there.
    fn contents(segments: &[Segment], points: u32) -> Vec<Option<u32>> {
        let mut held = vec![None; points as usize];
        let mut last = 0;
        for segment in segments {
            assert!(segment.from >= last && segment.from < segment.to, "{segments:?} is not sorted");
            last = segment.to;
            held[segment.from as usize..segment.to as usize].fill(Some(segment.value));
        }
        held
    }

    /// A range as one random choice per point: nothing, or one of three values.
    fn random_range(seed: &mut u64, points: u32) -> Vec<Segment> {
        let mut segments: Vec<Segment> = Vec::new();
        let mut at = 0;
        while at < points {
            *seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let length = 1 + (*seed >> 40) as u32 % 5;
            let to = (at + length).min(points);
            if !(*seed >> 33).is_multiple_of(3) {
                segments.push(segment(at, to, at / 16 % 3));
            }
            at = to;
        }
        segments
    }

    #[test]
    fn conflicts_and_joins_agree_with_a_table_of_points() {
        let mut seed = 1;
        for round in 0..2000 {
            let points = if round % 4 == 0 { 600 } else { 24 };
            let (a, b) = (random_range(&mut seed, points), random_range(&mut seed, points));
            let b: Vec<Segment> = b
                .into_iter()
                .map(|mut segment| {
                    segment.value = if round % 3 == 0 { (segment.value + 1) % 3 } else { segment.value };
                    segment
                })
                .collect();
            let (x, y) = (contents(&a, points), contents(&b, points));
            let differ = |(x, y): (&Option<u32>, &Option<u32>)| x.is_some() && y.is_some() && x != y;
            let expected = x.iter().zip(&y).any(differ);
            let as_tree = |segments: &[Segment]| Segments::Tree(segments.iter().map(|s| (s.from, *s)).collect());
            let pairs = [
                (Segments::Flat(a.clone()), Segments::Flat(b.clone())),
                (as_tree(&a), Segments::Flat(b.clone())),
                (Segments::Flat(a.clone()), as_tree(&b)),
                (as_tree(&a), as_tree(&b)),
            ];
            for (left, right) in pairs {
                let found = left.conflict(&right);
                assert_eq!(found.is_some(), expected);
                if let Some((point, left, right)) = found {
                    assert_eq!(x[point as usize], Some(left.value));
                    assert_eq!(y[point as usize], Some(right.value));
                    assert_ne!(left.value, right.value);
                    continue;
                }
                let mut joined = left;
                joined.absorb(right);
                let union: Vec<Option<u32>> = x.iter().zip(&y).map(|(x, y)| x.or(*y)).collect();
                assert_eq!(contents(&joined.into_vec(), points), union);
            }
        }
    }
}
