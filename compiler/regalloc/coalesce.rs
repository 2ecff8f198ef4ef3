//! Coalesces copies: puts the two registers of a copy into one class, which shares one location, where that is right.
//!
//! Copies are tried in order of how often they run. Two classes are joined unless they are live at once with different
//! values (`ranges`); a copy between members of one class then moves nothing and is dropped. Pinned registers are never
//! joined, for that would stretch what an instruction demands over everything that touches it; they leave a hint.
//! Aggressive coalescing in the sense of Gregory Chaitin (Register Allocation & Spilling via Graph Coloring, 1982), on
//! ranges instead of a graph; splitting takes back what turns out to be too much.
//!
//! ```text
//! c = 0; a = copy c; b = copy c; loop { a = a + 1 }; use b      classes {c, a} and {b}: a changes while b lives
//! ```
//!
//! **in**: live ranges with values. **out**: classes with disjoint sets of members; within a class no two different
//! values are live at once. Cost: near-linear; of two classes, the one with fewer segments moves.

use super::live_ranges::{LiveRanges, Origin};
use super::points::{Point, Points};
use super::ranges::{Segment, Segments, ValueId};
use crate::x64::{Function, Op, PReg, RegMem, RegMemImm, Slot, StrId, VReg};
use cranelift_entity::EntityRef;
use rustc_hash::FxHashMap;

/// A class of virtual registers, by number.
pub type ClassId = u32;

/// Of registers that are pinned or never mentioned.
pub const NO_CLASS: ClassId = ClassId::MAX;

/// Why a copy stays: two registers that are live at once with different values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Conflict {
    /// The point.
    pub point: Point,
    /// The register of the destination's class that is live there.
    pub dst: VReg,
    /// The register of the source's class that is live there.
    pub src: VReg,
}

/// What coalescing says of a copy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Both sides are in one class.
    Coalesced,
    /// One side is pinned: the other has a hint.
    Hint(PReg),
    /// Both sides are pinned.
    Fixed,
    /// The classes of both sides interfere.
    Interferes(Conflict),
}

/// Where a class would like to be at some point.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Target {
    /// In a register.
    Reg(PReg),
    /// Where another class is.
    Class(ClassId),
}

/// A wish of a class.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Hint {
    /// The point of the copy.
    pub point: Point,
    /// Where to.
    pub target: Target,
    /// How often a move would be saved.
    pub weight: f64,
}

/// A value that is cheaper made again than kept in memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Constant {
    /// A number.
    Imm(i64),
    /// The address of a literal.
    Str(StrId),
}

/// Registers that share one location.
#[derive(Clone, Debug)]
pub struct Class {
    /// The members, in order.
    pub members: Vec<VReg>,
    /// Where any of them is live, and with which value.
    pub segments: Vec<Segment>,
    /// What it would like, in order of the points.
    pub hints: Vec<Hint>,
    /// The constant that it holds everywhere, if so.
    pub constant: Option<Constant>,
    /// The slot of the caller's that holds its one value from the start, if so.
    pub incoming: Option<u32>,
}

/// The result.
#[derive(Clone, Debug)]
pub struct Classes {
    /// The class of each virtual register.
    pub of: Vec<ClassId>,
    /// All classes.
    pub list: Vec<Class>,
    /// What became of each copy, in the order of `LiveRanges::copies`.
    pub verdicts: Vec<Verdict>,
}

/// Coalesces.
pub fn run(function: &Function<VReg>, points: &Points, live: &LiveRanges) -> Classes {
    let count = function.vregs.len();
    let mut leader: Vec<u32> = (0..count as u32).collect();
    let mut segments: Vec<Option<Segments>> =
        live.segments.iter().map(|segments| Some(Segments::Flat(segments.clone()))).collect();
    let mut order: Vec<u32> = (0..live.copies.len() as u32).collect();
    // The sort is stable: of equally frequent copies the first in the layout comes first.
    order.sort_by(|a, b| {
        let freq = |index: &u32| points.freq_of(live.copies[*index as usize].inst);
        freq(b).total_cmp(&freq(a))
    });
    let mut verdicts = vec![Verdict::Fixed; live.copies.len()];
    let mut known: FxHashMap<(u32, u32), (Point, VReg, VReg)> = FxHashMap::default();
    for index in order {
        let copy = live.copies[index as usize];
        let pins = (function.vregs[copy.dst].pinned, function.vregs[copy.src].pinned);
        verdicts[index as usize] = match pins {
            (Some(_), Some(_)) => Verdict::Fixed,
            (Some(reg), None) | (None, Some(reg)) => Verdict::Hint(reg),
            (None, None) => {
                let (dst, src) = (find(&mut leader, copy.dst), find(&mut leader, copy.src));
                if dst == src {
                    Verdict::Coalesced
                } else if let Some((point, dst, src)) = known.get(&(dst, src)) {
                    Verdict::Interferes(Conflict { point: *point, dst: *dst, src: *src })
                } else {
                    let a = segments[dst as usize].take().expect("a leader has segments");
                    let b = segments[src as usize].take().expect("a leader has segments");
                    if let Some((point, in_dst, in_src)) = a.conflict(&b) {
                        known.insert((dst, src), (point, in_dst.owner, in_src.owner));
                        known.insert((src, dst), (point, in_src.owner, in_dst.owner));
                        segments[dst as usize] = Some(a);
                        segments[src as usize] = Some(b);
                        Verdict::Interferes(Conflict { point, dst: in_dst.owner, src: in_src.owner })
                    } else {
                        let mut joined = a;
                        joined.absorb(b);
                        // The smaller number leads, so that paths in `leader` only go down.
                        let (low, high) = (dst.min(src), dst.max(src));
                        leader[high as usize] = low;
                        segments[low as usize] = Some(joined);
                        Verdict::Coalesced
                    }
                }
            }
        };
    }
    let mut classes = gather(function, live, &mut leader, segments);
    classes.verdicts = verdicts;
    add_hints(function, points, live, &mut classes);
    find_constants(function, points, live, &mut classes);
    classes
}

