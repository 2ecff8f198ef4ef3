//! What allocation found and decided, as data: live ranges, classes, places, and what became of every copy and why.
//!
//! The views of the allocator (`print_live_ranges`, `print_allocation`) and the ledger of copies are made from it. Points
//! are given as block and instruction, as listings of the input show them.
//!
//! **in**: the results of all steps. **out**: facts that stand by themselves. Cost: linear; what keeps a register alive
//! is found by binary search in its reads.

use super::assign::{Allocator, State};
use super::coalesce::{ClassId, Conflict, Constant, NO_CLASS, Target, Verdict};
use super::live_ranges::{LiveRanges, Origin};
use super::points::{Point, Points};
use super::ranges::ValueId;
use super::resolve::{Location, Resolution};
use super::rewrite::{Emitted, Fate, Rewritten};
use crate::support::listing::{Entity, Kind, Line, Listing, Section};
use crate::x64::{Block, Function, Op, PReg, Slot, VReg, Value};
use cranelift_entity::EntityRef;

/// A point by what stands there.
#[derive(Clone, Copy, PartialEq, Eq, Debug, PartialOrd, Ord)]
pub struct Site {
    /// The block.
    pub block: Block,
    /// The instruction in it; the terminator counts as one more.
    pub inst: u32,
    /// Behind the instruction's reads?
    pub late: bool,
}

/// A stretch of a live range.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stretch {
    /// Its first point.
    pub from: Point,
    /// The point behind its last.
    pub to: Point,
    /// The value that it holds.
    pub value: ValueId,
}

/// A virtual register.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VRegFacts {
    /// The IR value that it holds, if any.
    pub value: Option<Value>,
    /// The register that it must be in, if any.
    pub pinned: Option<PReg>,
    /// Its class, unless it is pinned or never mentioned.
    pub class: Option<ClassId>,
    /// Where it is live.
    pub live: Vec<Stretch>,
}

/// A wish of a class.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct HintFacts {
    /// The copy that would be saved.
    pub at: Site,
    /// Where to.
    pub target: Target,
    /// How often it runs.
    pub weight: f64,
}

/// A class of coalesced virtual registers.
#[derive(Clone, PartialEq, Debug)]
pub struct ClassFacts {
    /// Its members.
    pub members: Vec<VReg>,
    /// What its uses would cost in memory, all together, by its length.
    pub weight: f64,
    /// What it would like.
    pub hints: Vec<HintFacts>,
    /// Where it is: stretches in order.
    pub places: Vec<(Point, Point, Location)>,
    /// The registers in which single instructions get it while it is in memory.
    pub tiny: Vec<(u32, PReg)>,
}

/// Why a copy could not be coalesced: two registers hold different values at one point, and are both read later.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Witness {
    /// The point.
    pub at: Site,
    /// A register of the destination's class, live there.
    pub dst: VReg,
    /// What keeps it alive; none if it only is written there.
    pub dst_use: Option<Site>,
    /// A register of the source's class, live there.
    pub src: VReg,
    /// What keeps it alive.
    pub src_use: Option<Site>,
}

/// What coalescing said of a copy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CopyVerdict {
    /// Both sides are in this class.
    Coalesced(ClassId),
    /// One side is pinned to this register, which the other wishes for.
    Hint(PReg),
    /// Both sides are pinned.
    Fixed,
    /// Both sides interfere.
    Interferes(Witness),
}

/// A copy of the input.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CopyFacts {
    /// Where it stands.
    pub at: Site,
    /// Which pair of a parallel move; none for a `mov`.
    pub pair: Option<u32>,
    /// What it writes.
    pub dst: VReg,
    /// What it reads.
    pub src: VReg,
    /// How many loops it is in.
    pub loop_depth: u32,
    /// What coalescing said.
    pub verdict: CopyVerdict,
    /// What became of it.
    pub fate: Fate,
}

/// Counts of what happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Summary {
    /// Pieces left in memory.
    pub spills: u32,
    /// Pieces that were split.
    pub splits: u32,
    /// Pieces that lost their register to others.
    pub evictions: u32,
    /// What was inserted.
    pub emitted: Emitted,
    /// Spill slots.
    pub slots: u32,
}

