//! Computes the live range of every virtual register, and which value each of its segments holds.
//!
//! Liveness explores the control flow backwards from each read, one register at a time (Andrew Appel, Jens Palsberg:
//! Modern Compiler Implementation in Java, 2002, chapter 19), so memory is that of the result. Registers may be assigned
//! many times; their values are numbered as construction of SSA form would number them: a join where different values
//! meet makes a new one. A copy brings its source's value, so that two ranges that hold the same value can be told from
//! two that interfere (Boissinot et al., 2009, section 4).
//!
//! ```text
//! 0 mov v0, 7      v0 [1, 9) value 0
//! 1 mov v1, v0     v1 [3, 5) value 0, the same
//! 2 add v1, 1         [5, 7) value 1
//! ```
//!
//! **in**: a verified function: what is read was written on every way (argument registers in the entry block aside).
//! **out**: sorted segments; two neighbours differ in value or leave a gap; a value that nothing reads has a segment of
//! one point. Cost: linear in instructions plus the blocks over which each register is live.

use super::points::{Fixed, Point, Points};
use super::ranges::{Segment, ValueId, covering};
use crate::x64::{Function, Op, RegMem, RegMemImm, Role, VReg};
use cranelift_entity::EntityRef;

/// Where a value comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Origin {
    /// The instruction that assigns it.
    Inst(u32),
    /// The join of different values at the start of a block, by place.
    Join(u32),
    /// It was there before the function began.
    Entry,
}

/// A read, a write, or both, of one virtual register by one instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Event {
    /// The instruction.
    pub inst: u32,
    /// Does it read the register?
    pub reads: bool,
    /// Does it write it?
    pub writes: bool,
}

/// A copy between registers: a `mov` or a pair of a parallel move.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Copy {
    /// The instruction.
    pub inst: u32,
    /// Which pair of a parallel move; 0 for a `mov`.
    pub pair: u32,
    /// What it writes.
    pub dst: VReg,
    /// What it reads.
    pub src: VReg,
}

/// Lists of events by virtual register, one behind the other.
#[derive(Clone, Debug)]
pub struct Events {
    start: Vec<u32>,
    list: Vec<Event>,
}

impl Events {
    /// The events of a virtual register, in order.
    pub fn of(&self, vreg: VReg) -> &[Event] {
        &self.list[self.start[vreg.index()] as usize..self.start[vreg.index() + 1] as usize]
    }
}

/// The result.
#[derive(Clone, Debug)]
pub struct LiveRanges {
    /// The segments of each virtual register.
    pub segments: Vec<Vec<Segment>>,
    /// Where each value comes from.
    pub origins: Vec<Origin>,
    /// The reads and writes of each virtual register.
    pub events: Events,
    /// The copies between virtual registers, in order of the layout.
    pub copies: Vec<Copy>,
    /// The pinned ranges and the calls.
    pub fixed: Fixed,
}

/// Computes the live ranges.
pub fn compute(function: &Function<VReg>, points: &Points) -> LiveRanges {
    let (events, copies, calls) = collect(function, points);
    let mut ranges = LiveRanges {
        segments: vec![Vec::new(); function.vregs.len()],
        origins: Vec::new(),
        events,
        copies,
        fixed: Fixed { calls, ..Fixed::default() },
    };
    let mut explorer = Explorer::new(points);
    for vreg in function.vregs.keys() {
        ranges.segments[vreg.index()] = explorer.explore(vreg, ranges.events.of(vreg), &mut ranges.origins);
    }
    share_values_of_copies(&mut ranges, points);
    for (vreg, data) in &function.vregs {
        if let Some(reg) = data.pinned {
            ranges.segments[vreg.index()].iter().for_each(|segment| ranges.fixed.pin(reg, segment.from, segment.to));
        }
    }
    ranges.fixed.finish();
    ranges
}

/// Calls `visit` with every register operand of instruction `inst` at a place: of an instruction or of the terminator.
pub fn for_each_reg(
    function: &Function<VReg>,
    points: &Points,
    place: u32,
    inst: u32,
    mut visit: impl FnMut(VReg, Role),
) {
    let data = &function.blocks[points.layout[place as usize]];
    match data.insts.get((inst - points.first[place as usize]) as usize) {
        Some(inst) => inst.op.for_each_reg(|vreg, role, _| visit(vreg, role)),
        None => data.term.for_each_reg(|vreg, role, _| visit(vreg, role)),
    }
}