fn find(leader: &mut [u32], vreg: VReg) -> u32 {
    let mut at = vreg.index() as u32;
    while leader[at as usize] != at {
        // Halving the path keeps later walks short.
        leader[at as usize] = leader[leader[at as usize] as usize];
        at = leader[at as usize];
    }
    at
}

fn gather(
    function: &Function<VReg>,
    live: &LiveRanges,
    leader: &mut [u32],
    mut segments: Vec<Option<Segments>>,
) -> Classes {
    let mut of = vec![NO_CLASS; function.vregs.len()];
    let mut list: Vec<Class> = Vec::new();
    for (vreg, data) in &function.vregs {
        if data.pinned.is_some() || live.segments[vreg.index()].is_empty() {
            continue;
        }
        let first = find(leader, vreg) as usize;
        if of[first] == NO_CLASS {
            of[first] = list.len() as ClassId;
            let segments = segments[first].take().expect("a leader has segments").into_vec();
            list.push(Class { members: Vec::new(), segments, hints: Vec::new(), constant: None, incoming: None });
        }
        of[vreg.index()] = of[first];
        list[of[first] as usize].members.push(vreg);
    }
    Classes { of, list, verdicts: Vec::new() }
}

fn add_hints(function: &Function<VReg>, points: &Points, live: &LiveRanges, classes: &mut Classes) {
    for (copy, verdict) in live.copies.iter().zip(&classes.verdicts) {
        let weight = points.freq_of(copy.inst);
        let (dst, src) = (classes.of[copy.dst.index()], classes.of[copy.src.index()]);
        match verdict {
            Verdict::Coalesced | Verdict::Fixed => {}
            Verdict::Hint(reg) => {
                let (class, point) = if function.vregs[copy.dst].pinned.is_some() {
                    (src, 2 * copy.inst)
                } else {
                    (dst, 2 * copy.inst + 1)
                };
                classes.list[class as usize].hints.push(Hint { point, target: Target::Reg(*reg), weight });
            }
            Verdict::Interferes(_) => {
                let (to_src, to_dst) = (Target::Class(src), Target::Class(dst));
                classes.list[dst as usize].hints.push(Hint { point: 2 * copy.inst + 1, target: to_src, weight });
                classes.list[src as usize].hints.push(Hint { point: 2 * copy.inst, target: to_dst, weight });
            }
        }
    }
}

/// Finds the classes that hold one constant, or one stack argument, wherever they are live.
fn find_constants(function: &Function<VReg>, points: &Points, live: &LiveRanges, classes: &mut Classes) {
    for class in &mut classes.list {
        let value = class.segments[0].value;
        if class.segments.iter().any(|segment| segment.value != value) {
            continue;
        }
        (class.constant, class.incoming) = source_of(function, points, live, value, &class.members);
    }
}

fn source_of(
    function: &Function<VReg>,
    points: &Points,
    live: &LiveRanges,
    value: ValueId,
    members: &[VReg],
) -> (Option<Constant>, Option<u32>) {
    let Origin::Inst(inst) = live.origins[value as usize] else { return (None, None) };
    let place = points.place[inst as usize];
    let data = &function.blocks[points.layout[place as usize]];
    let Some(data) = data.insts.get((inst - points.first[place as usize]) as usize) else { return (None, None) };
    match &data.op {
        Op::Imm { value, .. } => (Some(Constant::Imm(*value)), None),
        Op::StrAddress { string, .. } => (Some(Constant::Str(*string)), None),
        Op::Mov { src: RegMem::Slot(Slot::Incoming(number)), .. } => (None, Some(*number)),
        Op::Parallel { moves } => {
            // The pair that writes a member; a copy that shares the value is made from that member or from another class.
            let pair = moves.iter().find(|(dst, _)| dst.reg().is_some_and(|reg| members.contains(&reg)));
            match pair {
                Some((_, RegMemImm::Imm(value))) => (Some(Constant::Imm(*value)), None),
                Some((_, RegMemImm::Slot(Slot::Incoming(number)))) => (None, Some(*number)),
                Some(_) | None => (None, None),
            }
        }
        _ => (None, None),
    }
}