/// Everything known of one function's allocation.
#[derive(Clone, PartialEq, Debug)]
pub struct Facts {
    /// The function.
    pub function: String,
    /// The blocks in order, each with the number of its first instruction and how often it is assumed to run.
    pub blocks: Vec<(Block, u32, f64)>,
    /// The virtual registers, by number.
    pub vregs: Vec<VRegFacts>,
    /// Where each value comes from.
    pub origins: Vec<Origin>,
    /// The classes, by number.
    pub classes: Vec<ClassFacts>,
    /// The copies, in order.
    pub copies: Vec<CopyFacts>,
    /// Counts.
    pub summary: Summary,
}

/// Gathers the facts.
pub fn gather(
    function: &Function<VReg>,
    points: &Points,
    live: &LiveRanges,
    allocator: &Allocator,
    resolution: &Resolution,
    rewritten: &Rewritten,
) -> Facts {
    let classes = allocator.classes;
    let vregs = function
        .vregs
        .iter()
        .map(|(vreg, data)| VRegFacts {
            value: data.value.expand(),
            pinned: data.pinned,
            class: Some(classes.of[vreg.index()]).filter(|class| *class != NO_CLASS),
            live: live.segments[vreg.index()]
                .iter()
                .map(|segment| Stretch { from: segment.from, to: segment.to, value: segment.value })
                .collect(),
        })
        .collect();
    let site = |point: Point| site(points, point);
    let mut class_facts: Vec<ClassFacts> = classes
        .list
        .iter()
        .enumerate()
        .map(|(index, class)| ClassFacts {
            members: class.members.clone(),
            // The first pieces are the whole classes, in order.
            weight: allocator.pieces[allocator.whole[index] as usize].weight,
            hints: class
                .hints
                .iter()
                .map(|hint| HintFacts { at: site(hint.point), target: hint.target, weight: hint.weight })
                .collect(),
            places: resolution.places[index].clone(),
            tiny: Vec::new(),
        })
        .collect();
    for piece in allocator.pieces.iter().filter(|piece| piece.tiny) {
        if let State::Reg(reg) = piece.state {
            class_facts[piece.class as usize].tiny.push((piece.uses[0].inst, reg));
        }
    }
    class_facts.iter_mut().for_each(|class| class.tiny.sort_unstable());
    let copies = live
        .copies
        .iter()
        .zip(&classes.verdicts)
        .zip(&rewritten.fates)
        .map(|((copy, verdict), fate)| {
            let at = site(2 * copy.inst);
            let is_mov = !matches!(function.blocks[at.block].insts[at.inst as usize].op, Op::Parallel { .. });
            CopyFacts {
                at,
                pair: (!is_mov).then_some(copy.pair),
                dst: copy.dst,
                src: copy.src,
                loop_depth: function.blocks[at.block].loop_depth,
                verdict: match verdict {
                    Verdict::Coalesced => CopyVerdict::Coalesced(classes.of[copy.dst.index()]),
                    Verdict::Hint(reg) => CopyVerdict::Hint(*reg),
                    Verdict::Fixed => CopyVerdict::Fixed,
                    Verdict::Interferes(conflict) => {
                        let point = busiest(live, points, conflict);
                        CopyVerdict::Interferes(Witness {
                            at: site(point),
                            dst: conflict.dst,
                            dst_use: reader(live, conflict.dst, point).map(site),
                            src: conflict.src,
                            src_use: reader(live, conflict.src, point).map(site),
                        })
                    }
                },
                fate: *fate,
            }
        })
        .collect();
    Facts {
        function: function.name.clone(),
        blocks: points
            .layout
            .iter()
            .enumerate()
            .map(|(place, block)| (*block, points.first[place], points.freq[place]))
            .collect(),
        vregs,
        origins: live.origins.clone(),
        classes: class_facts,
        copies,
        summary: Summary {
            spills: allocator.counts.spills,
            splits: allocator.counts.splits,
            evictions: allocator.counts.evictions,
            emitted: rewritten.emitted,
            slots: resolution.slots,
        },
    }
}

fn site(points: &Points, point: Point) -> Site {
    let place = points.place_of(point);
    Site { block: points.layout[place as usize], inst: point / 2 - points.first[place as usize], late: point % 2 == 1 }
}

