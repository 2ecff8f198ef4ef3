//! Differences between two listings of one function: which lines stayed, which only have other numbers, which came and
//! went. The only door to the `similar` crate.
//!
//! Lines are compared by what they say, with the numbers of values and registers left out, so that a difference survives
//! renumbering; lines that agree but for those are marked. Blocks are matched by their labels first and compared one by
//! one (Eugene Myers, An O(ND) Difference Algorithm and Its Variations, 1986), so that the cost stays near-linear in
//! functions of many blocks; very long blocks that have little in common are taken as replaced.
//!
//! ```text
//! old                        new
//!   x = copy 1               - x = copy 1
//!   jump b1                    jump b1
//! ```

use super::listing::{Entity, Line};
use std::collections::HashMap;

/// What became of a run of lines.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Change {
    /// In both, word for word.
    Same,
    /// In both, with other numbers.
    Renumbered,
    /// Only in the old listing.
    Removed,
    /// Only in the new listing.
    Added,
}

/// A run of lines with one fate: `old..old + len` of the old listing, `new..new + len` of the new one. For removed lines
/// `new` is where they would stand, for added ones `old`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Run {
    pub change: Change,
    pub old: usize,
    pub new: usize,
    pub len: usize,
}

/// Blocks longer than this are not searched for common lines inside, beyond their common start and end.
const LONG: usize = 4000;

/// The runs that lead from the old lines to the new ones, in order; every line of either is in exactly one.
pub fn compute(old: &[Line], new: &[Line]) -> Vec<Run> {
    let (old_blocks, new_blocks) = (blocks(old), blocks(new));
    let position: HashMap<Option<Entity>, usize> =
        old_blocks.iter().enumerate().map(|(position, (label, ..))| (*label, position)).collect();
    let mut runs = Runs { old, new, at_old: 0, at_new: 0, runs: Vec::new() };
    let mut next = 0;
    for (label, start, end) in &new_blocks {
        match position.get(label) {
            // Matched blocks must keep their order; one that moved up counts as removed and added.
            Some(found) if *found >= next => {
                let (_, old_start, old_end) = old_blocks[*found];
                runs.push(Change::Removed, old_start - runs.at_old);
                next = found + 1;
                runs.block(old_end, *end);
            }
            Some(_) | None => runs.push(Change::Added, end - start),
        }
    }
    runs.push(Change::Removed, old.len() - runs.at_old);
    runs.runs
}

/// The blocks as (label, start, end); what stands before the first label is a block without one.
fn blocks(lines: &[Line]) -> Vec<(Option<Entity>, usize, usize)> {
    let mut blocks = vec![(None, 0, lines.len())];
    for (position, line) in lines.iter().enumerate() {
        if let Some(Entity::Block(_)) = line.entity {
            blocks.last_mut().expect("there is a first block").2 = position;
            blocks.push((line.entity, position, lines.len()));
        }
    }
    blocks
}

struct Runs<'a> {
    old: &'a [Line],
    new: &'a [Line],
    /// How far the runs lead in each listing.
    at_old: usize,
    at_new: usize,
    runs: Vec<Run>,
}

impl Runs<'_> {
    /// Goes on by `len` lines.
    fn push(&mut self, change: Change, len: usize) {
        if len == 0 {
            return;
        }
        match self.runs.last_mut() {
            Some(last) if last.change == change => last.len += len,
            Some(_) | None => self.runs.push(Run { change, old: self.at_old, new: self.at_new, len }),
        }
        if change != Change::Added {
            self.at_old += len;
        }
        if change != Change::Removed {
            self.at_new += len;
        }
    }

    /// Goes on by `len` lines that agree but perhaps for their numbers.
    fn common(&mut self, len: usize) {
        for _ in 0..len {
            let same = self.old[self.at_old].text() == self.new[self.at_new].text();
            self.push(if same { Change::Same } else { Change::Renumbered }, 1);
        }
    }

    /// Goes on to the ends of two matching blocks.
    fn block(&mut self, old_end: usize, new_end: usize) {
        let old_keys: Vec<String> = self.old[self.at_old..old_end].iter().map(key).collect();
        let new_keys: Vec<String> = self.new[self.at_new..new_end].iter().map(key).collect();
        let start = old_keys.iter().zip(&new_keys).take_while(|(a, b)| a == b).count();
        let rest = old_keys.len().min(new_keys.len()) - start;
        let end = old_keys.iter().rev().zip(new_keys.iter().rev()).take(rest).take_while(|(a, b)| a == b).count();
        let (old_middle, new_middle) = (&old_keys[start..old_keys.len() - end], &new_keys[start..new_keys.len() - end]);
        self.common(start);
        if old_middle.len().max(new_middle.len()) > LONG {
            self.push(Change::Removed, old_middle.len());
            self.push(Change::Added, new_middle.len());
        } else {
            // Only the lengths of the operations count: where a deletion stands in the new text is not always exact.
            for op in similar::capture_diff_slices(similar::Algorithm::Myers, old_middle, new_middle) {
                match op {
                    similar::DiffOp::Equal { len, .. } => self.common(len),
                    similar::DiffOp::Delete { old_len, .. } => self.push(Change::Removed, old_len),
                    similar::DiffOp::Insert { new_len, .. } => self.push(Change::Added, new_len),
                    similar::DiffOp::Replace { old_len, new_len, .. } => {
                        self.push(Change::Removed, old_len);
                        self.push(Change::Added, new_len);
                    }
                }
            }
        }
        self.common(end);
    }
}

