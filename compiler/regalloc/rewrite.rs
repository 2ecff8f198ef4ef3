//! Writes the allocated function: every operand in its register or slot, every move in its place.
//!
//! Moves on an edge stand at the end of the block that it leaves, if that has no other way out; else at the start of the
//! block that it enters, if that has no other way in; else in a new block on the edge. Moves that move nothing are
//! dropped, and it is noted for every copy of the input what became of it.
//!
//! **in**: a resolution. **out**: a function over physical registers without `Parallel`; its frame is filled in.
//! Cost: linear.

use super::assign::Allocator;
use super::live_ranges::LiveRanges;
use super::points::{Point, Points};
use super::resolve::{Location, Move, Resolution};
use super::sequence;
use super::uses::is_dropped;
use crate::support::internal::Internal;
use crate::support::span::Span;
use crate::x64::runtime::RuntimeFn;
use crate::x64::{
    Block, BlockData, Callee, Frame, Function, Inst, Op, PReg, RegMem, RegMemImm, RegSet, Role, Terminator, VReg,
};
use cranelift_entity::EntityRef;
use cranelift_entity::packed_option::PackedOption;
use rustc_hash::FxHashSet;

/// What became of a copy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// Both sides are one class: nothing moves.
    Coalesced,
    /// Both sides were given one location all the same: nothing moves.
    SamePlace,
    /// What it would write is at hand anyway, or never needed.
    NotNeeded,
    /// It moves (or makes the constant that its source holds).
    Moved { from: Location, to: Location },
}

/// What rewriting counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Emitted {
    /// Loads from spill slots between pieces and for instructions.
    pub reloads: u32,
    /// Stores to spill slots.
    pub stores: u32,
    /// Moves between registers that connect pieces.
    pub moves: u32,
    /// Constants made again.
    pub constants: u32,
}

/// The result.
pub struct Rewritten {
    /// The function.
    pub function: Function<PReg>,
    /// What became of each copy, in the order of `LiveRanges::copies`.
    pub fates: Vec<Fate>,
    /// What was inserted.
    pub emitted: Emitted,
}

struct Rewriter<'a> {
    source: &'a Function<VReg>,
    points: &'a Points,
    allocator: &'a Allocator<'a>,
    resolution: &'a Resolution,
    fates: Vec<Fate>,
    emitted: Emitted,
    next_gap: usize,
}

/// Writes the function.
pub fn run(
    source: &Function<VReg>,
    allocator: &Allocator,
    live: &LiveRanges,
    resolution: &Resolution,
) -> Result<Rewritten, Internal> {
    let points = allocator.points;
    let mut function = Function {
        name: source.name.clone(),
        symbol: source.symbol.clone(),
        incoming: source.incoming,
        layout: Vec::with_capacity(points.blocks()),
        blocks: cranelift_entity::PrimaryMap::with_capacity(source.blocks.len()),
        vregs: source.vregs.clone(),
        frame: Frame::default(),
    };
    for data in source.blocks.values() {
        // Blocks that are not in the layout stay as empty records, so that numbers keep their meaning.
        function.blocks.push(BlockData {
            insts: Vec::new(),
            term: Terminator::Unreachable,
            term_span: data.term_span,
            loop_depth: data.loop_depth,
        });
    }
    let mut rewriter = Rewriter {
        source,
        points,
        allocator,
        resolution,
        fates: Vec::with_capacity(live.copies.len()),
        emitted: Emitted::default(),
        next_gap: 0,
    };
    for place in 0..points.blocks() as u32 {
        let (insts, term) = rewriter.block(place)?;
        let data = &mut function.blocks[points.layout[place as usize]];
        (data.insts, data.term) = (insts, term);
    }
    let added = rewriter.edges(&mut function);
    function.layout = layout(&function, points, &added);
    let (fates, emitted) = (rewriter.fates, rewriter.emitted);
    assert!(fates.len() == live.copies.len(), "every copy has a fate");
    function.frame = frame(source, &function, resolution.slots);
    Ok(Rewritten { function, fates, emitted })
}

/// Instructions that allocation makes come from nowhere in the IR; they count to the source of their neighbour.
fn made(op: Op<PReg>, span: Span) -> Inst<PReg> {
    Inst { op, span, origin: PackedOption::default() }
}