/// Of the points where both registers of a conflict are live with different values the one that is reached most often, among
/// the first: a conflict within a loop tells more than one in front of it.
fn busiest(live: &LiveRanges, points: &Points, conflict: &Conflict) -> Point {
    let (a, b) = (&live.segments[conflict.dst.index()], &live.segments[conflict.src.index()]);
    let (mut i, mut j) = (0, 0);
    let mut best = (conflict.point, points.freq_of(conflict.point / 2));
    for _ in 0..64 {
        let (Some(x), Some(y)) = (a.get(i), b.get(j)) else { break };
        let from = x.from.max(y.from);
        if from < x.to.min(y.to) && x.value != y.value && points.freq_of(from / 2) > best.1 {
            best = (from, points.freq_of(from / 2));
        }
        if x.to <= y.to { i += 1 } else { j += 1 }
    }
    best.0
}

/// The read that keeps a register alive at a point: the next in order, or, around a loop, the first.
fn reader(live: &LiveRanges, vreg: VReg, point: Point) -> Option<Point> {
    let events = live.events.of(vreg);
    let next = events.partition_point(|event| 2 * event.inst < point);
    let following = events[next..].iter().take(64).find(|event| event.reads);
    following.or_else(|| events.iter().take(64).find(|event| event.reads)).map(|event| 2 * event.inst)
}

impl Facts {
    fn site(&self, point: Point) -> Site {
        let inst = point / 2;
        let place = self.blocks.partition_point(|(_, first, _)| *first <= inst) - 1;
        let (block, first, _) = self.blocks[place];
        Site { block, inst: inst - first, late: point % 2 == 1 }
    }

    /// The live range of every virtual register: a line each, with the value that each stretch holds.
    pub fn print_live_ranges(&self) -> Listing {
        let mut lines = Vec::new();
        for (index, facts) in self.vregs.iter().enumerate().filter(|(_, facts)| !facts.live.is_empty()) {
            let mut line = Line::new();
            put_vreg(&mut line, VReg::new(index));
            if let Some(reg) = facts.pinned {
                line.put(Kind::Plain, " in ");
                put_preg(&mut line, reg);
            }
            line.put(Kind::Plain, ":");
            for stretch in &facts.live {
                line.put(Kind::Plain, " [");
                self.put_stretch(&mut line, stretch.from, stretch.to);
                line.put(Kind::Plain, format!(" #{}", stretch.value));
                line.put(Kind::Plain, "]");
            }
            if let Some(value) = facts.value {
                line.put(Kind::Plain, " ");
                line.refer(Kind::Comment, format!("; {value}"), Entity::Value(value.index() as u32));
            }
            lines.push(line);
        }
        Listing { sections: vec![Section { function: Some(self.function.clone()), lines }] }
    }

    /// The classes, where each lives, what became of each copy, and counts.
    pub fn print_allocation(&self) -> Listing {
        let mut lines = Vec::new();
        for (index, class) in self.classes.iter().enumerate() {
            let mut line = Line::new();
            line.put(Kind::Keyword, "class");
            line.put(Kind::Plain, format!(" {index} {{"));
            for (position, member) in class.members.iter().enumerate() {
                line.put(Kind::Plain, if position == 0 { "" } else { ", " });
                put_vreg(&mut line, *member);
            }
            line.put(Kind::Plain, format!("}} weight {:.3}:", class.weight));
            for (from, to, location) in &class.places {
                line.put(Kind::Plain, " [");
                self.put_stretch(&mut line, *from, *to);
                line.put(Kind::Plain, " ");
                put_location(&mut line, *location);
                line.put(Kind::Plain, "]");
            }
            lines.push(line);
            self.print_details(class, &mut lines);
        }
        for copy in &self.copies {
            lines.push(self.print_copy(copy));
        }
        let Summary { spills, splits, evictions, emitted, slots } = self.summary;
        let Emitted { reloads, stores, moves, constants } = emitted;
        let mut line = Line::new();
        line.put(
            Kind::Comment,
            format!(
                "; {spills} spilled, {splits} split, {evictions} evicted; {slots} slots, {reloads} reloads, {stores} \
                 stores, {moves} moves, {constants} constants made again"
            ),
        );
        lines.push(line);
        Listing { sections: vec![Section { function: Some(self.function.clone()), lines }] }
    }

