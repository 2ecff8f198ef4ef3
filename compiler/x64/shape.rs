//! What the operands of an instruction look like, for the verifier: how many are in memory, which slots they read and
//! write, what does not fit; and which instructions read the flags. Cost: linear in operands.

use super::registers::Reg;
use super::types::*;
use smallvec::SmallVec;

/// `xor r, r` and `sub r, r` give 0 whatever the register held.
pub fn is_clearing<R: Reg>(op: &Op<R>) -> bool {
    match op {
        Op::Alu { op: AluOp::Xor | AluOp::Sub, dst: RegMem::Reg(dst), src: RegMemImm::Reg(src), .. } => dst == src,
        Op::Alu { .. }
        | Op::Mov { .. }
        | Op::Imm { .. }
        | Op::StrAddress { .. }
        | Op::Parallel { .. }
        | Op::Load { .. }
        | Op::Store { .. }
        | Op::Lea { .. }
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
        | Op::Trap { .. }
        | Op::Push { .. }
        | Op::Pop { .. }
        | Op::Xchg { .. } => false,
    }
}

/// The condition that an instruction reads the flags for.
pub fn condition_of<R>(op: &Op<R>) -> Option<Cond> {
    match op {
        Op::Set { cond, .. } | Op::Cmov { cond, .. } => Some(*cond),
        Op::Trap { cond, .. } => *cond,
        Op::Mov { .. }
        | Op::Imm { .. }
        | Op::StrAddress { .. }
        | Op::Parallel { .. }
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
        | Op::Call { .. }
        | Op::Push { .. }
        | Op::Pop { .. }
        | Op::Xchg { .. } => None,
    }
}

/// What an instruction's operands look like.
#[derive(Default)]
pub struct Shape {
    /// Operands in memory.
    pub memory: usize,
    /// An index factor that the machine does not have.
    pub bad_scale: Option<u8>,
    /// An immediate that does not fit.
    pub wide: Option<i64>,
    /// All slots.
    pub slots: SmallVec<[Slot; 2]>,
    /// Slots that are read.
    pub slots_read: SmallVec<[Slot; 2]>,
    /// Slots that are written.
    pub slots_written: SmallVec<[Slot; 2]>,
}

impl Shape {
    /// Notes what an instruction has.
    pub fn op<R: Reg>(&mut self, op: &Op<R>) {
        match op {
            Op::Mov { dst, src } => {
                self.reg_mem(dst, Role::Def);
                self.reg_mem(src, Role::Use);
            }
            Op::Imm { dst, value } => {
                self.reg_mem(dst, Role::Def);
                if dst.reg().is_none() {
                    self.imm(*value);
                }
            }
            Op::StrAddress { .. } | Op::Xchg { .. } | Op::SignExtend { .. } | Op::Set { .. } => {}
            Op::Parallel { moves } => {
                for (dst, src) in moves {
                    self.reg_mem(dst, Role::Def);
                    self.reg_mem_wide(src);
                }
            }
            Op::Trap { args, .. } => args.iter().for_each(|arg| self.reg_mem_wide(arg)),
            Op::Load { src: address, .. } | Op::Store { dst: address, .. } | Op::CmpByte { lhs: address, .. } => {
                self.memory += 1;
                self.address(address);
            }
            // `lea` computes an address and touches no memory.
            Op::Lea { src, .. } => self.address(src),
            Op::Alu { dst, src, .. } => {
                self.reg_mem(dst, Role::Mod);
                self.reg_mem_imm(src);
            }
            Op::Unary { dst, .. } | Op::Shift { dst, .. } => self.reg_mem(dst, Role::Mod),
            Op::Imul { src, .. }
            | Op::ImulImm { src, .. }
            | Op::MulHigh { src, .. }
            | Op::Div { src, .. }
            | Op::Cmov { src, .. }
            | Op::Push { src } => self.reg_mem(src, Role::Use),
            Op::Cmp { lhs, rhs, .. } | Op::Test { lhs, rhs, .. } => {
                self.reg_mem(lhs, Role::Use);
                self.reg_mem_imm(rhs);
            }
            // Its stack arguments are counted where calls are checked.
            Op::Call { .. } => {}
            Op::Pop { dst } => self.reg_mem(dst, Role::Def),
        }
    }

    fn reg_mem<R: Reg>(&mut self, operand: &RegMem<R>, role: Role) {
        match operand {
            RegMem::Reg(_) => {}
            RegMem::Slot(slot) => {
                self.memory += 1;
                self.slots.push(*slot);
                if role != Role::Def {
                    self.slots_read.push(*slot);
                }
                if role != Role::Use {
                    self.slots_written.push(*slot);
                }
            }
            RegMem::Mem(address) => {
                self.memory += 1;
                self.address(address);
            }
        }
    }

    fn reg_mem_imm<R: Reg>(&mut self, operand: &RegMemImm<R>) {
        if let RegMemImm::Imm(value) = operand {
            self.imm(*value);
        }
        self.reg_mem_wide(operand);
    }

    fn reg_mem_wide<R: Reg>(&mut self, operand: &RegMemImm<R>) {
        match operand {
            RegMemImm::Reg(reg) => self.reg_mem(&RegMem::Reg(*reg), Role::Use),
            RegMemImm::Slot(slot) => self.reg_mem(&RegMem::<R>::Slot(*slot), Role::Use),
            RegMemImm::Mem(address) => self.reg_mem(&RegMem::Mem(*address), Role::Use),
            RegMemImm::Imm(_) => {}
        }
    }

    fn imm(&mut self, value: i64) {
        if i32::try_from(value).is_err() {
            self.wide = Some(value);
        }
    }

    fn address<R>(&mut self, address: &Address<R>) {
        if let Some((_, scale)) = &address.index
            && !matches!(scale, 1 | 2 | 4 | 8)
        {
            self.bad_scale = Some(*scale);
        }
    }
}
