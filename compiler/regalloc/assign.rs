//! Gives every piece of every class a register, or leaves it in memory.
//!
//! A priority queue of pieces (large ones first, then those within one block in order of the code), as in Jakob Stoklund
//! Olesen's greedy allocator (Register Allocation in LLVM 3.0, 2011): a piece takes a free register that a copy hints at,
//! or any free one; or it evicts pieces whose spill weight is lower; or, once everything else has had its turn, it is
//! split (`split`); or it stays in memory, and each instruction that needs it in a register gets a *tiny* piece around
//! itself, which no other piece can evict. Weights of evicted pieces are strictly lower than those that evict them, and
//! splitting only makes smaller pieces, so that it ends.
//!
//! **in**: classes and their uses. **out**: every piece that is in force has a register or is in memory; no two that
//! overlap share a register; no register holds a piece where it is pinned or clobbered. Cost: each piece asks each
//! register once or a few times, a logarithm each; the work for splitting is bounded by a budget linear in the function.

use super::Options;
use super::coalesce::{ClassId, Classes, Constant, Target};
use super::points::{Fixed, Point, Points};
use super::ranges::covering;
use super::uses::{Use, Uses};
use crate::support::internal::Internal;
use crate::x64::{PReg, RegSet};
use smallvec::SmallVec;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// What saving and restoring one more callee-saved register costs, in executed instructions.
const NEW_CALLEE_SAVED: f64 = 2.0;

/// Caller-saved registers in the order in which they are tried, then callee-saved ones.
const ORDER: [PReg; 15] = [
    PReg::RAX,
    PReg::RCX,
    PReg::RDX,
    PReg::RSI,
    PReg::RDI,
    PReg::R8,
    PReg::R9,
    PReg::R10,
    PReg::R11,
    PReg::RBX,
    PReg::RBP,
    PReg::R12,
    PReg::R13,
    PReg::R14,
    PReg::R15,
];

/// A piece, by number.
pub type PieceId = u32;

/// Where a piece is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// It waits for its turn.
    Queued,
    /// In a register.
    Reg(PReg),
    /// In its slot, or, if it is a constant, nowhere.
    Memory,
    /// Smaller pieces stand for it.
    Replaced,
}

/// A part of a class that lives in one place.
#[derive(Clone, Debug)]
pub struct Piece {
    /// What it is a part of.
    pub class: ClassId,
    /// Its segments, sorted.
    pub segments: Vec<(Point, Point)>,
    /// Its uses, in order.
    pub uses: Vec<Use>,
    /// What its uses would cost in memory.
    pub cost: f64,
    /// The cost by length: of two that want one register, the heavier gets it.
    pub weight: f64,
    /// Where it is.
    pub state: State,
    /// A reload or a store's source around one instruction: it must have a register.
    pub tiny: bool,
    /// Has it failed once?
    pub deferred: bool,
    /// How many splits it comes from.
    pub round: u8,
    /// The register that splitting made it for.
    pub prefer: Option<PReg>,
    crosses_call: bool,
}

/// How many things happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Pieces left in memory.
    pub spills: u32,
    /// Pieces that were split.
    pub splits: u32,
    /// Pieces that lost their register to others.
    pub evictions: u32,
}

/// The allocator's state.
pub struct Allocator<'a> {
    pub points: &'a Points,
    pub fixed: &'a Fixed,
    pub classes: &'a Classes,
    pub options: &'a Options,
    pub pieces: Vec<Piece>,
    /// The piece that was each class as a whole.
    pub whole: Vec<PieceId>,
    pub counts: Counts,
    /// What holds each register, by first point: the point behind the last, and the piece.
    held: [BTreeMap<Point, (Point, PieceId)>; 16],
    /// Whether each instruction has a memory operand already.
    memory: Vec<bool>,
    queue: BinaryHeap<(u64, Reverse<PieceId>)>,
    /// The register that some piece of each class had last.
    last: Vec<Option<PReg>>,
    /// Callee-saved registers that are in use, and so are paid for.
    paid: RegSet,
    /// Work that splitting may still do.
    pub budget: i64,
    /// Scratch for splitting: the position of each place in the piece at hand.
    pub position: Vec<u32>,
}