    fn print_details(&self, class: &ClassFacts, lines: &mut Vec<Line>) {
        for hint in &class.hints {
            let mut line = Line::new();
            line.put(Kind::Plain, "  ").put(Kind::Keyword, "hint").put(Kind::Plain, " ");
            match hint.target {
                Target::Reg(reg) => put_preg(&mut line, reg),
                Target::Class(class) => {
                    line.put(Kind::Plain, format!("class {class}"));
                }
            }
            line.put(Kind::Plain, format!(" weight {} at ", hint.weight));
            put_site(&mut line, hint.at);
            lines.push(line);
        }
        for (inst, reg) in &class.tiny {
            let mut line = Line::new();
            line.put(Kind::Plain, "  ").put(Kind::Keyword, "for").put(Kind::Plain, " ");
            put_site(&mut line, self.site(2 * inst));
            line.put(Kind::Plain, " in ");
            put_preg(&mut line, *reg);
            lines.push(line);
        }
    }

    fn print_copy(&self, copy: &CopyFacts) -> Line {
        let mut line = Line::new();
        line.put(Kind::Keyword, "copy").put(Kind::Plain, " ");
        put_vreg(&mut line, copy.dst);
        line.put(Kind::Plain, " = ");
        put_vreg(&mut line, copy.src);
        line.put(Kind::Plain, " at ");
        put_site(&mut line, copy.at);
        line.put(Kind::Plain, ": ");
        match copy.verdict {
            CopyVerdict::Coalesced(class) => {
                line.put(Kind::Plain, format!("coalesced in class {class}"));
            }
            CopyVerdict::Hint(reg) => {
                line.put(Kind::Plain, "wishes for ");
                put_preg(&mut line, reg);
            }
            CopyVerdict::Fixed => {
                line.put(Kind::Plain, "between fixed registers");
            }
            CopyVerdict::Interferes(witness) => {
                put_vreg(&mut line, witness.dst);
                line.put(Kind::Plain, " and ");
                put_vreg(&mut line, witness.src);
                line.put(Kind::Plain, " are both live at ");
                put_site(&mut line, witness.at);
                for (vreg, read) in [(witness.dst, witness.dst_use), (witness.src, witness.src_use)] {
                    let Some(read) = read else { continue };
                    line.put(Kind::Plain, ", ");
                    put_vreg(&mut line, vreg);
                    line.put(Kind::Plain, " for ");
                    put_site(&mut line, read);
                }
            }
        }
        match copy.fate {
            Fate::Coalesced => {}
            Fate::SamePlace => {
                line.put(Kind::Plain, "; both in one place, dropped");
            }
            Fate::NotNeeded => {
                line.put(Kind::Plain, "; not needed");
            }
            Fate::Moved { from, to } => {
                line.put(Kind::Plain, "; moves ");
                put_location(&mut line, from);
                line.put(Kind::Plain, " to ");
                put_location(&mut line, to);
            }
        }
        line
    }

    fn put_stretch(&self, line: &mut Line, from: Point, to: Point) {
        put_site(line, self.site(from));
        line.put(Kind::Plain, "..");
        put_site(line, self.site(to - 1));
    }
}

fn put_vreg(line: &mut Line, vreg: VReg) {
    line.refer(Kind::Value, vreg.to_string(), Entity::VReg(vreg.index() as u32));
}

fn put_preg(line: &mut Line, reg: PReg) {
    line.refer(Kind::Value, reg.name(), Entity::PReg(u32::from(reg.number())));
}

fn put_site(line: &mut Line, site: Site) {
    line.refer(Kind::Block, site.block.to_string(), Entity::Block(site.block.index() as u32));
    line.put(Kind::Plain, format!(":{}{}", site.inst, if site.late { "+" } else { "" }));
}

fn put_location(line: &mut Line, location: Location) {
    match location {
        Location::Reg(reg) => put_preg(line, reg),
        Location::Slot(Slot::Spill(number)) => {
            line.refer(Kind::Value, format!("[spill {number}]"), Entity::Slot(number));
        }
        Location::Slot(Slot::Incoming(number)) => {
            line.put(Kind::Value, format!("[incoming {number}]"));
        }
        Location::Slot(Slot::Outgoing(number)) => {
            line.put(Kind::Value, format!("[outgoing {number}]"));
        }
        Location::Constant(Constant::Imm(value)) => {
            line.put(Kind::Literal, value.to_string());
        }
        Location::Constant(Constant::Str(string)) => {
            line.put(Kind::Literal, string.to_string());
        }
    }
}
