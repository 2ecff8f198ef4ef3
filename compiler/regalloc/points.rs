//! Numbers the program points of a function, and knows its blocks by their place in the layout.
//!
//! Instruction `n` (counted through the layout; a terminator counts as one) has an early point `2n`, where it reads, and
//! a late point `2n + 1`, where it writes. A range that ends with a read at `n` is `[.., 2n + 1)`, one that begins with a
//! write is `[2n + 1, ..)`: so both may share a register. The moves that allocation inserts stand in the *gap* before an
//! instruction, and a gap is named by the early point behind it.
//!
//! ```text
//! b0:  0 mov v0, 1   points 0, 1         v0 [1, 5)
//!      1 add v0, v1  points 2, 3
//!      2 jump b1     points 4, 5
//! ```
//!
//! **in**: a verified function. **out**: numbers by layout, edges without duplicates, frequencies, a reverse postorder.
//! Cost: linear.

use crate::x64::{Block, Function, PReg, Reg, Terminator, VReg};
use cranelift_entity::SecondaryMap;
use smallvec::SmallVec;

/// A program point.
pub type Point = u32;

/// The block numbers of layout, edges and frequencies. Blocks are named by their place in the layout.
#[derive(Clone, Debug)]
pub struct Points {
    /// The block at each place.
    pub layout: Vec<Block>,
    /// The first instruction of each place, and behind the last place the number of all instructions.
    pub first: Vec<u32>,
    /// The place of each instruction.
    pub place: Vec<u32>,
    /// The places that each place may go to, each once.
    pub succs: Vec<SmallVec<[u32; 2]>>,
    /// The places that each place may be reached from, each once.
    pub preds: Vec<SmallVec<[u32; 2]>>,
    /// How often each place is assumed to run for one run of the function.
    pub freq: Vec<f64>,
    /// All places in reverse postorder, those that cannot be reached at the end.
    pub rpo: Vec<u32>,
    /// The position of each place in `rpo`.
    pub rpo_index: Vec<u32>,
}

impl Points {
    /// Numbers a function.
    pub fn compute(function: &Function<VReg>) -> Points {
        let layout = function.layout.clone();
        let mut place_of: SecondaryMap<Block, u32> = SecondaryMap::with_default(u32::MAX);
        let mut first = Vec::with_capacity(layout.len() + 1);
        let mut place = Vec::new();
        for (index, block) in layout.iter().enumerate() {
            place_of[*block] = index as u32;
            first.push(place.len() as u32);
            place.resize(place.len() + function.blocks[*block].insts.len() + 1, index as u32);
        }
        first.push(place.len() as u32);
        let mut succs: Vec<SmallVec<[u32; 2]>> = vec![SmallVec::new(); layout.len()];
        let mut preds: Vec<SmallVec<[u32; 2]>> = vec![SmallVec::new(); layout.len()];
        for (index, block) in layout.iter().enumerate() {
            for target in function.blocks[*block].term.successors() {
                let target = place_of[target];
                if !succs[index].contains(&target) {
                    succs[index].push(target);
                    preds[target as usize].push(index as u32);
                }
            }
        }
        let freq = layout.iter().map(|block| frequency(function.blocks[*block].loop_depth)).collect();
        let (rpo, rpo_index) = reverse_postorder(&succs);
        Points { layout, first, place, succs, preds, freq, rpo, rpo_index }
    }

    /// How many blocks.
    pub fn blocks(&self) -> usize {
        self.layout.len()
    }

    /// How many instructions, terminators included.
    pub fn insts(&self) -> u32 {
        self.place.len() as u32
    }

    /// The first point of a place.
    pub fn start(&self, place: u32) -> Point {
        2 * self.first[place as usize]
    }

    /// The point behind the last of a place.
    pub fn end(&self, place: u32) -> Point {
        2 * self.first[place as usize + 1]
    }

    /// The terminator of a place, as an instruction number.
    pub fn terminator(&self, place: u32) -> u32 {
        self.first[place as usize + 1] - 1
    }

    /// The place that holds a point.
    pub fn place_of(&self, point: Point) -> u32 {
        self.place[(point / 2) as usize]
    }

