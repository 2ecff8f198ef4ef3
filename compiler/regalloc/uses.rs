//! Collects what the instructions ask of each class: which read it, which write it, and where a stack slot would do.
//!
//! Copies that coalescing made one are no uses: they will be dropped. An instruction that mentions a class twice has one
//! use of it, so that one reload serves all operands.
//!
//! **in**: classes. **out**: for each class its uses in order; for each instruction whether it has a memory operand.
//! Cost: linear.

use super::coalesce::{ClassId, Classes, NO_CLASS};
use super::points::Points;
use crate::x64::{Constraint, Function, Op, RegMem, RegMemImm, Role, VReg, Width};
use cranelift_entity::EntityRef;
use smallvec::SmallVec;

/// A use of a class by an instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Use {
    /// The instruction.
    pub inst: u32,
    /// Does it read?
    pub reads: bool,
    /// Does it write?
    pub writes: bool,
    /// May the operand be a stack slot, if no other operand of the instruction is in memory?
    pub slot: bool,
    /// May it be a stack slot whatever the others are?
    pub any_slot: bool,
    /// May a constant stand in its place?
    pub constant: bool,
}

/// The result.
#[derive(Clone, Debug)]
pub struct Uses {
    /// The uses of each class, in order.
    pub of: Vec<Vec<Use>>,
    /// Whether each instruction has a memory operand.
    pub memory: Vec<bool>,
}

/// Collects.
pub fn collect(function: &Function<VReg>, points: &Points, classes: &Classes) -> Uses {
    let mut uses = Uses { of: vec![Vec::new(); classes.list.len()], memory: vec![false; points.insts() as usize] };
    let mut found: SmallVec<[(ClassId, Use); 8]> = SmallVec::new();
    for place in 0..points.blocks() as u32 {
        let data = &function.blocks[points.layout[place as usize]];
        let first = points.first[place as usize];
        for (index, inst) in data.insts.iter().enumerate() {
            let number = first + index as u32;
            found.clear();
            of_instruction(&inst.op, number, classes, &mut found);
            uses.memory[number as usize] = has_memory_operand(&inst.op);
            found.drain(..).for_each(|(class, found)| uses.of[class as usize].push(found));
        }
        let number = points.terminator(place);
        found.clear();
        data.term.for_each_reg(|vreg, role, constraint| {
            add(&mut found, classes.of[vreg.index()], number, role, constraint == Constraint::Any, false);
        });
        found.drain(..).for_each(|(class, found)| uses.of[class as usize].push(found));
    }
    uses
}

fn of_instruction(op: &Op<VReg>, number: u32, classes: &Classes, found: &mut SmallVec<[(ClassId, Use); 8]>) {
    let class_of = |vreg: &VReg| classes.of[vreg.index()];
    match op {
        Op::Mov { dst: RegMem::Reg(dst), src: RegMem::Reg(src) } => {
            if is_dropped(classes, *dst, *src) {
                return;
            }
            add(found, class_of(dst), number, Role::Def, true, false);
            add(found, class_of(src), number, Role::Use, true, false);
            found.iter_mut().filter(|(_, found)| found.reads).for_each(|(_, found)| found.constant = true);
        }
        Op::Parallel { moves } => {
            for (dst, src) in moves {
                let pair = (dst.reg(), src);
                if let (Some(dst), RegMemImm::Reg(src)) = pair
                    && is_dropped(classes, dst, *src)
                {
                    continue;
                }
                if let RegMem::Reg(dst) = dst {
                    add(found, class_of(dst), number, Role::Def, true, true);
                }
                if let RegMemImm::Reg(src) = src {
                    add(found, class_of(src), number, Role::Use, true, true);
                }
            }
            found.iter_mut().for_each(|(_, found)| found.constant = found.reads && !found.writes);
        }
        Op::Trap { .. } => op.for_each_reg(|vreg, role, constraint| {
            add(found, class_of(&vreg), number, role, constraint == Constraint::Any, true);
        }),
        _ => op.for_each_reg(|vreg, role, constraint| {
            let slot = constraint == Constraint::Any && fits_slot(op, role);
            add(found, class_of(&vreg), number, role, slot, false);
        }),
    }
}

fn add(found: &mut SmallVec<[(ClassId, Use); 8]>, class: ClassId, inst: u32, role: Role, slot: bool, any_slot: bool) {
    if class == NO_CLASS {
        return;
    }
    let (reads, writes) = (role != Role::Def, role != Role::Use);
    match found.iter_mut().find(|(other, _)| *other == class) {
        // Where slots are free for all, mentioning a class twice changes nothing; elsewhere two operands need a register.
        Some((_, known)) => {
            known.reads |= reads;
            known.writes |= writes;
            known.any_slot &= any_slot && slot;
            known.slot = known.any_slot;
        }
        None => {
            let any_slot = any_slot && slot;
            found.push((class, Use { inst, reads, writes, slot, any_slot, constant: false }));
        }
    }
}

/// Is a copy between the two one that moves nothing?
pub fn is_dropped(classes: &Classes, dst: VReg, src: VReg) -> bool {
    let class = classes.of[dst.index()];
    class != NO_CLASS && class == classes.of[src.index()]
}

/// May the operand of this role be an 8-byte slot? What is written with 32 bits may not, as the upper half must be zeroed;
/// nor may a constant that needs 64 bits.
fn fits_slot(op: &Op<VReg>, role: Role) -> bool {
    match op {
        Op::Alu { width, .. } | Op::Unary { width, .. } | Op::Shift { width, .. } => {
            role == Role::Use || *width == Width::W64
        }
        Op::Imm { value, .. } => i32::try_from(*value).is_ok(),
        _ => true,
    }
}

/// Does it have an operand in memory that takes the one place for such?
fn has_memory_operand(op: &Op<VReg>) -> bool {
    let in_memory = |operand: &RegMem<VReg>| !matches!(operand, RegMem::Reg(_));
    let immediate_in_memory = |operand: &RegMemImm<VReg>| matches!(operand, RegMemImm::Slot(_) | RegMemImm::Mem(_));
    match op {
        Op::Mov { dst, src } => in_memory(dst) || in_memory(src),
        Op::Imm { dst, .. } | Op::Unary { dst, .. } | Op::Shift { dst, .. } | Op::Pop { dst } => in_memory(dst),
        Op::Imul { src, .. }
        | Op::ImulImm { src, .. }
        | Op::MulHigh { src, .. }
        | Op::Div { src, .. }
        | Op::Cmov { src, .. }
        | Op::Push { src } => in_memory(src),
        Op::Alu { dst, src, .. } => in_memory(dst) || immediate_in_memory(src),
        Op::Cmp { lhs, rhs, .. } | Op::Test { lhs, rhs, .. } => in_memory(lhs) || immediate_in_memory(rhs),
        Op::Load { .. } | Op::Store { .. } | Op::CmpByte { .. } => true,
        Op::StrAddress { .. }
        | Op::Parallel { .. }
        | Op::Lea { .. }
        | Op::SignExtend { .. }
        | Op::Set { .. }
        | Op::Call { .. }
        | Op::Trap { .. }
        | Op::Xchg { .. } => false,
    }
}
