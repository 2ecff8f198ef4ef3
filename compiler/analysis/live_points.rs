//! Where in SSA form each value is written and how far it lives, to the instruction: enough to say of two values whether
//! their live ranges overlap.
//!
//! In SSA form two live ranges overlap if and only if one value lives where the other is written, and then the definition
//! of the one dominates that of the other (Budimlić, Cooper, Harvey, Kennedy, Oberg, Reeves: Fast Copy Coalescing and
//! Live-Range Identification, 2002). So one question is enough: is `a` still read behind the place where `b` is written?
//!
//! ```text
//! b1: %3 = phi …           %3 is written at point 0 of b1
//!     %4 = int %3 + 1      %4 at point 2
//!     print %3             read at point 3: %3 lives behind point 2, so %3 and %4 overlap
//! ```
//!
//! Points of a block: 0 its φs, 1 the copies behind them, 2 and on its instructions, then the copies at its end, its
//! terminator, and its edges out ([`Points`]).
//!
//! **in**: a function in SSA form without unreachable blocks. **out**: places. Cost: that of liveness; a question takes
//! a binary search in the values live into each successor.

use super::cfg::Cfg;
use super::dominators::DomTree;
use super::liveness::Liveness;
use crate::ir::{Block, Function, Operand, Value};
use cranelift_entity::SecondaryMap;
use rustc_hash::FxHashMap;

/// When the φs of a block are written, and when their operands are read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Phis {
    /// On the edges, as the form says.
    OnEdges,
    /// By copies: behind the block's start, and in front of the terminators of the blocks before it.
    ByCopies,
}

/// A place where something is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    /// The block.
    pub block: Block,
    /// The block's number in the dominator tree's preorder.
    number: u32,
    /// The largest number of what the block dominates.
    last: u32,
    /// The point in the block.
    point: u32,
}

impl Place {
    /// Sorts places so that what dominates comes first.
    pub fn key(&self) -> (u32, u32) {
        (self.number, self.point)
    }

    /// Does every way to `other` come here before? A place dominates itself.
    pub fn dominates(&self, other: &Place) -> bool {
        if self.number == other.number {
            self.point <= other.point
        } else {
            self.number < other.number && other.number <= self.last
        }
    }

    /// Is it in front of all instructions?
    pub fn is_at_start(&self) -> bool {
        self.point < FIRST
    }

    /// The instruction that writes there, by its number in the block, if the place is among them or behind.
    pub fn instruction(&self) -> Option<usize> {
        self.point.checked_sub(FIRST).map(|index| index as usize)
    }
}

/// The point of φs.
const START: u32 = 0;
/// The point of the copies behind φs.
const COPIES: u32 = 1;
/// The point of the first instruction.
const FIRST: u32 = 2;

/// The places and live ranges of a function's values.
pub struct Points<'a> {
    function: &'a Function,
    dominators: &'a DomTree,
    liveness: Liveness,
    written: SecondaryMap<Value, Option<Place>>,
    /// The last point of a block where a value is read, if it is.
    last_read: FxHashMap<(Value, Block), u32>,
}