impl Rewriter<'_> {
    fn block(&mut self, place: u32) -> Result<(Vec<Inst<PReg>>, Terminator<PReg>), Internal> {
        let block = self.points.layout[place as usize];
        let data = &self.source.blocks[block];
        let first = self.points.first[place as usize];
        let mut insts: Vec<Inst<PReg>> = Vec::with_capacity(data.insts.len() + 4);
        for (index, inst) in data.insts.iter().enumerate() {
            let number = first + index as u32;
            self.gap(number, inst.span, &mut insts);
            self.instruction(block, inst, number, &mut insts)?;
        }
        let number = self.points.terminator(place);
        self.gap(number, data.term_span, &mut insts);
        let term = data.term.map(|vreg| match self.read(vreg, number) {
            Location::Reg(reg) => reg,
            Location::Slot(_) | Location::Constant(_) => panic!("{vreg} is not in a register at the end of {block}"),
        });
        Ok((insts, term))
    }

    /// Emits the moves of the gap before an instruction.
    fn gap(&mut self, number: u32, span: Span, out: &mut Vec<Inst<PReg>>) {
        let start = self.next_gap;
        let gaps = &self.resolution.gaps;
        while self.next_gap < gaps.len() && gaps[self.next_gap].0 == 2 * number {
            self.next_gap += 1;
        }
        if start < self.next_gap {
            let moves: Vec<Move> = gaps[start..self.next_gap].iter().map(|(_, one)| *one).collect();
            let gap = 2 * number;
            let before = if self.points.is_start(gap) { gap } else { gap - 1 };
            self.moves(&moves, [before, gap], span, out);
        }
    }

    fn moves(&mut self, moves: &[Move], at: [Point; 2], span: Span, out: &mut Vec<Inst<PReg>>) {
        let pairs: Vec<(Location, Location)> = moves.iter().map(|one| (one.to, one.from)).collect();
        for one in moves {
            match (one.from, one.to) {
                (Location::Slot(_), _) => self.emitted.reloads += 1,
                (Location::Constant(_), _) => self.emitted.constants += 1,
                (Location::Reg(_), Location::Slot(_)) => self.emitted.stores += 1,
                (Location::Reg(_), Location::Reg(_) | Location::Constant(_)) => self.emitted.moves += 1,
            }
        }
        self.parallel(&pairs, at, span, out);
    }

    fn parallel(&self, pairs: &[(Location, Location)], at: [Point; 2], span: Span, out: &mut Vec<Inst<PReg>>) {
        let allowed = self.allocator.options.registers.intersection(RegSet::ALLOCATABLE);
        let others = RegSet::of(&allowed.iter().filter(|reg| self.allocator.is_paid(*reg)).collect::<Vec<PReg>>());
        sequence::emit(pairs, self.free(pairs, at), others, &mut |op| out.push(made(op, span)));
    }

    /// The registers that hold nothing at two points, cost nothing to use, and have no part in the moves. Of one simple
    /// move none is needed.
    fn free(&self, pairs: &[(Location, Location)], at: [Point; 2]) -> RegSet {
        if let [(Location::Reg(_), _) | (_, Location::Reg(_))] = pairs {
            return RegSet::EMPTY;
        }
        let mut involved = RegSet::EMPTY;
        for location in pairs.iter().flat_map(|(to, from)| [*to, *from]) {
            if let Location::Reg(reg) = location {
                involved = involved.with(reg);
            }
        }
        let mut free = RegSet::EMPTY;
        for reg in self.allocator.options.registers.intersection(RegSet::ALLOCATABLE).iter() {
            let unused = at.iter().all(|point| self.allocator.is_free_at(reg, *point));
            if unused && self.allocator.is_paid(reg) && !involved.contains(reg) {
                free = free.with(reg);
                if free.len() == 2 {
                    break;
                }
            }
        }
        free
    }

    fn read(&self, vreg: VReg, number: u32) -> Location {
        match self.source.vregs[vreg].pinned {
            Some(reg) => Location::Reg(reg),
            None => self.resolution.read(self.allocator.classes.of[vreg.index()], number),
        }
    }

    fn written(&self, vreg: VReg, number: u32) -> Location {
        match self.source.vregs[vreg].pinned {
            Some(reg) => Location::Reg(reg),
            None => self.resolution.written(self.allocator.classes.of[vreg.index()], number),
        }
    }

    /// Is what the instruction writes at hand in the class's home anyway?
    fn is_at_hand(&self, vreg: VReg, to: Location) -> bool {
        let class = self.allocator.classes.of[vreg.index()];
        let pinned = self.source.vregs[vreg].pinned.is_some();
        !pinned && !matches!(to, Location::Reg(_)) && self.allocator.has_home(class)
    }

    fn instruction(
        &mut self,
        block: Block,
        inst: &Inst<VReg>,
        number: u32,
        out: &mut Vec<Inst<PReg>>,
    ) -> Result<(), Internal> {
        match &inst.op {
            Op::Mov { dst: RegMem::Reg(dst), src: RegMem::Reg(src) } => {
                if is_dropped(self.allocator.classes, *dst, *src) {
                    self.fates.push(Fate::Coalesced);
                    return Ok(());
                }
                let (to, from) = (self.written(*dst, number), self.read(*src, number));
                let fate = self.fate(*dst, to, from);
                self.fates.push(fate);
                if let Fate::Moved { .. } = fate {
                    let op = match from {
                        Location::Constant(constant) => match to {
                            Location::Reg(reg) => sequence::make(reg, constant),
                            Location::Slot(_) | Location::Constant(_) => {
                                let super::coalesce::Constant::Imm(value) = constant else {
                                    panic!("an address is made in a register")
                                };
                                Op::Imm { dst: operand(to), value }
                            }
                        },
                        Location::Reg(_) | Location::Slot(_) => Op::Mov { dst: operand(to), src: operand(from) },
                    };
                    out.push(Inst { op, span: inst.span, origin: inst.origin });
                }
                return Ok(());
            }
            Op::Mov { dst: RegMem::Reg(dst), .. }
            | Op::Imm { dst: RegMem::Reg(dst), .. }
            | Op::StrAddress { dst, .. }
                if self.is_at_hand(*dst, self.written(*dst, number)) =>
            {
                return Ok(());
            }
            Op::Parallel { moves } => return self.parallel_instruction(block, moves, inst.span, number, out),
            _ => {}
        }
        let op = inst.op.map(|vreg, role, _| {
            let location = match role {
                Role::Use | Role::Mod => self.read(vreg, number),
                Role::Def => self.written(vreg, number),
            };
            operand(location)
        });
        out.push(Inst { op, span: inst.span, origin: inst.origin });
        Ok(())
    }

    fn fate(&self, dst: VReg, to: Location, from: Location) -> Fate {
        if self.is_at_hand(dst, to) {
            Fate::NotNeeded
        } else if to == from {
            Fate::SamePlace
        } else {
            Fate::Moved { from, to }
        }
    }

    fn parallel_instruction(
        &mut self,
        block: Block,
        moves: &[(RegMem<VReg>, RegMemImm<VReg>)],
        span: Span,
        number: u32,
        out: &mut Vec<Inst<PReg>>,
    ) -> Result<(), Internal> {
        let in_memory = || Internal::new(block, "a parallel move reads or writes memory other than a stack slot");
        let mut pairs: Vec<(Location, Location)> = Vec::with_capacity(moves.len());
        let mut destinations: FxHashSet<Location> = FxHashSet::default();
        for (dst, src) in moves {
            let from = match src {
                RegMemImm::Reg(vreg) => self.read(*vreg, number),
                RegMemImm::Slot(slot) => Location::Slot(*slot),
                RegMemImm::Imm(value) => Location::Constant(super::coalesce::Constant::Imm(*value)),
                RegMemImm::Mem(_) => return Err(in_memory()),
            };
            let to = match dst {
                RegMem::Reg(vreg) => self.written(*vreg, number),
                RegMem::Slot(slot) => Location::Slot(*slot),
                RegMem::Mem(_) => return Err(in_memory()),
            };
            let mut needed = true;
            if let RegMem::Reg(dst) = dst {
                let fate = self.fate(*dst, to, from);
                needed = matches!(fate, Fate::Moved { .. });
                if let RegMemImm::Reg(src) = src {
                    let dropped = is_dropped(self.allocator.classes, *dst, *src);
                    self.fates.push(if dropped { Fate::Coalesced } else { fate });
                    needed &= !dropped;
                }
            }
            // Members of one class may be written together, with one value: one move serves them. A member that keeps
            // its place still counts as a destination, else the other might be overwritten.
            if needed && destinations.insert(to) {
                pairs.push((to, from));
            }
        }
        self.parallel(&pairs, [2 * number, 2 * number + 1], span, out);
        Ok(())
    }

    /// Places the moves of the edges; gives the blocks that were added, by the places that their edge joins.
    fn edges(&mut self, function: &mut Function<PReg>) -> Vec<(u32, u32, Block)> {
        let mut added = Vec::new();
        let mut index = 0;
        while index < self.resolution.edges.len() {
            let (from, to) = self.resolution.edges[index].0;
            let start = index;
            while index < self.resolution.edges.len() && self.resolution.edges[index].0 == (from, to) {
                index += 1;
            }
            let moves: Vec<Move> = self.resolution.edges[start..index].iter().map(|(_, one)| *one).collect();
            let at = [self.points.end(from) - 1, self.points.start(to)];
            let (from_block, to_block) = (self.points.layout[from as usize], self.points.layout[to as usize]);
            let mut insts = Vec::new();
            self.moves(&moves, at, self.source.blocks[from_block].term_span, &mut insts);
            if self.points.succs[from as usize].len() == 1 {
                function.blocks[from_block].insts.extend(insts);
            } else if self.points.preds[to as usize].len() == 1 {
                function.blocks[to_block].insts.splice(0..0, insts);
            } else {
                let depth = function.blocks[from_block].loop_depth.min(function.blocks[to_block].loop_depth);
                let block = function.blocks.push(BlockData {
                    insts,
                    term: Terminator::Jump(to_block),
                    term_span: function.blocks[from_block].term_span,
                    loop_depth: depth,
                });
                function.blocks[from_block].term.for_each_successor_mut(|target| {
                    if *target == to_block {
                        *target = block;
                    }
                });
                added.push((from, to, block));
            }
        }
        added
    }
}

