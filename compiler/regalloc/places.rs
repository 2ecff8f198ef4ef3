//! The registers and slots that instructions read and write, in order, for the checker: of code before and after
//! allocation alike, so that both can be laid side by side. It shares nothing with the allocator. Cost: linear in operands.

use crate::x64::*;
use smallvec::SmallVec;
use std::fmt::Display;

/// What a register or slot can be made from at any place.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub enum Constant {
    Int(i64),
    Str(StrId),
}

/// A register or a slot, of either code.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Place<R> {
    Reg(R),
    Slot(Slot),
}

impl<R: Display> Display for Place<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Place::Reg(reg) => write!(f, "{reg}"),
            Place::Slot(Slot::Spill(number)) => write!(f, "spill slot {number}"),
            Place::Slot(Slot::Incoming(number)) => write!(f, "incoming slot {number}"),
            Place::Slot(Slot::Outgoing(number)) => write!(f, "outgoing slot {number}"),
        }
    }
}

/// Is it a move between registers, slots and constants, as the allocator makes and drops them?
pub fn is_move<R: Copy>(op: &Op<R>) -> bool {
    match op {
        Op::Mov { dst, src } => place_of(dst).is_some() && place_of(src).is_some(),
        Op::Imm { dst, .. } => place_of(dst).is_some(),
        Op::StrAddress { .. } | Op::Parallel { .. } | Op::Push { .. } | Op::Pop { .. } | Op::Xchg { .. } => true,
        Op::Load { .. }
        | Op::Store { .. }
        | Op::Lea { .. }
        | Op::Alu { .. }
        | Op::Unary { .. }
        | Op::Shift { .. }
        | Op::Imul { .. }
        | Op::ImulImm { .. }
        | Op::MulHigh { .. }
        | Op::SignExtend { .. }
        | Op::Div { .. }
        | Op::Cmp { .. }
        | Op::CmpByte { .. }
        | Op::Test { .. }
        | Op::Set { .. }
        | Op::Cmov { .. }
        | Op::Call { .. }
        | Op::Trap { .. } => false,
    }
}

/// What a move takes its value from.
pub enum Source<R> {
    Place(Place<R>),
    Constant(Constant),
}

impl<R> Source<R> {
    /// The place, unless it is a constant.
    pub fn place(self) -> Option<Place<R>> {
        match self {
            Source::Place(place) => Some(place),
            Source::Constant(_) => None,
        }
    }
}

/// The assignments of a move, all at once; none for `push`, `pop` and `xchg`.
pub fn moves_of<R: Copy>(op: &Op<R>) -> SmallVec<[(Place<R>, Source<R>); 4]> {
    let mut moves = SmallVec::new();
    match op {
        Op::Mov { dst, src } => {
            if let (Some(dst), Some(src)) = (place_of(dst), place_of(src)) {
                moves.push((dst, Source::Place(src)));
            }
        }
        Op::Imm { dst, value } => {
            if let Some(dst) = place_of(dst) {
                moves.push((dst, Source::Constant(Constant::Int(*value))));
            }
        }
        Op::StrAddress { dst, string } => moves.push((Place::Reg(*dst), Source::Constant(Constant::Str(*string)))),
        Op::Parallel { moves: all } => {
            for (dst, src) in all {
                let src = match src {
                    RegMemImm::Reg(reg) => Some(Source::Place(Place::Reg(*reg))),
                    RegMemImm::Slot(slot) => Some(Source::Place(Place::Slot(*slot))),
                    RegMemImm::Imm(value) => Some(Source::Constant(Constant::Int(*value))),
                    RegMemImm::Mem(_) => None,
                };
                if let (Some(dst), Some(src)) = (place_of(dst), src) {
                    moves.push((dst, src));
                }
            }
        }
        Op::Push { .. }
        | Op::Pop { .. }
        | Op::Xchg { .. }
        | Op::Load { .. }
        | Op::Store { .. }
        | Op::Lea { .. }
        | Op::Alu { .. }
        | Op::Unary { .. }
        | Op::Shift { .. }
        | Op::Imul { .. }
        | Op::ImulImm { .. }
        | Op::MulHigh { .. }
        | Op::SignExtend { .. }
        | Op::Div { .. }
        | Op::Cmp { .. }
        | Op::CmpByte { .. }
        | Op::Test { .. }
        | Op::Set { .. }
        | Op::Cmov { .. }
        | Op::Call { .. }
        | Op::Trap { .. } => {}
    }
    moves
}

/// The constants that an instruction makes.
pub fn constants_of<R: Copy>(op: &Op<R>, constants: &mut Vec<Constant>) {
    for (_, source) in moves_of(op) {
        match source {
            Source::Constant(constant) => constants.push(constant),
            Source::Place(_) => {}
        }
    }
}