/// What a line says, without the numbers of values and registers.
fn key(line: &Line) -> String {
    let mut key = String::new();
    for piece in &line.pieces {
        match piece.entity {
            Some(Entity::Value(_)) => key.push('%'),
            // Allocation puts physical registers where virtual ones were.
            Some(Entity::VReg(_) | Entity::PReg(_)) => key.push('r'),
            Some(Entity::Function(_) | Entity::Variable(_) | Entity::Block(_) | Entity::Inst(_) | Entity::Slot(_))
            | None => key.push_str(&piece.text),
        }
    }
    key
}

#[cfg(test)]
mod tests {
    use super::super::listing::Kind;
    use super::*;
    use crate::support::random::Random;

    fn line(text: &str) -> Line {
        let mut line = Line::new();
        if let Some(number) = text.strip_prefix('b').and_then(|rest| rest.strip_suffix(':')) {
            line.entity = Some(Entity::Block(number.parse().expect("a block's number")));
            line.put(Kind::Block, text);
            return line;
        }
        for word in text.split(' ') {
            match word.strip_prefix('%') {
                Some(number) => line.refer(Kind::Value, word, Entity::Value(number.parse().expect("a value's number"))),
                None => line.put(Kind::Plain, word),
            };
        }
        line
    }

    fn lines(text: &[&str]) -> Vec<Line> {
        text.iter().map(|text| line(text)).collect()
    }

    /// The runs as signs, one a line.
    fn signs(runs: &[Run]) -> String {
        let sign = |change| match change {
            Change::Same => '=',
            Change::Renumbered => '~',
            Change::Removed => '-',
            Change::Added => '+',
        };
        runs.iter().flat_map(|run| std::iter::repeat_n(sign(run.change), run.len)).collect()
    }

    #[test]
    fn numbers_do_not_count_as_changes() {
        let old = lines(&["b0:", "%1 = 5", "%2 = %1 + 1", "jump b1", "b1:", "print %2"]);
        let new = lines(&["b0:", "%7 = 5", "%8 = %7 + 1", "jump b1", "b1:", "print %8"]);
        assert_eq!(signs(&compute(&old, &new)), "=~~==~");
    }

    #[test]
    fn lines_come_and_go_within_their_blocks() {
        let old = lines(&["b0:", "a", "b", "c", "b1:", "x", "b2:", "y"]);
        let new = lines(&["b0:", "a", "c", "d", "b2:", "y", "b3:", "x"]);
        assert_eq!(signs(&compute(&old, &new)), "==-=+--==++");
    }

    #[test]
    fn every_line_is_in_one_run() {
        for seed in 0..500 {
            let mut random = Random::new(seed);
            let mut draw = || {
                let mut text = Vec::new();
                for block in 0..random.below(6) {
                    if random.chance(80) {
                        text.push(line(&format!("b{block}:")));
                    }
                    for _ in 0..random.below(6) {
                        text.push(line(random.pick(&["a", "b", "c %1", "c %2", "d"])));
                    }
                }
                text
            };
            let (old, new) = (draw(), draw());
            let (mut at_old, mut at_new) = (0, 0);
            for run in compute(&old, &new) {
                assert_eq!((run.old, run.new), (at_old, at_new), "seed {seed}");
                let (in_old, in_new) = match run.change {
                    Change::Same | Change::Renumbered => (run.len, run.len),
                    Change::Removed => (run.len, 0),
                    Change::Added => (0, run.len),
                };
                for step in 0..in_old.min(in_new) {
                    assert_eq!(key(&old[at_old + step]), key(&new[at_new + step]), "seed {seed}");
                }
                at_old += in_old;
                at_new += in_new;
            }
            assert_eq!((at_old, at_new), (old.len(), new.len()), "seed {seed}");
        }
    }
}