fn collect(function: &Function<VReg>, points: &Points) -> (Events, Vec<Copy>, Vec<Point>) {
    let mut copies = Vec::new();
    let mut calls = Vec::new();
    let mut start = vec![0u32; function.vregs.len() + 1];
    // The last instruction that mentions each register, so that one that mentions it twice makes one event.
    let mut last = vec![u32::MAX; function.vregs.len()];
    for place in 0..points.blocks() as u32 {
        for inst in points.first[place as usize]..points.first[place as usize + 1] {
            for_each_reg(function, points, place, inst, |vreg, _| {
                if last[vreg.index()] != inst {
                    last[vreg.index()] = inst;
                    start[vreg.index() + 1] += 1;
                }
            });
        }
    }
    for index in 1..start.len() {
        start[index] += start[index - 1];
    }
    let mut next = start.clone();
    let mut list = vec![Event { inst: u32::MAX, reads: false, writes: false }; start[start.len() - 1] as usize];
    for place in 0..points.blocks() as u32 {
        let data = &function.blocks[points.layout[place as usize]];
        for inst in points.first[place as usize]..points.first[place as usize + 1] {
            for_each_reg(function, points, place, inst, |vreg, role| {
                let at = &mut next[vreg.index()];
                if *at == start[vreg.index()] || list[*at as usize - 1].inst != inst {
                    list[*at as usize].inst = inst;
                    *at += 1;
                }
                let event = &mut list[*at as usize - 1];
                event.reads |= role != Role::Def;
                event.writes |= role != Role::Use;
            });
            let Some(data) = data.insts.get((inst - points.first[place as usize]) as usize) else { continue };
            match &data.op {
                Op::Mov { dst: RegMem::Reg(dst), src: RegMem::Reg(src) } => {
                    copies.push(Copy { inst, pair: 0, dst: *dst, src: *src });
                }
                Op::Parallel { moves } => {
                    for (pair, (dst, src)) in moves.iter().enumerate() {
                        if let (RegMem::Reg(dst), RegMemImm::Reg(src)) = (dst, src) {
                            copies.push(Copy { inst, pair: pair as u32, dst: *dst, src: *src });
                        }
                    }
                }
                op if !op.clobbers().is_empty() => calls.push(2 * inst + 1),
                _ => {}
            }
        }
    }
    (Events { start, list }, copies, calls)
}

/// The events of one register in one block; none where the register is only live through it.
#[derive(Clone, Copy)]
struct Share {
    place: u32,
    from: u32,
    to: u32,
}

const NONE: ValueId = ValueId::MAX;

/// What exploration knows of each block for the register at hand; entries count where the stamp is that register's.
#[derive(Clone, Copy)]
struct Note {
    stamp: u32,
    live_in: bool,
    live_out: bool,
    touched: bool,
    joins: bool,
    value_in: ValueId,
    value_out: ValueId,
}

struct Explorer<'a> {
    points: &'a Points,
    notes: Vec<Note>,
    shares: Vec<Share>,
    worklist: Vec<u32>,
    /// The value that each event writes.
    written: Vec<ValueId>,
}

