//! Bytes with holes for jumps: what an encoder appends to, and how the holes are filled.
//!
//! Jumps have no bytes until everything is there. Each starts short (8-bit displacement) and grows to the long form (32
//! bits) when its target is out of reach; growing moves others apart, so this repeats until nothing grows. A jump never
//! shrinks, so it ends. Programs could be made in which each round grows a single jump: after a few rounds, every jump
//! that would be out of reach if all others were long becomes long, and nothing can grow any more.
//!
//! Source: T. Szymanski, "Assembling Code for Machines with Span-Dependent Instructions" (1978): starting short and
//! growing gives the least code. **in** every label that is jumped to is bound · **out** bytes. Cost: linear.

use super::instruction;
use crate::emit::code::{Reloc, RelocKind, Target};
use crate::support::internal::Internal;
use crate::support::span::Span;
use crate::x64::Cond;
use cranelift_entity::{PrimaryMap, SecondaryMap, entity_impl};

/// A place in the code that jumps go to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Label(u32);
entity_impl!(Label, "label");

/// A place in the code, before the holes have their sizes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    /// How many bytes are before it, holes not counted.
    bytes: u32,
    /// How many holes.
    holes: u32,
}

#[derive(Clone, Copy, Debug)]
enum HoleKind {
    Jump {
        cond: Option<Cond>,
        target: Label,
        long: bool,
    },
    /// Filled so that what follows starts at a multiple of `to`, unless that takes more than `most` bytes.
    Align {
        to: u32,
        most: u32,
    },
}

#[derive(Clone, Copy, Debug)]
struct Hole {
    at: u32,
    kind: HoleKind,
}

/// The bytes so far.
#[derive(Default)]
pub struct Buffer {
    /// All but the jumps. `instruction` appends to them.
    pub(super) bytes: Vec<u8>,
    holes: Vec<Hole>,
    labels: PrimaryMap<Label, Option<Place>>,
    relocs: Vec<(Place, RelocKind, Target)>,
    marks: Vec<(Place, Span)>,
}

/// The finished code.
pub struct Finished {
    pub bytes: Vec<u8>,
    pub relocs: Vec<Reloc>,
    pub marks: Vec<(u32, Span)>,
    /// Where each label is; `None` for those that were never bound.
    pub labels: SecondaryMap<Label, Option<u32>>,
}

/// After this many rounds, jumps that could grow do.
const ROUNDS: u32 = 8;

impl Buffer {
    /// The place that the next byte will have.
    pub fn here(&self) -> Place {
        Place { bytes: self.bytes.len() as u32, holes: self.holes.len() as u32 }
    }

    /// A new label, not yet bound.
    pub fn label(&mut self) -> Label {
        self.labels.push(None)
    }

    /// Binds the label to this place.
    pub fn bind(&mut self, label: Label) {
        self.labels[label] = Some(self.here());
    }

    /// Appends a jump; with a condition a conditional one.
    pub fn jump(&mut self, cond: Option<Cond>, target: Label) {
        let at = self.bytes.len() as u32;
        self.holes.push(Hole { at, kind: HoleKind::Jump { cond, target, long: false } });
    }

    /// Aligns what follows to a multiple of `to`, unless that takes more than `most` bytes.
    pub fn align(&mut self, to: u32, most: u32) {
        self.holes.push(Hole { at: self.bytes.len() as u32, kind: HoleKind::Align { to, most } });
    }

    /// The four bytes that were just appended are for linking to fill in.
    pub fn relocate(&mut self, kind: RelocKind, target: Target) {
        let here = self.here();
        self.relocs.push((Place { bytes: here.bytes - 4, holes: here.holes }, kind, target));
    }

    /// From here on, the code comes from this span.
    pub fn mark(&mut self, span: Span) {
        if self.marks.last().is_none_or(|(_, last)| *last != span) {
            let here = self.here();
            if self.marks.last().is_some_and(|(place, _)| *place == here) {
                self.marks.pop();
            }
            self.marks.push((here, span));
        }
    }

