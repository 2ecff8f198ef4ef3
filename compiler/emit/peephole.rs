//! Small improvements that only show once registers are physical.
//!
//! - Moves that move nothing go, among them a move back right behind a move.
//! - `mov d, a · add d, b` becomes `lea d, [a+b]` where nothing reads the flags: allocation has not made `d` and `a` one
//!   register, because `a` goes on.
//! - A reload right behind the spill of the same register goes; so does a second reload of a slot into the same register.
//!
//! **in** allocated code · **out** code that does the same with at most as many instructions. Cost: linear.

use crate::x64::*;

/// Improves the function; how many instructions were removed or changed.
pub fn run(function: &mut Function<PReg>) -> usize {
    let mut changes = 0;
    for position in 0..function.layout.len() {
        let block = function.layout[position];
        changes += improve(&mut function.blocks[block]);
    }
    changes
}

fn improve(data: &mut BlockData<PReg>) -> usize {
    let before = data.insts.len();
    let mut merged = 0;
    // Backwards, for the flags: what is kept, in reverse, each with whether its flags are read behind it.
    let mut kept: Vec<(Inst<PReg>, bool)> = Vec::with_capacity(before);
    let mut flags_live = matches!(data.term, Terminator::Branch { .. });
    for mut inst in std::mem::take(&mut data.insts).into_iter().rev() {
        if is_identity(&inst.op) {
            continue;
        }
        if let Some((next, read)) = kept.last() {
            if is_undone(&inst.op, &next.op) {
                // A move has no influence on the flags.
                flags_live = *read;
                kept.pop();
            } else if !read && let Some(op) = sum(&inst.op, &next.op) {
                inst = Inst { op, ..next.clone() };
                flags_live = false;
                kept.pop();
                merged += 1;
            }
        }
        kept.push((inst, flags_live));
        let (inst, _) = &kept[kept.len() - 1];
        flags_live = inst.op.reads_flags() || flags_live && !inst.op.writes_flags();
    }
    data.insts = kept.into_iter().rev().map(|(inst, _)| inst).collect();
    before - data.insts.len() + merged
}

fn is_identity(op: &Op<PReg>) -> bool {
    match op {
        Op::Mov { dst, src } => dst == src,
        Op::Xchg { a, b } => a == b,
        _ => false,
    }
}

/// Does the second move bring what is already there?
fn is_undone(first: &Op<PReg>, second: &Op<PReg>) -> bool {
    match (first, second) {
        (Op::Mov { dst: a, src: b }, Op::Mov { dst: c, src: d }) => {
            let plain = |operand: &RegMem<PReg>| !matches!(operand, RegMem::Mem(_));
            plain(a) && plain(b) && ((a, b) == (d, c) || (a, b) == (c, d))
        }
        _ => false,
    }
}

