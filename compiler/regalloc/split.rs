//! Splits pieces that found no register: so that what is hot is in a register, and memory is used where it is cold.
//!
//! Three ways, tried in this order. *Regions*: for each register, the blocks where it is taken are settled, and the rest
//! choose register or memory so that the moves on the edges between both cost least; found by letting each block follow
//! its neighbours until nothing changes (a Hopfield network, as in Jakob Stoklund Olesen: Register Allocation in LLVM
//! 3.0, 2011). *Blocks*: each block with several uses gets a piece of its own, what is between stays in memory. *Within a
//! block*: the runs of uses whose pieces would outweigh what holds some register between them.
//!
//! ```text
//! use v; loop { use v … }; 30 values live; use v      v: memory, register in the loop, memory
//! ```
//!
//! **in**: a piece without a register. **out**: smaller pieces in its stead, cut only at gaps before instructions, each
//! queued or in memory; or false. Cost: the blocks of the piece times the registers, within the allocator's budget.

use super::assign::{Allocator, Blocked, PieceId, State, weight_of};
use super::points::Point;
use super::uses::Use;
use crate::x64::{PReg, RegSet};

/// After so many splits in a row, regions are not tried any more.
const REGION_ROUNDS: u8 = 5;

/// A block of a piece.
#[derive(Clone, Copy)]
struct Share {
    place: u32,
    live_in: bool,
    live_out: bool,
    /// What the uses in the block cost in memory.
    cost: f64,
    /// How many points of the block it is live at.
    length: u32,
}

