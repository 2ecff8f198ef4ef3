//! Connects the pieces of each class: where each value is at each point, its slot, and the moves between pieces.
//!
//! Within a block, a class moves at the gap where its piece changes; between blocks, on the edge where both ends differ.
//! Stores are chosen value by value: a value that is born in a register and later needed in memory is stored either right
//! behind each of its births, or on each way from register to memory, whichever runs less often. What was loaded and not
//! changed, or was born in memory, is never stored again; and either way the slot is written on every way to a reload.
//! Slots are shared by classes that are not live at once, found by a scan over the ends of their live ranges (Massimiliano
//! Poletto, Vivek Sarkar: Linear Scan Register Allocation, 1999).
//!
//! **in**: all pieces placed. **out**: for each class its location at each point; moves at gaps and on edges, each set of
//! them to be done at once. Cost: linear in pieces and, for classes that were split, in the blocks where they are live.

use super::assign::{Allocator, Piece, State};
use super::coalesce::{ClassId, Constant};
use super::live_ranges::{LiveRanges, Origin};
use super::points::{Point, Points};
use crate::x64::{PReg, Slot};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Where a value is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Location {
    /// In a register.
    Reg(PReg),
    /// In memory.
    Slot(Slot),
    /// Nowhere: it is made where it is needed.
    Constant(Constant),
}

/// A move that connects two pieces of a class.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Move {
    /// Whose value moves.
    pub class: ClassId,
    /// From where.
    pub from: Location,
    /// To where.
    pub to: Location,
}

/// The register of a tiny piece.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tiny {
    /// The register.
    pub reg: PReg,
    /// Does its instruction write it?
    pub writes: bool,
}

/// Tiny pieces by class and instruction. Only looked up, never iterated.
pub type TinyPieces = FxHashMap<(ClassId, u32), Tiny>;

/// The result.
#[derive(Clone, Debug, Default)]
pub struct Resolution {
    /// The locations of each class, by their stretches in order.
    pub places: Vec<Vec<(Point, Point, Location)>>,
    /// The tiny pieces, by class and instruction.
    pub tiny: TinyPieces,
    /// Moves at gaps, by gap.
    pub gaps: Vec<(Point, Move)>,
    /// Moves on edges, by places.
    pub edges: Vec<((u32, u32), Move)>,
    /// Number of spill slots.
    pub slots: u32,
}

impl Resolution {
    /// Where a class is at a point, tiny pieces aside.
    pub fn at(&self, class: ClassId, point: Point) -> Location {
        let places = &self.places[class as usize];
        let index = places.partition_point(|(_, to, _)| *to <= point);
        let (from, _, location) = places[index];
        assert!(from <= point, "class {class} is not live at point {point}");
        location
    }

    /// Where an instruction finds a class that it reads.
    pub fn read(&self, class: ClassId, inst: u32) -> Location {
        self.tiny.get(&(class, inst)).map_or_else(|| self.at(class, 2 * inst), |tiny| Location::Reg(tiny.reg))
    }

    /// Where an instruction leaves a class that it writes.
    pub fn written(&self, class: ClassId, inst: u32) -> Location {
        self.tiny.get(&(class, inst)).map_or_else(|| self.at(class, 2 * inst + 1), |tiny| Location::Reg(tiny.reg))
    }
}

/// Resolves.
pub fn run(allocator: &Allocator, live: &LiveRanges) -> Resolution {
    let classes = allocator.classes.list.len();
    let mut result = Resolution { places: vec![Vec::new(); classes], ..Resolution::default() };
    let homes = assign_slots(allocator, &mut result);
    let mut pieces_of: Vec<Vec<u32>> = vec![Vec::new(); classes];
    for (index, piece) in allocator.pieces.iter().enumerate() {
        let location = match piece.state {
            State::Replaced => continue,
            State::Queued => panic!("a piece of class {} was never placed", piece.class),
            State::Reg(reg) if piece.tiny => {
                let one = piece.uses[0];
                let former = result.tiny.insert((piece.class, one.inst), Tiny { reg, writes: one.writes });
                assert!(former.is_none(), "class {} has two tiny pieces at one instruction", piece.class);
                pieces_of[piece.class as usize].push(index as u32);
                continue;
            }
            State::Reg(reg) => Location::Reg(reg),
            State::Memory => homes[piece.class as usize].expect("a class with a piece in memory has a home"),
        };
        pieces_of[piece.class as usize].push(index as u32);
        result.places[piece.class as usize].extend(piece.segments.iter().map(|(from, to)| (*from, *to, location)));
    }
    for places in &mut result.places {
        places.sort_unstable_by_key(|(from, _, _)| *from);
        places.dedup_by(|next, last| {
            let joins = last.1 == next.0 && last.2 == next.2;
            if joins {
                last.1 = next.1;
            }
            joins
        });
    }
    for class in 0..classes {
        // A class that is in one register everywhere needs nothing.
        if let Some(home) = homes[class] {
            connect(allocator, live, class as ClassId, Some(home), &pieces_of[class], &mut result);
        } else if result.places[class].windows(2).any(|pair| pair[0].2 != pair[1].2) {
            connect(allocator, live, class as ClassId, None, &pieces_of[class], &mut result);
        }
    }
    result.gaps.sort_by_key(|(point, _)| *point);
    result.edges.sort_by_key(|(edge, _)| *edge);
    result
}