/// Why a register cannot be had.
pub enum Blocked {
    /// An instruction demands it, or a call overwrites it, or a tiny piece has it.
    Firmly,
    /// Pieces hold it that might be evicted.
    By(SmallVec<[PieceId; 8]>),
}

/// Allocates.
pub fn run<'a>(
    points: &'a Points,
    fixed: &'a Fixed,
    classes: &'a Classes,
    uses: Uses,
    options: &'a Options,
) -> Result<Allocator<'a>, Internal> {
    let mut paid = RegSet::EMPTY;
    for reg in RegSet::CALLEE_SAVED.iter().filter(|reg| !fixed.pinned[reg.number() as usize].is_empty()) {
        paid = paid.with(reg);
    }
    let mut allocator = Allocator {
        points,
        fixed,
        classes,
        options,
        pieces: Vec::with_capacity(classes.list.len()),
        whole: Vec::with_capacity(classes.list.len()),
        counts: Counts::default(),
        held: Default::default(),
        memory: uses.memory,
        queue: BinaryHeap::new(),
        last: vec![None; classes.list.len()],
        paid,
        budget: 100 * (i64::from(points.insts()) + 100),
        position: vec![u32::MAX; points.blocks()],
    };
    for (class, uses) in uses.of.into_iter().enumerate() {
        let mut segments: Vec<(Point, Point)> = Vec::new();
        for segment in &classes.list[class].segments {
            match segments.last_mut() {
                Some(last) if last.1 == segment.from => last.1 = segment.to,
                _ => segments.push((segment.from, segment.to)),
            }
        }
        let id = allocator.add_piece(class as ClassId, segments, uses, 0);
        allocator.whole.push(id);
        if options.spill_all {
            allocator.spill(id);
        } else {
            allocator.enqueue(id);
        }
    }
    while let Some((_, Reverse(id))) = allocator.queue.pop() {
        if allocator.pieces[id as usize].state == State::Queued {
            allocator.place(id)?;
        }
    }
    Ok(allocator)
}