impl Allocator<'_> {
    /// Splits a piece; false if there is nothing to gain.
    pub fn split(&mut self, id: PieceId) -> bool {
        let piece = &self.pieces[id as usize];
        if piece.uses.is_empty() {
            return false;
        }
        let (first, last) = (piece.segments[0].0, piece.segments[piece.segments.len() - 1].1);
        if self.points.place_of(first) == self.points.place_of(last - 1) {
            return self.split_within(id);
        }
        let shares = self.shares(id);
        self.budget -= 16 * shares.len() as i64;
        if self.budget > 0 && piece.round < REGION_ROUNDS && self.split_regions(id, &shares) {
            return true;
        }
        self.split_blocks(id)
    }

    /// The blocks over which a piece is live, in order of the layout.
    fn shares(&self, id: PieceId) -> Vec<Share> {
        let piece = &self.pieces[id as usize];
        let mut shares: Vec<Share> = Vec::new();
        for (from, to) in &piece.segments {
            let mut place = self.points.place_of(*from);
            while place < self.points.blocks() as u32 && self.points.start(place) < *to {
                let (start, end) = (self.points.start(place), self.points.end(place));
                if shares.last().is_none_or(|share| share.place != place) {
                    shares.push(Share { place, live_in: false, live_out: false, cost: 0.0, length: 0 });
                }
                let share = shares.last_mut().expect("just made");
                share.live_in |= *from <= start;
                share.live_out |= *to >= end;
                share.length += end.min(*to) - start.max(*from);
                place += 1;
            }
        }
        let mut index = 0;
        for one in &piece.uses {
            let place = self.points.place[one.inst as usize];
            while shares[index].place != place {
                index += 1;
            }
            shares[index].cost += self.cost_of(id, one);
        }
        shares
    }

    fn cost_of(&self, id: PieceId, one: &Use) -> f64 {
        let operands = f64::from(u8::from(one.reads) + u8::from(one.writes));
        let cost = self.points.freq_of(one.inst) * operands;
        if self.is_constant(self.pieces[id as usize].class) { 0.5 * cost } else { cost }
    }

    /// Splits into regions in one register and regions without.
    fn split_regions(&mut self, id: PieceId, shares: &[Share]) -> bool {
        for (index, share) in shares.iter().enumerate() {
            self.position[share.place as usize] = index as u32;
        }
        let neighbours = self.neighbours(shares);
        let mut best: Option<(f64, PReg, Vec<bool>)> = None;
        for reg in self.options.registers.intersection(RegSet::ALLOCATABLE).iter() {
            let taken = self.taken_blocks(id, reg, shares);
            let Some((gain, inside)) = self.best_region(shares, &neighbours, &taken) else { continue };
            let gain = if self.is_paid(reg) { gain } else { gain - 2.0 };
            if gain > 0.01 && best.as_ref().is_none_or(|(most, _, _)| gain > *most) {
                best = Some((gain, reg, inside));
            }
        }
        let split = best.is_some_and(|(_, reg, inside)| self.cut_regions(id, shares, &neighbours, &inside, reg));
        for share in shares {
            self.position[share.place as usize] = u32::MAX;
        }
        split
    }

    /// The edges of each block to others of the piece, with their frequencies.
    fn neighbours(&self, shares: &[Share]) -> Vec<Vec<(u32, f64)>> {
        let points = self.points;
        let mut neighbours: Vec<Vec<(u32, f64)>> = vec![Vec::new(); shares.len()];
        for (index, share) in shares.iter().enumerate().filter(|(_, share)| share.live_out) {
            for succ in &points.succs[share.place as usize] {
                let other = self.position[*succ as usize];
                if other != u32::MAX && shares[other as usize].live_in && other != index as u32 {
                    let freq = points.edge_freq(share.place, *succ);
                    neighbours[index].push((other, freq));
                    neighbours[other as usize].push((index as u32, freq));
                }
            }
        }
        neighbours
    }

    /// The blocks where the register is not to be had: pinned, clobbered, or held by something heavier.
    fn taken_blocks(&self, id: PieceId, reg: PReg, shares: &[Share]) -> Vec<bool> {
        let piece = &self.pieces[id as usize];
        let mut taken = vec![false; shares.len()];
        let caller_saved = RegSet::CALLER_SAVED.contains(reg);
        let mark = |taken: &mut Vec<bool>, from: Point, to: Point, weight: f64| {
            let mut index = self.position[self.points.place_of(from) as usize] as usize;
            while index < shares.len() && self.points.start(shares[index].place) < to {
                let share = &shares[index];
                // Only a block whose own uses outweigh what is there may hope to evict it.
                if weight >= weight_of(share.cost, share.length) {
                    taken[index] = true;
                }
                index += 1;
            }
        };
        for (from, to) in &piece.segments {
            if caller_saved {
                for call in self.fixed.calls_in(*from, *to) {
                    mark(&mut taken, *call, *call + 1, f64::INFINITY);
                }
            }
            self.fixed.for_each_pinned(reg, *from, *to, |start, end| {
                mark(&mut taken, start.max(*from), end.min(*to), f64::INFINITY);
                true
            });
            self.for_each_held(reg, *from, *to, |start, end, other| {
                mark(&mut taken, start.max(*from), end.min(*to), self.pieces[other as usize].weight);
                true
            });
        }
        taken
    }

    /// The choice of blocks for which a register saves most, and how much.
    fn best_region(
        &self,
        shares: &[Share],
        neighbours: &[Vec<(u32, f64)>],
        taken: &[bool],
    ) -> Option<(f64, Vec<bool>)> {
        let mut inside: Vec<bool> = taken.iter().map(|taken| !taken).collect();
        if !shares.iter().zip(&inside).any(|(share, inside)| *inside && share.cost > 0.0) {
            return None;
        }
        // Forwards and backwards in turn, so that a choice travels along chains in one pass.
        for pass in 0..8 {
            let mut changed = false;
            for step in 0..shares.len() {
                let index = if pass % 2 == 0 { step } else { shares.len() - 1 - step };
                if taken[index] {
                    continue;
                }
                let mut pull = shares[index].cost;
                for (other, freq) in &neighbours[index] {
                    pull += if inside[*other as usize] { *freq } else { -*freq };
                }
                let wish = pull > 0.0;
                changed |= wish != inside[index];
                inside[index] = wish;
            }
            if !changed {
                break;
            }
        }
        let mut gain = 0.0;
        for (index, share) in shares.iter().enumerate().filter(|(index, _)| inside[*index]) {
            gain += share.cost;
            for (other, freq) in &neighbours[index] {
                gain -= if inside[*other as usize] { 0.0 } else { *freq };
            }
        }
        Some((gain, inside))
    }

    /// Cuts a piece into the connected parts of both sides.
    fn cut_regions(
        &mut self,
        id: PieceId,
        shares: &[Share],
        neighbours: &[Vec<(u32, f64)>],
        inside: &[bool],
        reg: PReg,
    ) -> bool {
        let mut part = vec![u32::MAX; shares.len()];
        let mut parts: Vec<bool> = Vec::new();
        let mut stack: Vec<u32> = Vec::new();
        for index in 0..shares.len() {
            if part[index] != u32::MAX {
                continue;
            }
            part[index] = parts.len() as u32;
            stack.push(index as u32);
            while let Some(at) = stack.pop() {
                for (other, _) in &neighbours[at as usize] {
                    if part[*other as usize] == u32::MAX && inside[*other as usize] == inside[index] {
                        part[*other as usize] = parts.len() as u32;
                        stack.push(*other);
                    }
                }
            }
            parts.push(inside[index]);
        }
        if parts.len() < 2 {
            return false;
        }
        let piece = &self.pieces[id as usize];
        let (class, round) = (piece.class, piece.round + 1);
        let mut segments: Vec<Vec<(Point, Point)>> = vec![Vec::new(); parts.len()];
        let mut uses: Vec<Vec<Use>> = vec![Vec::new(); parts.len()];
        for (from, to) in &piece.segments {
            let mut at = *from;
            while at < *to {
                let place = self.points.place_of(at);
                let end = self.points.end(place).min(*to);
                let list = &mut segments[part[self.position[place as usize] as usize] as usize];
                match list.last_mut() {
                    Some(last) if last.1 == at => last.1 = end,
                    _ => list.push((at, end)),
                }
                at = end;
            }
        }
        for one in &piece.uses {
            let place = self.points.place[one.inst as usize];
            uses[part[self.position[place as usize] as usize] as usize].push(*one);
        }
        self.replace(id);
        for ((inside, segments), uses) in parts.into_iter().zip(segments).zip(uses) {
            // Outside, a register for a single use saves nothing over what the use gets anyway.
            let worthwhile = uses.len() > usize::from(!inside);
            let new = self.add_piece(class, segments, uses, round);
            self.pieces[new as usize].prefer = inside.then_some(reg);
            if worthwhile { self.enqueue(new) } else { self.spill(new) }
        }
        true
    }

    fn replace(&mut self, id: PieceId) {
        self.pieces[id as usize].state = State::Replaced;
        self.counts.splits += 1;
    }

    /// Gives each block with several uses a piece of its own, and leaves the rest in memory.
    fn split_blocks(&mut self, id: PieceId) -> bool {
        let uses = &self.pieces[id as usize].uses;
        let mut runs: Vec<(usize, usize)> = Vec::new();
        let mut start = 0;
        for index in 1..=uses.len() {
            let place = |index: usize| self.points.place[uses[index].inst as usize];
            // What is written anew is not connected to what was there before.
            if index == uses.len() || place(index) != place(start) || !uses[index].reads {
                if index - start > 1 {
                    runs.push((start, index));
                }
                start = index;
            }
        }
        if runs.is_empty() {
            return false;
        }
        let rest = self.cut_runs(id, &runs);
        rest.into_iter().for_each(|rest| self.spill(rest));
        true
    }

    /// Cuts runs of uses out of a piece; gives what is left, which is not queued, if anything is.
    fn cut_runs(&mut self, id: PieceId, runs: &[(usize, usize)]) -> Option<PieceId> {
        let piece = &self.pieces[id as usize];
        let (class, round) = (piece.class, piece.round.saturating_add(1));
        let (segments, uses) = (piece.segments.clone(), piece.uses.clone());
        self.replace(id);
        let mut left: Vec<(Point, Point)> = Vec::new();
        let mut left_uses: Vec<Use> = Vec::new();
        let mut segment = 0;
        let mut at = segments[0].0;
        let mut next_use = 0;
        for (start, end) in runs {
            let (from, to) = (2 * uses[*start].inst, 2 * uses[end - 1].inst + 2);
            take_until(&segments, &mut segment, &mut at, from, &mut left);
            let mut run: Vec<(Point, Point)> = Vec::new();
            take_until(&segments, &mut segment, &mut at, to, &mut run);
            left_uses.extend_from_slice(&uses[next_use..*start]);
            next_use = *end;
            let new = self.add_piece(class, run, uses[*start..*end].to_vec(), round);
            self.enqueue(new);
        }
        take_until(&segments, &mut segment, &mut at, Point::MAX, &mut left);
        left_uses.extend_from_slice(&uses[next_use..]);
        (!left.is_empty()).then(|| self.add_piece(class, left, left_uses, round))
    }

    /// Splits a piece within one block: cuts out the run of uses that gains most over what holds some register.
    fn split_within(&mut self, id: PieceId) -> bool {
        let piece = &self.pieces[id as usize];
        let count = piece.uses.len();
        if count < 2 {
            return false;
        }
        // Long pieces are halved first, so that looking for runs stays cheap.
        if count > 48 {
            let middle = count / 2;
            let widest = (middle - 8..middle + 8)
                .max_by_key(|index| piece.uses[*index].inst - piece.uses[*index - 1].inst)
                .expect("the range is not empty");
            let rest = self.cut_runs(id, &[(0, widest), (widest, count)]);
            rest.into_iter().for_each(|rest| self.spill(rest));
            return true;
        }
        let mut found: Vec<(f64, usize, usize)> = Vec::new();
        for reg in self.options.registers.intersection(RegSet::ALLOCATABLE).iter() {
            if self.is_paid(reg) || self.pieces[id as usize].cost > 2.0 {
                self.find_runs(id, reg, &mut found);
            }
        }
        // The best runs that have no use in common; the sort is stable.
        found.sort_by(|a, b| b.0.total_cmp(&a.0));
        let mut in_run = vec![false; count];
        let mut runs: Vec<(usize, usize)> = Vec::new();
        for (_, start, end) in found {
            if !in_run[start..end].contains(&true) {
                in_run[start..end].fill(true);
                runs.push((start, end));
            }
        }
        if runs.is_empty() || runs[0] == (0, count) && !self.shrinks(id) {
            return false;
        }
        // Several uses between two runs may still find a register by themselves. A single one gets a tiny piece if it
        // needs one, and so is left in memory.
        let mut start = 0;
        while start < count {
            let length = in_run[start..].iter().take_while(|used| !**used).count();
            if length > 1 {
                runs.push((start, start + length));
            }
            start += length.max(1);
        }
        runs.sort_unstable();
        let rest = self.cut_runs(id, &runs);
        rest.into_iter().for_each(|rest| self.spill(rest));
        true
    }

    /// Would a piece of only its uses be shorter than the piece?
    fn shrinks(&self, id: PieceId) -> bool {
        let piece = &self.pieces[id as usize];
        let (first, last) = (piece.uses[0].inst, piece.uses[piece.uses.len() - 1].inst);
        piece.segments[0].0 < 2 * first || piece.segments[piece.segments.len() - 1].1 > 2 * last + 2
    }

    /// Looks for the runs of uses that would gain in a register: for each first use, the one that gains most.
    fn find_runs(&self, id: PieceId, reg: PReg, found: &mut Vec<(f64, usize, usize)>) {
        let piece = &self.pieces[id as usize];
        let uses = &piece.uses;
        // The heaviest that holds the register between each two uses, both included.
        let mut heaviest = vec![0f64; uses.len() - 1];
        for (index, heaviest) in heaviest.iter_mut().enumerate() {
            let (from, to) = (2 * uses[index].inst, 2 * uses[index + 1].inst + 2);
            for (start, end) in &piece.segments {
                let (from, to) = (from.max(*start), to.min(*end));
                if from >= to {
                    continue;
                }
                match self.blocked(reg, &[(from, to)], !self.fixed.calls_in(from, to).is_empty(), 8) {
                    Blocked::Firmly => *heaviest = f64::INFINITY,
                    Blocked::By(others) => {
                        let most = others.iter().map(|other| self.pieces[*other as usize].weight);
                        *heaviest = most.fold(*heaviest, f64::max);
                    }
                }
            }
        }
        for start in 0..uses.len() - 1 {
            let mut best: Option<(f64, usize, usize)> = None;
            let mut most = 0f64;
            let mut cost = self.cost_of(id, &uses[start]);
            for end in start + 1..uses.len() {
                // What is written anew is not connected to what was there before.
                if !uses[end].reads {
                    break;
                }
                most = most.max(heaviest[end - 1]);
                if most == f64::INFINITY {
                    break;
                }
                cost += self.cost_of(id, &uses[end]);
                let freq = self.points.freq_of(uses[start].inst);
                // Entering with a value from memory is a load.
                let enter = if uses[start].reads { freq } else { 0.0 };
                let length = 2 * (uses[end].inst - uses[start].inst) + 2;
                let gain = weight_of(cost - enter, length) - most;
                // It must win its register clearly, else the two would take turns.
                if gain > 0.02 * most.max(0.001) && best.is_none_or(|(other, _, _)| gain > other) {
                    best = Some((gain, start, end + 1));
                }
            }
            found.extend(best);
        }
    }
}

/// Moves the points before `until` from `segments`, of which those before `at` are gone, to `out`.
fn take_until(
    segments: &[(Point, Point)],
    segment: &mut usize,
    at: &mut Point,
    until: Point,
    out: &mut Vec<(Point, Point)>,
) {
    while *segment < segments.len() {
        let (start, end) = segments[*segment];
        let from = start.max(*at);
        let to = end.min(until);
        if from < to {
            out.push((from, to));
        }
        *at = (*at).max(to);
        if end > until {
            return;
        }
        *segment += 1;
    }
}