/// Gives each class with a piece in memory a home: a constant, a slot of the caller's, or a slot of its own.
fn assign_slots(allocator: &Allocator, result: &mut Resolution) -> Vec<Option<Location>> {
    let mut homes: Vec<Option<Location>> = vec![None; allocator.classes.list.len()];
    let mut waiting: Vec<(Point, Point, ClassId)> = Vec::new();
    for piece in allocator.pieces.iter().filter(|piece| piece.state == State::Memory) {
        if homes[piece.class as usize].is_some() {
            continue;
        }
        let class = &allocator.classes.list[piece.class as usize];
        homes[piece.class as usize] = Some(match (class.constant, class.incoming) {
            (Some(constant), _) if allocator.is_constant(piece.class) => Location::Constant(constant),
            (_, Some(number)) => Location::Slot(Slot::Incoming(number)),
            _ => {
                let segments = &class.segments;
                waiting.push((segments[0].from, segments[segments.len() - 1].to, piece.class));
                Location::Slot(Slot::Spill(u32::MAX))
            }
        });
    }
    waiting.sort_unstable();
    let mut free: BinaryHeap<Reverse<u32>> = BinaryHeap::new();
    let mut active: BinaryHeap<Reverse<(Point, u32)>> = BinaryHeap::new();
    for (from, to, class) in waiting {
        while let Some(Reverse((end, slot))) = active.peek().copied() {
            // A value that ends with a read at an instruction may give its slot to one that this instruction writes only
            // where the two are not one operand; so slots are kept to the end of the instruction.
            if end.next_multiple_of(2) > from {
                break;
            }
            active.pop();
            free.push(Reverse(slot));
        }
        let slot = free.pop().map_or_else(
            || {
                result.slots += 1;
                result.slots - 1
            },
            |Reverse(slot)| slot,
        );
        active.push(Reverse((to, slot)));
        homes[class as usize] = Some(Location::Slot(Slot::Spill(slot)));
    }
    homes
}

/// A way from register to memory.
struct Departure {
    value: u32,
    freq: f64,
    to: Place,
    reg: PReg,
}

/// Where a move may stand.
#[derive(Clone, Copy)]
enum Place {
    Gap(Point),
    Edge(u32, u32),
}

/// A point where a value comes into a register.
struct Birth {
    value: u32,
    freq: f64,
    gap: Point,
    reg: PReg,
}

fn connect(
    allocator: &Allocator,
    live: &LiveRanges,
    class: ClassId,
    home: Option<Location>,
    pieces: &[u32],
    result: &mut Resolution,
) {
    let points = allocator.points;
    let mut departures: Vec<Departure> = Vec::new();
    let mut moves: Vec<(Place, Move)> = Vec::new();
    let places = std::mem::take(&mut result.places[class as usize]);
    let value_at = |point: Point| allocator.value_at(class, point).expect("the class is live there");
    let find = |point: Point| {
        let index = places.partition_point(|(_, to, _)| *to <= point);
        places[index].2
    };
    let mut pass = |from: Location, to: Location, at: Place, value: u32, freq: f64| match (from, to) {
        (Location::Reg(reg), Location::Slot(_)) => departures.push(Departure { value, freq, to: at, reg }),
        (_, Location::Reg(_)) if from != to => moves.push((at, Move { class, from, to })),
        (_, Location::Reg(_)) | (_, Location::Constant(_)) | (Location::Slot(_) | Location::Constant(_), _) => {}
    };

    for pair in places.windows(2) {
        let point = pair[0].1;
        if point == pair[1].0 && point.is_multiple_of(2) && !points.is_start(point) && pair[0].2 != pair[1].2 {
            let from = before_gap(&result.tiny, class, point, pair[0].2);
            pass(from, pair[1].2, Place::Gap(point), value_at(point - 1), points.freq_of(point / 2));
        }
    }
    for_each_entered(&places, points, |place| {
        let to = find(points.start(place));
        for pred in &points.preds[place as usize] {
            let last = points.end(*pred) - 1;
            pass(find(last), to, Place::Edge(*pred, place), value_at(last), points.edge_freq(*pred, place));
        }
    });

    let mut births: Vec<Birth> = Vec::new();
    for piece in pieces {
        let piece: &Piece = &allocator.pieces[*piece as usize];
        if piece.tiny {
            let home = home.expect("a class with a tiny piece has a home");
            connect_tiny(allocator, piece, home, &find, &result.tiny, &mut moves);
            continue;
        }
        let State::Reg(reg) = piece.state else { continue };
        for one in piece.uses.iter().filter(|one| one.writes) {
            let (value, freq) = (value_at(2 * one.inst + 1), points.freq_of(one.inst));
            births.push(Birth { value, freq, gap: 2 * one.inst + 2, reg });
        }
    }
    for segment in &allocator.classes.list[class as usize].segments {
        let place = match live.origins[segment.value as usize] {
            Origin::Inst(_) => continue,
            Origin::Join(place) => place,
            Origin::Entry => 0,
        };
        let start = points.start(place);
        if segment.from <= start
            && start < segment.to
            && let Location::Reg(reg) = find(start)
        {
            births.push(Birth { value: segment.value, freq: points.freq[place as usize], gap: start, reg });
        }
    }
    result.places[class as usize] = places;

    if let Some(home @ Location::Slot(_)) = home
        && !allocator.has_home(class)
    {
        store(class, home, &births, &departures, &mut moves);
    }
    for (place, one) in moves {
        match place {
            Place::Gap(point) => result.gaps.push((point, one)),
            Place::Edge(from, to) => result.edges.push(((from, to), one)),
        }
    }
}