impl Allocator<'_> {
    /// Makes a piece; it is not queued yet.
    pub fn add_piece(&mut self, class: ClassId, segments: Vec<(Point, Point)>, uses: Vec<Use>, round: u8) -> PieceId {
        let length: u32 = segments.iter().map(|(from, to)| to - from).sum();
        let mut cost = 0.0;
        for one in &uses {
            cost += self.points.freq_of(one.inst) * f64::from(u8::from(one.reads) + u8::from(one.writes));
        }
        if self.is_constant(class) {
            cost *= 0.5;
        }
        let crosses_call = segments.iter().any(|(from, to)| !self.fixed.calls_in(*from, *to).is_empty());
        let weight = weight_of(cost, length);
        self.pieces.push(Piece {
            class,
            segments,
            uses,
            cost,
            weight,
            state: State::Queued,
            tiny: false,
            deferred: false,
            round,
            prefer: None,
            crosses_call,
        });
        self.pieces.len() as PieceId - 1
    }

    /// Is a spilled piece of the class made again where it is needed?
    pub fn is_constant(&self, class: ClassId) -> bool {
        self.classes.list[class as usize].constant.is_some() && !self.options.spill_all
    }

    /// Is the class's one value at hand without being stored: a constant, or in a slot of the caller's?
    pub fn has_home(&self, class: ClassId) -> bool {
        self.is_constant(class) || self.classes.list[class as usize].incoming.is_some()
    }

    /// Is it a constant that an instruction can write to memory?
    fn is_short_constant(&self, class: ClassId) -> bool {
        match self.classes.list[class as usize].constant {
            Some(Constant::Imm(value)) => i32::try_from(value).is_ok(),
            Some(Constant::Str(_)) | None => false,
        }
    }

    /// Puts a piece into the queue.
    pub fn enqueue(&mut self, id: PieceId) {
        let piece = &self.pieces[id as usize];
        let first = piece.segments[0].0;
        let last = piece.segments[piece.segments.len() - 1].1;
        let local = piece.segments.len() == 1 && self.points.place_of(first) == self.points.place_of(last - 1);
        let length: u32 = piece.segments.iter().map(|(from, to)| to - from).sum();
        let order = u64::from(u32::MAX - first);
        let priority = match (piece.tiny, piece.deferred, local) {
            (true, _, _) => 5 << 40 | order,
            (false, false, false) => 4 << 40 | u64::from(length),
            (false, false, true) => 3 << 40 | order,
            (false, true, false) => 2 << 40 | u64::from(length),
            (false, true, true) => 1 << 40 | order,
        };
        self.pieces[id as usize].state = State::Queued;
        self.queue.push((priority, Reverse(id)));
    }

    fn place(&mut self, id: PieceId) -> Result<(), Internal> {
        let (order, hinted) = self.candidates(id);
        let piece = &self.pieces[id as usize];
        let cheap = piece.cost <= NEW_CALLEE_SAVED;
        let free = order.iter().copied().enumerate().find(|(_, reg)| {
            let unpaid = RegSet::CALLEE_SAVED.contains(*reg) && !self.paid.contains(*reg);
            !(unpaid && cheap) && self.is_free(*reg, id)
        });
        if let Some((index, reg)) = free {
            // A hinted register that only lighter pieces hold is better than a free one.
            let better = order[..index.min(hinted)].iter().copied().find(|reg| self.is_worth_evicting(*reg, id));
            match better {
                Some(better) => self.evict_and_take(better, id),
                None => self.take(reg, id),
            }
            return Ok(());
        }
        let victim = order
            .iter()
            .copied()
            .filter_map(|reg| self.eviction_weight(reg, id).map(|weight| (reg, weight)))
            .min_by(|a, b| a.1.total_cmp(&b.1));
        if let Some((reg, _)) = victim {
            self.evict_and_take(reg, id);
            return Ok(());
        }
        if self.pieces[id as usize].tiny {
            // Even a register that costs its saving is better than none.
            let reg = order.iter().copied().find(|reg| self.is_free(*reg, id));
            let reg = reg.ok_or_else(|| self.too_few_registers(id))?;
            self.take(reg, id);
            return Ok(());
        }
        if !self.pieces[id as usize].deferred {
            self.pieces[id as usize].deferred = true;
            self.enqueue(id);
            return Ok(());
        }
        if !self.split(id) {
            self.spill(id);
        }
        Ok(())
    }

    fn too_few_registers(&self, id: PieceId) -> Internal {
        let piece = &self.pieces[id as usize];
        let members = &self.classes.list[piece.class as usize].members;
        let inst = piece.segments[0].0 / 2;
        let block = self.points.layout[self.points.place[inst as usize] as usize];
        Internal::new(
            members[0],
            format!("an instruction of {block} needs more registers than the {} allowed", self.options.registers.len()),
        )
    }

    /// The registers to try, best first, and how many of them are hinted.
    fn candidates(&self, id: PieceId) -> (SmallVec<[PReg; 16]>, usize) {
        let piece = &self.pieces[id as usize];
        let mut wanted = [0f64; 16];
        if let Some(reg) = piece.prefer {
            wanted[reg.number() as usize] += f64::MAX / 4.0;
        }
        self.add_hints(piece.class, &piece.segments, &mut wanted);
        let allowed = self.options.registers.intersection(RegSet::ALLOCATABLE);
        let mut order: SmallVec<[PReg; 16]> = ORDER
            .iter()
            .copied()
            .filter(|reg| allowed.contains(*reg) && !(piece.crosses_call && RegSet::CALLER_SAVED.contains(*reg)))
            .collect();
        // The sort is stable: among equals the order above holds.
        order.sort_by(|a, b| {
            let hint = wanted[b.number() as usize].total_cmp(&wanted[a.number() as usize]);
            hint.then_with(|| self.is_unpaid(*a).cmp(&self.is_unpaid(*b)))
        });
        let hinted = order.iter().take_while(|reg| wanted[reg.number() as usize] > 0.0).count();
        (order, hinted)
    }

    fn is_unpaid(&self, reg: PReg) -> bool {
        RegSet::CALLEE_SAVED.contains(reg) && !self.paid.contains(reg)
    }

    /// Adds up what the copies at the piece's ends wish for. Of a class with very many copies, the first count.
    fn add_hints(&self, class: ClassId, segments: &[(Point, Point)], wanted: &mut [f64; 16]) {
        let hints = &self.classes.list[class as usize].hints;
        let (first, last) = (segments[0].0, segments[segments.len() - 1].1);
        let start = hints.partition_point(|hint| hint.point < first);
        for hint in hints[start..].iter().take(64).take_while(|hint| hint.point < last) {
            match hint.target {
                Target::Reg(reg) => wanted[reg.number() as usize] += hint.weight,
                Target::Class(other) => match self.last[other as usize] {
                    Some(reg) => wanted[reg.number() as usize] += hint.weight,
                    None => {
                        // A class without a register yet passes on what it wishes itself, for chains of copies.
                        for next in self.classes.list[other as usize].hints.iter().take(8) {
                            if let Target::Reg(reg) = next.target {
                                wanted[reg.number() as usize] += hint.weight.min(next.weight) * 0.5;
                            }
                        }
                    }
                },
            }
        }
    }

    fn is_free(&self, reg: PReg, id: PieceId) -> bool {
        let piece = &self.pieces[id as usize];
        if piece.crosses_call && RegSet::CALLER_SAVED.contains(reg) {
            return false;
        }
        let held = &self.held[reg.number() as usize];
        piece.segments.iter().all(|(from, to)| {
            let before = held.range(..*to).next_back();
            before.is_none_or(|(_, (end, _))| end <= from) && !self.fixed.is_pinned(reg, *from, *to)
        })
    }

    /// What holds the register where the piece is live; at most `limit` pieces, else firmly blocked.
    pub fn blocked(&self, reg: PReg, segments: &[(Point, Point)], crosses_call: bool, limit: usize) -> Blocked {
        if crosses_call && RegSet::CALLER_SAVED.contains(reg) {
            return Blocked::Firmly;
        }
        let mut found: SmallVec<[PieceId; 8]> = SmallVec::new();
        for (from, to) in segments {
            if self.fixed.is_pinned(reg, *from, *to) {
                return Blocked::Firmly;
            }
            let mut fits = true;
            self.for_each_held(reg, *from, *to, |_, _, other| {
                if !found.contains(&other) {
                    fits = found.len() < limit && !self.pieces[other as usize].tiny;
                    found.push(other);
                }
                fits
            });
            if !fits {
                return Blocked::Firmly;
            }
        }
        Blocked::By(found)
    }

    /// Calls `visit` with each stretch of a piece in the register that overlaps `[from, to)`, until it answers false.
    pub fn for_each_held(
        &self,
        reg: PReg,
        from: Point,
        to: Point,
        mut visit: impl FnMut(Point, Point, PieceId) -> bool,
    ) {
        let held = &self.held[reg.number() as usize];
        if let Some((start, (end, other))) = held.range(..from).next_back()
            && *end > from
            && !visit(*start, *end, *other)
        {
            return;
        }
        for (start, (end, other)) in held.range(from..to) {
            if !visit(*start, *end, *other) {
                return;
            }
        }
    }

    /// The weight of the heaviest piece that would have to go, if all that would are lighter.
    fn eviction_weight(&self, reg: PReg, id: PieceId) -> Option<f64> {
        let piece = &self.pieces[id as usize];
        let own = if piece.tiny { f64::INFINITY } else { piece.weight };
        if self.is_unpaid(reg) && !piece.tiny && piece.cost <= NEW_CALLEE_SAVED {
            return None;
        }
        if piece.crosses_call && RegSet::CALLER_SAVED.contains(reg) {
            return None;
        }
        // Evicting very many pieces is not worth it; a tiny piece has no choice. The search ends at the first that is not
        // lighter, which is soon found where it matters.
        let limit = if piece.tiny { usize::MAX } else { 16 };
        let (mut heaviest, mut count) = (0f64, 0);
        for (from, to) in &piece.segments {
            if self.fixed.is_pinned(reg, *from, *to) {
                return None;
            }
            let mut lighter = true;
            self.for_each_held(reg, *from, *to, |_, _, other| {
                heaviest = heaviest.max(self.pieces[other as usize].weight);
                count += 1;
                lighter = heaviest < own && count <= limit;
                lighter
            });
            if !lighter {
                return None;
            }
        }
        (count > 0).then_some(heaviest)
    }

    /// May the piece take a register that it wishes for from those that have it? Only from few, clearly lighter ones.
    fn is_worth_evicting(&self, reg: PReg, id: PieceId) -> bool {
        let piece = &self.pieces[id as usize];
        let Blocked::By(others) = self.blocked(reg, &piece.segments, piece.crosses_call, 3) else { return false };
        !piece.tiny
            && !others.is_empty()
            && others.iter().all(|other| self.pieces[*other as usize].weight < piece.weight)
    }

    fn evict_and_take(&mut self, reg: PReg, id: PieceId) {
        let piece = &self.pieces[id as usize];
        let Blocked::By(others) = self.blocked(reg, &piece.segments, piece.crosses_call, usize::MAX) else {
            panic!("a register that was found evictable is blocked firmly")
        };
        for other in others {
            self.release(other);
            self.counts.evictions += 1;
            self.enqueue(other);
        }
        self.take(reg, id);
    }

    fn take(&mut self, reg: PReg, id: PieceId) {
        let piece = &mut self.pieces[id as usize];
        piece.state = State::Reg(reg);
        let held = &mut self.held[reg.number() as usize];
        for (from, to) in &piece.segments {
            held.insert(*from, (*to, id));
        }
        self.last[piece.class as usize] = Some(reg);
        if RegSet::CALLEE_SAVED.contains(reg) {
            self.paid = self.paid.with(reg);
        }
    }

    fn release(&mut self, id: PieceId) {
        let piece = &self.pieces[id as usize];
        let State::Reg(reg) = piece.state else { panic!("a piece without a register is evicted") };
        for (from, _) in &piece.segments {
            self.held[reg.number() as usize].remove(from);
        }
    }

    /// Leaves a piece in memory. Uses that need a register get tiny pieces.
    pub fn spill(&mut self, id: PieceId) {
        let piece = &mut self.pieces[id as usize];
        piece.state = State::Memory;
        self.counts.spills += 1;
        let class = piece.class;
        let uses = piece.uses.clone();
        let constant = self.is_constant(class);
        for one in uses {
            let stays = if self.has_home(class) && one.writes && !one.reads {
                // Nothing needs to be made: what makes it is dropped.
                true
            } else if constant {
                one.constant && (one.any_slot || self.is_short_constant(class))
            } else {
                one.any_slot || one.slot && !std::mem::replace(&mut self.memory[one.inst as usize], true)
            };
            if !stays {
                let from = 2 * one.inst + u32::from(!one.reads);
                let to = 2 * one.inst + 1 + u32::from(one.writes);
                let tiny = self.add_piece(class, vec![(from, to)], vec![one], u8::MAX);
                self.pieces[tiny as usize].tiny = true;
                self.pieces[tiny as usize].weight = f64::INFINITY;
                self.enqueue(tiny);
            }
        }
    }

    /// Is the register free, of pieces and pins, at the point?
    pub fn is_free_at(&self, reg: PReg, point: Point) -> bool {
        let held = self.held[reg.number() as usize].range(..=point).next_back();
        held.is_none_or(|(_, (end, _))| *end <= point) && !self.fixed.is_pinned(reg, point, point + 1)
    }

    /// The value that a class holds at a point.
    pub fn value_at(&self, class: ClassId, point: Point) -> Option<u32> {
        covering(&self.classes.list[class as usize].segments, point).map(|segment| segment.value)
    }

    /// May the register be used at no further cost?
    pub fn is_paid(&self, reg: PReg) -> bool {
        !self.is_unpaid(reg)
    }
}

/// The spill weight: cost by length, where short pieces do not weigh much more than somewhat longer ones.
pub fn weight_of(cost: f64, length: u32) -> f64 {
    cost / (f64::from(length) / 2.0 + 25.0)
}