/// A copy and what is added to it, as one instruction.
fn sum(first: &Op<PReg>, second: &Op<PReg>) -> Option<Op<PReg>> {
    let Op::Mov { dst: RegMem::Reg(copy), src: RegMem::Reg(from) } = first else { return None };
    let is_copy = |dst: &RegMem<PReg>| *dst == RegMem::Reg(*copy);
    let lea = |index: Option<(PReg, u8)>, disp| {
        Some(Op::Lea { width: Width::W64, dst: *copy, src: Address { base: Some(*from), index, disp } })
    };
    match second {
        Op::Alu { op: AluOp::Add, width: Width::W64, dst, src: RegMemImm::Reg(src) } if is_copy(dst) => {
            // Added to itself, the copy is doubled.
            lea(Some((if src == copy { *from } else { *src }, 1)), 0)
        }
        Op::Alu { op: AluOp::Add, width: Width::W64, dst, src: RegMemImm::Imm(value) } if is_copy(dst) => {
            lea(None, i32::try_from(*value).ok()?)
        }
        Op::Alu { op: AluOp::Sub, width: Width::W64, dst, src: RegMemImm::Imm(value) } if is_copy(dst) => {
            lea(None, i32::try_from(value.checked_neg()?).ok()?)
        }
        Op::Shift { op: ShiftOp::Shl, width: Width::W64, dst, count: Count::Imm(1) } if is_copy(dst) => {
            lea(Some((*from, 1)), 0)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::support::span::Span;
    use cranelift_entity::{EntityRef, PrimaryMap};

    fn improved(ops: Vec<Op<PReg>>, term: Terminator<PReg>) -> Vec<Op<PReg>> {
        let insts = ops.into_iter().map(|op| Inst { op, span: Span::NONE, origin: None.into() }).collect();
        let mut function = Function {
            name: "f".to_string(),
            symbol: "atl_f".to_string(),
            incoming: 0,
            layout: Vec::new(),
            blocks: PrimaryMap::new(),
            vregs: PrimaryMap::new(),
            frame: Frame::default(),
        };
        let block = function.blocks.push(BlockData { insts, term, term_span: Span::NONE, loop_depth: 0 });
        function.layout.push(block);
        run(&mut function);
        function.blocks[block].insts.iter().map(|inst| inst.op.clone()).collect()
    }

    fn mov(dst: PReg, src: PReg) -> Op<PReg> {
        Op::Mov { dst: RegMem::Reg(dst), src: RegMem::Reg(src) }
    }

    fn add(dst: PReg, src: PReg) -> Op<PReg> {
        Op::Alu { op: AluOp::Add, width: Width::W64, dst: RegMem::Reg(dst), src: RegMemImm::Reg(src) }
    }

    const RETURN: Terminator<PReg> = Terminator::Return { value: None };

    #[test]
    fn moves_that_move_nothing_go() {
        let (a, b) = (PReg::RAX, PReg::RBX);
        assert_eq!(improved(vec![mov(a, a), mov(a, b), mov(b, a)], RETURN), [mov(a, b)]);
        assert_eq!(improved(vec![mov(a, b), mov(a, b)], RETURN), [mov(a, b)]);
        let (slot, other) = (RegMem::Slot(Slot::Spill(0)), RegMem::Slot(Slot::Spill(1)));
        let spill = Op::Mov { dst: slot, src: RegMem::Reg(a) };
        let reload = |from| Op::Mov { dst: RegMem::Reg(a), src: from };
        assert_eq!(improved(vec![spill.clone(), reload(slot)], RETURN), [spill.clone()]);
        assert_eq!(improved(vec![spill.clone(), reload(other)], RETURN), [spill, reload(other)]);
    }

    #[test]
    fn a_copy_and_a_sum_are_one_address() {
        let (a, b, d) = (PReg::RAX, PReg::RBX, PReg::RDX);
        let lea = |index, disp| Op::Lea { width: Width::W64, dst: d, src: Address { base: Some(a), index, disp } };
        let sub = Op::Alu { op: AluOp::Sub, width: Width::W64, dst: RegMem::Reg(d), src: RegMemImm::Imm(8) };
        assert_eq!(improved(vec![mov(d, a), add(d, b)], RETURN), [lea(Some((b, 1)), 0)]);
        assert_eq!(improved(vec![mov(d, a), add(d, d)], RETURN), [lea(Some((a, 1)), 0)]);
        assert_eq!(improved(vec![mov(d, a), sub.clone()], RETURN), [lea(None, -8)]);
        // The flags of the sum are read, or the copy is of something else.
        let set = Op::Set { cond: Cond::E, dst: b };
        let kept = vec![mov(d, a), sub.clone(), set];
        assert_eq!(improved(kept.clone(), RETURN), kept);
        let branch = Terminator::Branch { cond: Cond::E, then: Block::new(0), els: Block::new(0) };
        assert_eq!(improved(vec![mov(d, a), sub.clone()], branch.clone()), [mov(d, a), sub.clone()]);
        // Flags from before the sum are not its flags: they would have been lost.
        let test = Op::Test { width: Width::W64, lhs: RegMem::Reg(a), rhs: RegMemImm::Reg(a) };
        assert_eq!(improved(vec![mov(d, a), sub, test.clone()], branch), [lea(None, -8), test]);
        assert_eq!(improved(vec![mov(b, a), add(d, b)], RETURN), [mov(b, a), add(d, b)]);
    }
}