/// Where a class is just before a gap within a block: a tiny piece of the instruction before it may have written it.
fn before_gap(tiny: &TinyPieces, class: ClassId, gap: Point, otherwise: Location) -> Location {
    match tiny.get(&(class, gap / 2 - 1)) {
        Some(piece) if piece.writes => Location::Reg(piece.reg),
        // A tiny piece that only read holds the value too, but perhaps no longer.
        Some(_) | None => otherwise,
    }
}

/// Loads what the instruction of a tiny piece reads, and stores what it writes.
fn connect_tiny(
    allocator: &Allocator,
    piece: &Piece,
    home: Location,
    find: &impl Fn(Point) -> Location,
    tiny: &TinyPieces,
    moves: &mut Vec<(Place, Move)>,
) {
    let class = piece.class;
    let State::Reg(reg) = piece.state else { panic!("a tiny piece has a register") };
    let one = piece.uses[0];
    if one.reads {
        let gap = 2 * one.inst;
        let from = match home {
            Location::Constant(_) => home,
            Location::Reg(_) | Location::Slot(_) if allocator.points.is_start(gap) => home,
            // The register that held the class until this gap still does.
            Location::Reg(_) | Location::Slot(_) => before_gap(tiny, class, gap, find(gap - 1)),
        };
        if from != Location::Reg(reg) {
            moves.push((Place::Gap(gap), Move { class, from, to: Location::Reg(reg) }));
        }
    }
    let gap = 2 * one.inst + 2;
    if one.writes && !allocator.has_home(class) && allocator.value_at(class, gap).is_some() {
        moves.push((Place::Gap(gap), Move { class, from: Location::Reg(reg), to: home }));
    }
}

/// Calls `visit` with each place at whose start the class is live.
fn for_each_entered(places: &[(Point, Point, Location)], points: &Points, mut visit: impl FnMut(u32)) {
    for (from, to, _) in places {
        let mut place = points.place_of(*from);
        if points.start(place) < *from {
            place += 1;
        }
        while place < points.blocks() as u32 && points.start(place) < *to {
            visit(place);
            place += 1;
        }
    }
}

/// Chooses for each value between stores at its births and stores on its ways to memory.
fn store(class: ClassId, home: Location, births: &[Birth], departures: &[Departure], moves: &mut Vec<(Place, Move)>) {
    let mut costs: FxHashMap<u32, (f64, f64)> = FxHashMap::default();
    for departure in departures {
        costs.entry(departure.value).or_default().1 += departure.freq;
    }
    for birth in births {
        if let Some(cost) = costs.get_mut(&birth.value) {
            cost.0 += birth.freq;
        }
    }
    for birth in births {
        if costs.get(&birth.value).is_some_and(|(at_births, on_ways)| at_births <= on_ways) {
            moves.push((Place::Gap(birth.gap), Move { class, from: Location::Reg(birth.reg), to: home }));
        }
    }
    for departure in departures {
        let (at_births, on_ways) = costs[&departure.value];
        if at_births > on_ways {
            moves.push((departure.to, Move { class, from: Location::Reg(departure.reg), to: home }));
        }
    }
}