impl<'a> Points<'a> {
    /// Looks at all values.
    pub fn compute(function: &'a Function, cfg: &Cfg, dominators: &'a DomTree, phis: Phis) -> Points<'a> {
        let mut points = Points {
            function,
            dominators,
            liveness: Liveness::compute(function, cfg),
            written: SecondaryMap::with_capacity(function.values.len()),
            last_read: FxHashMap::default(),
        };
        for &block in &function.layout {
            let data = &function.blocks[block];
            if block == function.entry() {
                function.params.iter().for_each(|param| points.write(*param, block, START));
            }
            let (written, read) = match phis {
                Phis::OnEdges => (START, points.edge_point(block)),
                Phis::ByCopies => (COPIES, points.end_point(block)),
            };
            data.params.iter().for_each(|phi| points.write(*phi, block, written));
            for edge in data.term.edges() {
                edge.args.iter().for_each(|arg| points.read(*arg, block, read));
            }
            for (point, inst) in (FIRST..).zip(&data.insts) {
                let data = &function.insts[*inst];
                data.op.for_each_operand(|operand| points.read(operand, block, point));
                data.for_each_def(|value| points.write(value, block, point));
            }
            if let Some(operand) = data.term.operand() {
                let point = points.end_point(block) + 1;
                points.read(operand, block, point);
            }
        }
        points
    }

    fn end_point(&self, block: Block) -> u32 {
        FIRST + self.function.blocks[block].insts.len() as u32
    }

    fn edge_point(&self, block: Block) -> u32 {
        self.end_point(block) + 2
    }

    fn at(&self, block: Block, point: u32) -> Place {
        Place { block, number: self.dominators.number(block), last: self.dominators.last_number(block), point }
    }

    fn write(&mut self, value: Value, block: Block, point: u32) {
        self.written[value] = Some(self.at(block, point));
    }

    fn read(&mut self, operand: Operand, block: Block, point: u32) {
        if let Operand::Value(value) = operand {
            let last = self.last_read.entry((value, block)).or_insert(point);
            *last = point.max(*last);
        }
    }

    /// Where the value is written.
    ///
    /// # Panics
    /// If it is not.
    pub fn written(&self, value: Value) -> Place {
        self.written[value].unwrap_or_else(|| panic!("nothing writes {value}"))
    }

    /// Is the value written anywhere?
    pub fn is_written(&self, value: Value) -> bool {
        self.written[value].is_some()
    }

    /// The place of the block's φs.
    pub fn start(&self, block: Block) -> Place {
        self.at(block, START)
    }

    /// The place of copies in front of the block's terminator.
    pub fn end(&self, block: Block) -> Place {
        self.at(block, self.end_point(block))
    }

    /// Is the value, whose definition dominates the place, read behind it?
    pub fn lives_behind(&self, value: Value, place: &Place) -> bool {
        if self.last_read.get(&(value, place.block)).is_some_and(|last| *last > place.point) {
            return true;
        }
        let mut edges = self.function.blocks[place.block].term.edges();
        edges.any(|edge| self.liveness.is_live_in(edge.target, value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::parse::parse;
    use crate::support::span::Source;

    #[test]
    fn the_lost_copy() {
        let text = "fn main() {\nb0:\njump b1\nb1:\n%1 = phi [1 from b0, %2 from b1]\n%2 = int %1 + 1\n\
                    %3 = bool %2 < 9\nbranch %3 ? b1 : b2\nb2:\nprint %1\nreturn\n}\n";
        let program = parse(&Source::new("t", text)).expect("it parses");
        let function = &program.functions[program.entry];
        let cfg = Cfg::compute(function);
        let dominators = DomTree::compute(function, &cfg);
        let points = Points::compute(function, &cfg, &dominators, Phis::OnEdges);
        let value = Value::from_u32;
        let written = |number| points.written(value(number));
        assert!(written(1).dominates(&written(2)) && !written(2).dominates(&written(1)));
        assert!(written(1).is_at_start() && !written(2).is_at_start());
        assert_eq!((written(2).instruction(), written(3).instruction()), (Some(0), Some(1)));
        // %1 is read in b2, so it lives where %2 is written; %2 lives to the edge, %3 to the terminator only.
        assert!(points.lives_behind(value(1), &written(2)));
        assert!(points.lives_behind(value(2), &written(3)));
        let (b1, b2) = (Block::from_u32(1), Block::from_u32(2));
        assert!(points.lives_behind(value(2), &points.end(b1)));
        assert!(points.lives_behind(value(3), &points.end(b1)));
        assert!(!points.lives_behind(value(2), &points.start(b2)));
        assert!(points.lives_behind(value(1), &points.start(b2)));

        // With copies, %2 is read in front of the terminator, and %1 written behind the start.
        let points = Points::compute(function, &cfg, &dominators, Phis::ByCopies);
        assert!(!points.lives_behind(value(2), &points.end(b1)));
        assert!(points.lives_behind(value(1), &points.end(b1)));
        assert!(points.start(b1).dominates(&points.written(value(1))));
        assert!(!points.written(value(1)).dominates(&points.start(b1)));
    }
}