    /// Fills the holes.
    pub fn finish(mut self) -> Result<Finished, Internal> {
        for hole in &self.holes {
            if let HoleKind::Jump { target, .. } = hole.kind
                && self.labels[target].is_none()
            {
                return Err(Internal::new(target, "a jump goes to a label that is nowhere"));
            }
        }
        let mut before = self.sizes();
        let mut rounds = 0;
        while self.grow(&before, rounds == ROUNDS) {
            before = self.sizes();
            rounds += 1;
        }
        let (bytes, starts) = self.fill(&before)?;
        let offset = |place: Place| place.bytes + before[place.holes as usize];
        // A place right behind a hole counts it; the start of the bytes that linking fills in is never inside one.
        let relocs = self
            .relocs
            .iter()
            .map(|(place, kind, target)| Reloc { offset: offset(*place), kind: *kind, target: *target, addend: -4 })
            .collect();
        let marks = self.marks.iter().map(|(place, span)| (offset(*place), *span)).collect();
        let mut labels = SecondaryMap::new();
        for (label, place) in &self.labels {
            labels[label] = place.map(offset);
        }
        debug_assert!(starts.iter().zip(&self.holes).all(|(start, hole)| *start >= hole.at));
        Ok(Finished { bytes, relocs, marks, labels })
    }

    /// For each hole, and for the end, how many bytes all holes before it take.
    fn sizes(&self) -> Vec<u32> {
        let mut before = Vec::with_capacity(self.holes.len() + 1);
        let mut sum = 0;
        for hole in &self.holes {
            before.push(sum);
            sum += match hole.kind {
                HoleKind::Jump { cond, long, .. } => jump_size(cond, long),
                HoleKind::Align { to, most } => {
                    let padding = (hole.at + sum).wrapping_neg() % to;
                    if padding <= most { padding } else { 0 }
                }
            };
        }
        before.push(sum);
        before
    }

    /// Makes long the jumps that must be; did any grow? With `settle`, also those that might have to be later.
    fn grow(&mut self, before: &[u32], settle: bool) -> bool {
        let mut longest = Vec::new();
        if settle {
            let mut sum = 0;
            for hole in &self.holes {
                longest.push(sum);
                sum += match hole.kind {
                    HoleKind::Jump { cond, .. } => jump_size(cond, true),
                    HoleKind::Align { most, .. } => most,
                };
            }
            longest.push(sum);
        }
        let before = if settle { &longest } else { before };
        let mut grew = false;
        for index in 0..self.holes.len() {
            let Hole { at, kind: HoleKind::Jump { cond, target, long: false } } = self.holes[index] else { continue };
            let place = self.labels[target].expect("bound labels were checked");
            let end = i64::from(at + before[index] + jump_size(cond, false));
            let distance = i64::from(place.bytes + before[place.holes as usize]) - end;
            // With all other jumps long, this one counts as short: what is between it and its target is what matters.
            let slack = if settle { i64::from(jump_size(cond, true) - jump_size(cond, false)) } else { 0 };
            if distance + slack > 127 || distance - slack < -128 {
                self.holes[index].kind = HoleKind::Jump { cond, target, long: true };
                grew = true;
            }
        }
        grew
    }

    /// The bytes with the holes filled, and where each hole starts.
    fn fill(&self, before: &[u32]) -> Result<(Vec<u8>, Vec<u32>), Internal> {
        let mut bytes = Vec::with_capacity(self.bytes.len() + before[self.holes.len()] as usize);
        let mut starts = Vec::with_capacity(self.holes.len());
        let mut from = 0;
        for (index, hole) in self.holes.iter().enumerate() {
            bytes.extend_from_slice(&self.bytes[from..hole.at as usize]);
            from = hole.at as usize;
            starts.push(bytes.len() as u32);
            match hole.kind {
                HoleKind::Jump { cond, target, long } => {
                    let place = self.labels[target].expect("bound labels were checked");
                    let end = bytes.len() as i64 + i64::from(jump_size(cond, long));
                    let distance = i64::from(place.bytes + before[place.holes as usize]) - end;
                    let distance = i32::try_from(distance)
                        .map_err(|_| Internal::new(target, "a jump is farther than 32 bits reach"))?;
                    instruction::jump(&mut bytes, cond, long, distance)?;
                }
                HoleKind::Align { .. } => instruction::pad(&mut bytes, before[index + 1] - before[index]),
            }
        }
        bytes.extend_from_slice(&self.bytes[from..]);
        Ok((bytes, starts))
    }
}

fn jump_size(cond: Option<Cond>, long: bool) -> u32 {
    match (cond, long) {
        (_, false) => 2,
        (None, true) => 5,
        (Some(_), true) => 6,
    }
}