fn operand(location: Location) -> RegMem<PReg> {
    match location {
        Location::Reg(reg) => RegMem::Reg(reg),
        Location::Slot(slot) => RegMem::Slot(slot),
        Location::Constant(constant) => panic!("the constant {constant:?} is in no place where it is read"),
    }
}

/// The order of the blocks. A block on an edge that goes back or that falls through follows the block that it leaves;
/// another stands before the block that it enters, unless control falls through there.
fn layout(function: &Function<PReg>, points: &Points, added: &[(u32, u32, Block)]) -> Vec<Block> {
    let mut behind: Vec<Vec<Block>> = vec![Vec::new(); points.blocks()];
    let mut last: Vec<Block> = Vec::new();
    for (from, to, block) in added {
        if *to <= *from || *to == *from + 1 {
            behind[*from as usize].push(*block);
        } else {
            let before = points.layout[*to as usize - 1];
            let falls = function.blocks[before].term.successors().contains(&points.layout[*to as usize]);
            if falls { last.push(*block) } else { behind[*to as usize - 1].push(*block) }
        }
    }
    let mut layout = Vec::with_capacity(points.blocks() + added.len());
    for (place, block) in points.layout.iter().enumerate() {
        layout.push(*block);
        layout.append(&mut behind[place]);
    }
    layout.extend(last);
    layout
}

fn frame(source: &Function<VReg>, function: &Function<PReg>, slots: u32) -> Frame {
    let mut frame = Frame { spill_slots: slots, ..Frame::default() };
    for block in &source.layout {
        for inst in &source.blocks[*block].insts {
            let Op::Call { callee, stack_args, .. } = &inst.op else { continue };
            frame.outgoing = frame.outgoing.max(*stack_args);
            frame.calls |= match callee {
                Callee::Function(_) => true,
                Callee::Runtime(RuntimeFn::TrapDivision | RuntimeFn::TrapIndex | RuntimeFn::TrapAssert) => false,
                Callee::Runtime(_) => true,
            };
        }
    }
    let mut written = RegSet::EMPTY;
    for block in &function.layout {
        for inst in &function.blocks[*block].insts {
            inst.op.for_each_reg(|reg, _, _| written = written.with(reg));
        }
    }
    frame.saved = written.intersection(RegSet::CALLEE_SAVED);
    frame
}