    /// The frequency of an instruction.
    pub fn freq_of(&self, inst: u32) -> f64 {
        self.freq[self.place[inst as usize] as usize]
    }

    /// Is the point the first of its block?
    pub fn is_start(&self, point: Point) -> bool {
        point.is_multiple_of(2) && self.start(self.place_of(point)) == point
    }

    /// How often control is assumed to pass from one place to another: no oftener than either runs.
    pub fn edge_freq(&self, from: u32, to: u32) -> f64 {
        self.freq[from as usize].min(self.freq[to as usize])
    }
}

/// Each loop is assumed to run its body ten times.
fn frequency(loop_depth: u32) -> f64 {
    10f64.powi(loop_depth.min(12) as i32)
}

fn reverse_postorder(succs: &[SmallVec<[u32; 2]>]) -> (Vec<u32>, Vec<u32>) {
    let mut seen = vec![false; succs.len()];
    let mut order = Vec::with_capacity(succs.len());
    let mut stack: Vec<(u32, usize)> = Vec::new();
    if !succs.is_empty() {
        seen[0] = true;
        stack.push((0, 0));
    }
    while let Some((place, next)) = stack.pop() {
        if let Some(succ) = succs[place as usize].get(next) {
            stack.push((place, next + 1));
            if !seen[*succ as usize] {
                seen[*succ as usize] = true;
                stack.push((*succ, 0));
            }
        } else {
            order.push(place);
        }
    }
    order.reverse();
    order.extend((0..succs.len() as u32).filter(|place| !seen[*place as usize]));
    let mut index = vec![0; succs.len()];
    for (position, place) in order.iter().enumerate() {
        index[*place as usize] = position as u32;
    }
    (order, index)
}

/// What a fixed use of a physical register looks like to allocation: pinned ranges and calls.
#[derive(Clone, Debug, Default)]
pub struct Fixed {
    /// The ranges of pinned virtual registers by hardware number, sorted and merged.
    pub pinned: [Vec<(Point, Point)>; 16],
    /// The late points of calls, where all caller-saved registers are overwritten.
    pub calls: Vec<Point>,
}

impl Fixed {
    /// Adds a pinned range; they may come in any order.
    pub fn pin(&mut self, reg: PReg, from: Point, to: Point) {
        self.pinned[reg.number() as usize].push((from, to));
    }

    /// Sorts and merges what was added.
    pub fn finish(&mut self) {
        for ranges in &mut self.pinned {
            ranges.sort_unstable();
            ranges.dedup_by(|next, last| {
                let joins = next.0 <= last.1;
                if joins {
                    last.1 = last.1.max(next.1);
                }
                joins
            });
        }
    }

    /// Calls `visit` on the pinned ranges of the register that overlap `[from, to)`, in order, until it answers false.
    pub fn for_each_pinned(&self, reg: PReg, from: Point, to: Point, mut visit: impl FnMut(Point, Point) -> bool) {
        let ranges = &self.pinned[reg.number() as usize];
        let start = ranges.partition_point(|range| range.1 <= from);
        for range in &ranges[start..] {
            if range.0 >= to || !visit(range.0, range.1) {
                break;
            }
        }
    }

    /// Is the register pinned anywhere in `[from, to)`?
    pub fn is_pinned(&self, reg: PReg, from: Point, to: Point) -> bool {
        let ranges = &self.pinned[reg.number() as usize];
        let start = ranges.partition_point(|range| range.1 <= from);
        ranges.get(start).is_some_and(|range| range.0 < to)
    }

    /// The calls with their late point in `[from, to)`.
    pub fn calls_in(&self, from: Point, to: Point) -> &[Point] {
        let start = self.calls.partition_point(|call| *call < from);
        let end = start + self.calls[start..].partition_point(|call| *call < to);
        &self.calls[start..end]
    }
}

/// Does the terminator leave the function?
pub fn leaves<R: Reg>(term: &Terminator<R>) -> bool {
    match term {
        Terminator::Return { .. } | Terminator::TailCall { .. } | Terminator::Unreachable => true,
        Terminator::Jump(_) | Terminator::Branch { .. } => false,
    }
}