/// The register or slot, if it is one.
pub fn place_of<R: Copy>(operand: &RegMem<R>) -> Option<Place<R>> {
    match operand {
        RegMem::Reg(reg) => Some(Place::Reg(*reg)),
        RegMem::Slot(slot) => Some(Place::Slot(*slot)),
        RegMem::Mem(_) => None,
    }
}

/// The registers and slots of an instruction that is no move, registers in the order of [`Op::map`].
pub fn operands<R: Copy>(op: &Op<R>) -> SmallVec<[(Role, Place<R>); 6]> {
    let mut list = SmallVec::new();
    {
        let mut add = |role: Role, place: Place<R>| list.push((role, place));
        match op {
            Op::Mov { dst, src } => {
                reg_mem(dst, Role::Def, &mut add);
                reg_mem(src, Role::Use, &mut add);
            }
            Op::Imm { dst, .. } => reg_mem(dst, Role::Def, &mut add),
            Op::Load { dst, src, .. } | Op::Lea { dst, src, .. } => {
                add(Role::Def, Place::Reg(*dst));
                address(src, &mut add);
            }
            Op::Store { dst, src, .. } => {
                address(dst, &mut add);
                match src {
                    StoreSource::Reg(reg) => add(Role::Use, Place::Reg(*reg)),
                    StoreSource::Imm(_) => {}
                }
            }
            Op::Alu { dst, src, .. } => {
                reg_mem(dst, Role::Mod, &mut add);
                reg_mem_imm(src, &mut add);
            }
            Op::Unary { dst, .. } => reg_mem(dst, Role::Mod, &mut add),
            Op::Shift { dst, count, .. } => {
                reg_mem(dst, Role::Mod, &mut add);
                match count {
                    Count::Cl(reg) => add(Role::Use, Place::Reg(*reg)),
                    Count::Imm(_) => {}
                }
            }
            Op::Imul { dst, src } | Op::Cmov { dst, src, .. } => {
                add(Role::Mod, Place::Reg(*dst));
                reg_mem(src, Role::Use, &mut add);
            }
            Op::ImulImm { dst, src, .. } => {
                add(Role::Def, Place::Reg(*dst));
                reg_mem(src, Role::Use, &mut add);
            }
            Op::MulHigh { lo, hi, src, .. } => {
                add(Role::Mod, Place::Reg(*lo));
                add(Role::Def, Place::Reg(*hi));
                reg_mem(src, Role::Use, &mut add);
            }
            Op::SignExtend { hi, lo } => {
                add(Role::Def, Place::Reg(*hi));
                add(Role::Use, Place::Reg(*lo));
            }
            Op::Div { lo, hi, src, .. } => {
                add(Role::Mod, Place::Reg(*lo));
                add(Role::Mod, Place::Reg(*hi));
                reg_mem(src, Role::Use, &mut add);
            }
            Op::Cmp { lhs, rhs, .. } | Op::Test { lhs, rhs, .. } => {
                reg_mem(lhs, Role::Use, &mut add);
                reg_mem_imm(rhs, &mut add);
            }
            Op::CmpByte { lhs, .. } => address(lhs, &mut add),
            Op::Set { dst, .. } => add(Role::Mod, Place::Reg(*dst)),
            Op::Call { args, result, .. } => {
                args.iter().for_each(|arg| add(Role::Use, Place::Reg(*arg)));
                result.iter().for_each(|result| add(Role::Def, Place::Reg(*result)));
            }
            Op::Trap { args, .. } => args.iter().for_each(|arg| reg_mem_imm(arg, &mut add)),
            Op::StrAddress { .. } | Op::Parallel { .. } | Op::Push { .. } | Op::Pop { .. } | Op::Xchg { .. } => {}
        }
    }
    list
}

fn reg_mem<R: Copy>(operand: &RegMem<R>, role: Role, add: &mut impl FnMut(Role, Place<R>)) {
    match operand {
        RegMem::Reg(reg) => add(role, Place::Reg(*reg)),
        RegMem::Slot(slot) => add(role, Place::Slot(*slot)),
        RegMem::Mem(memory) => address(memory, add),
    }
}

fn reg_mem_imm<R: Copy>(operand: &RegMemImm<R>, add: &mut impl FnMut(Role, Place<R>)) {
    match operand {
        RegMemImm::Reg(reg) => add(Role::Use, Place::Reg(*reg)),
        RegMemImm::Slot(slot) => add(Role::Use, Place::Slot(*slot)),
        RegMemImm::Mem(memory) => address(memory, add),
        RegMemImm::Imm(_) => {}
    }
}

fn address<R: Copy>(memory: &Address<R>, add: &mut impl FnMut(Role, Place<R>)) {
    memory.base.iter().for_each(|base| add(Role::Use, Place::Reg(*base)));
    memory.index.iter().for_each(|(index, _)| add(Role::Use, Place::Reg(*index)));
}