impl<'a> Explorer<'a> {
    fn new(points: &'a Points) -> Explorer<'a> {
        let fresh = Note {
            stamp: u32::MAX,
            live_in: false,
            live_out: false,
            touched: false,
            joins: false,
            value_in: NONE,
            value_out: NONE,
        };
        Explorer {
            points,
            notes: vec![fresh; points.blocks()],
            shares: Vec::new(),
            worklist: Vec::new(),
            written: Vec::new(),
        }
    }

    fn note(&mut self, place: u32, stamp: u32) -> &mut Note {
        let note = &mut self.notes[place as usize];
        if note.stamp != stamp {
            *note = Note {
                stamp,
                live_in: false,
                live_out: false,
                touched: false,
                joins: false,
                value_in: NONE,
                value_out: NONE,
            };
        }
        note
    }

    fn explore(&mut self, vreg: VReg, events: &[Event], origins: &mut Vec<Origin>) -> Vec<Segment> {
        let stamp = vreg.index() as u32;
        self.shares.clear();
        self.worklist.clear();
        self.written.clear();
        let mut values = 0;
        for (index, event) in events.iter().enumerate() {
            let place = self.points.place[event.inst as usize];
            match self.shares.last_mut() {
                Some(share) if share.place == place => share.to = index as u32 + 1,
                _ => {
                    self.shares.push(Share { place, from: index as u32, to: index as u32 + 1 });
                    self.note(place, stamp).touched = true;
                    if event.reads {
                        self.note(place, stamp).live_in = true;
                        self.worklist.push(place);
                    }
                }
            }
            if event.writes {
                self.written.push(origins.len() as ValueId);
                origins.push(Origin::Inst(event.inst));
                values += 1;
            } else {
                self.written.push(NONE);
            }
        }
        if !self.worklist.is_empty() {
            self.spread(stamp);
            let live_at_entry = self.note(0, stamp).live_in;
            if values == 1 && !live_at_entry {
                let only = *self.written.iter().find(|value| **value != NONE).expect("a write has a value");
                self.shares.iter().for_each(|share| self.notes[share.place as usize].value_in = only);
            } else {
                self.number_values(stamp, origins);
            }
            self.shares.sort_unstable_by_key(|share| share.place);
        }
        self.segments(vreg, events)
    }

    /// Finds the blocks over which the register is live, from those that read it before they write it.
    fn spread(&mut self, stamp: u32) {
        let points = self.points;
        while let Some(place) = self.worklist.pop() {
            for pred in &points.preds[place as usize] {
                let note = self.note(*pred, stamp);
                note.live_out = true;
                if !note.touched && !note.live_in {
                    note.live_in = true;
                    self.worklist.push(*pred);
                    self.shares.push(Share { place: *pred, from: 0, to: 0 });
                }
            }
        }
    }

    /// Finds the value with which each block begins. A round assumes that values meet only at the joins known so far,
    /// and finds those where they do not agree; the next begins anew with them, so that no join is made in vain by a
    /// value that a later round changes.
    fn number_values(&mut self, stamp: u32, origins: &mut Vec<Origin>) {
        let points = self.points;
        self.shares.sort_unstable_by_key(|share| points.rpo_index[share.place as usize]);
        loop {
            for index in 0..self.shares.len() {
                let share = self.shares[index];
                let note = self.note(share.place, stamp);
                if !note.joins {
                    note.value_in = NONE;
                }
                note.value_out = NONE;
            }
            let mut found = false;
            for index in 0..self.shares.len() {
                let share = self.shares[index];
                if self.note(share.place, stamp).live_in && !self.note(share.place, stamp).joins {
                    let mut value = NONE;
                    let mut joins = points.preds[share.place as usize].is_empty();
                    for pred in &points.preds[share.place as usize] {
                        let incoming = self.note(*pred, stamp).value_out;
                        joins |= incoming != NONE && value != NONE && incoming != value;
                        value = if value == NONE { incoming } else { value };
                    }
                    // Blocks that cannot be reached may have no value from anywhere yet.
                    if joins || value == NONE {
                        value = self.make_join(share.place, stamp, origins);
                    }
                    self.note(share.place, stamp).value_in = value;
                }
                let last = self.written[share.from as usize..share.to as usize].iter().rev().find(|v| **v != NONE);
                let last = last.copied();
                let note = self.note(share.place, stamp);
                note.value_out = last.unwrap_or(note.value_in);
            }
            for index in 0..self.shares.len() {
                let place = self.shares[index].place;
                let note = *self.note(place, stamp);
                if note.live_in && !note.joins {
                    let differs = points.preds[place as usize]
                        .iter()
                        .any(|pred| self.note(*pred, stamp).value_out != note.value_in);
                    if differs {
                        self.make_join(place, stamp, origins);
                        found = true;
                    }
                }
            }
            if !found {
                return;
            }
        }
    }

    fn make_join(&mut self, place: u32, stamp: u32, origins: &mut Vec<Origin>) -> ValueId {
        let value = origins.len() as ValueId;
        origins.push(if place == 0 { Origin::Entry } else { Origin::Join(place) });
        let note = self.note(place, stamp);
        note.joins = true;
        note.value_in = value;
        value
    }

    fn segments(&self, vreg: VReg, events: &[Event]) -> Vec<Segment> {
        let stamp = vreg.index() as u32;
        let mut segments: Vec<Segment> = Vec::new();
        let mut push = |from: Point, to: Point, value: ValueId| match segments.last_mut() {
            Some(last) if last.to == from && last.value == value => last.to = to,
            _ => segments.push(Segment { from, to, value, owner: vreg }),
        };
        for share in &self.shares {
            let note = self.notes[share.place as usize];
            let note_counts = note.stamp == stamp;
            let mut open = (note_counts && note.live_in).then(|| (self.points.start(share.place), note.value_in));
            let mut end = self.points.start(share.place);
            let shared = share.from as usize..share.to as usize;
            for (event, written) in events[shared.clone()].iter().zip(&self.written[shared]) {
                if event.reads {
                    end = 2 * event.inst + 1;
                }
                if event.writes {
                    if let Some((from, value)) = open
                        && from < end
                    {
                        push(from, end, value);
                    }
                    open = Some((2 * event.inst + 1, *written));
                    end = 2 * event.inst + 2;
                }
            }
            if note_counts && note.live_out {
                end = self.points.end(share.place);
            }
            if let Some((from, value)) = open
                && from < end
            {
                push(from, end, value);
            }
        }
        segments
    }
}

/// Gives what a copy writes the value of what it reads. In reverse postorder, the value that a copy reads is settled
/// before it: its assignment dominates the copy, and joins have values of their own.
fn share_values_of_copies(ranges: &mut LiveRanges, points: &Points) {
    let mut root: Vec<ValueId> = (0..ranges.origins.len() as ValueId).collect();
    let mut order: Vec<u32> = (0..ranges.copies.len() as u32).collect();
    order.sort_by_key(|index| points.rpo_index[points.place[ranges.copies[*index as usize].inst as usize] as usize]);
    for index in order {
        let copy = ranges.copies[index as usize];
        let written =
            covering(&ranges.segments[copy.dst.index()], 2 * copy.inst + 1).expect("a write is live behind it");
        let read = covering(&ranges.segments[copy.src.index()], 2 * copy.inst).expect("a read is live before it");
        root[written.value as usize] = root[read.value as usize];
    }
    for segments in &mut ranges.segments {
        segments.iter_mut().for_each(|segment| segment.value = root[segment.value as usize]);
        segments.dedup_by(|next, last| {
            let joins = last.to == next.from && last.value == next.value;
            if joins {
                last.to = next.to;
            }
            joins
        });
    }
}
