//! Small improvements that only show once registers are physical.
//!
//! - Moves that move nothing go, among them a move back right behind a move.
//! - `mov d, a · add d, b` becomes `lea d, [a+b]` where nothing reads the flags: allocation has not made `d` and `a` one
//!   register, because `a` goes on.
//! - `lea d, [d+x]` becomes `add d, x` where nothing reads the flags.
//! - `test d, d` goes behind arithmetic that sets the same flags, and a comparison goes whose flags are still there.
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
        if !flags_live && let Some(op) = added(&inst.op) {
            inst.op = op;
            merged += 1;
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
    drop_comparisons(data);
    before - data.insts.len() + merged
}

/// So far back the instruction is looked for whose flags a comparison would set again.
const WINDOW: usize = 6;

/// Drops comparisons whose flags are there already.
fn drop_comparisons(data: &mut BlockData<PReg>) {
    let mut position = 0;
    let mut kept: Vec<Inst<PReg>> = Vec::with_capacity(data.insts.len());
    let mut insts = std::mem::take(&mut data.insts);
    while position < insts.len() {
        let inst = insts[position].clone();
        position += 1;
        match flags_before(&kept, &inst.op) {
            Before::Same => continue,
            // Only zero and sign are the same: less than zero is the sign.
            Before::Result => {
                let readers = readers(&insts, position, &data.term);
                if readers.iter().all(|cond| sign_only(*cond).is_some()) {
                    read_sign(&mut insts, position, &mut data.term);
                    continue;
                }
            }
            Before::Other => {}
        }
        kept.push(inst);
    }
    data.insts = kept;
}

/// What the flags in front of a comparison are.
#[derive(PartialEq, Eq)]
enum Before {
    /// What it would make them.
    Same,
    /// Zero and sign are; carry and overflow may differ.
    Result,
    Other,
}

fn flags_before(kept: &[Inst<PReg>], op: &Op<PReg>) -> Before {
    let tested = match op {
        Op::Test { width, lhs: RegMem::Reg(lhs), rhs: RegMemImm::Reg(rhs) } if lhs == rhs => Some((*width, *lhs)),
        Op::Cmp { width, lhs: RegMem::Reg(lhs), rhs: RegMemImm::Imm(0) } => Some((*width, *lhs)),
        Op::Test { .. } | Op::Cmp { .. } | Op::CmpByte { .. } => None,
        _ => return Before::Other,
    };
    let mut read = RegSet::EMPTY;
    let mut reads_memory = matches!(op, Op::CmpByte { .. });
    op.for_each_reg(|reg, _, _| read = read.with(reg));
    op.for_each_slot(|_| reads_memory = true);
    match op {
        Op::Test { lhs, rhs, .. } | Op::Cmp { lhs, rhs, .. } => {
            reads_memory |= matches!(lhs, RegMem::Mem(_)) || matches!(rhs, RegMemImm::Mem(_));
        }
        _ => {}
    }
    for inst in kept.iter().rev().take(WINDOW) {
        if inst.op.writes_flags() {
            return match (&inst.op, tested) {
                (found, _) if found == op => Before::Same,
                (Op::Alu { op, width, dst: RegMem::Reg(dst), .. }, Some(tested)) if (*width, *dst) == tested => {
                    match op {
                        AluOp::And | AluOp::Or | AluOp::Xor => Before::Same,
                        AluOp::Add | AluOp::Sub => Before::Result,
                    }
                }
                (Op::Unary { op: UnaryOp::Neg, width, dst: RegMem::Reg(dst) }, Some(tested))
                | (
                    Op::Shift { width: width @ Width::W64, dst: RegMem::Reg(dst), count: Count::Imm(1..), .. },
                    Some(tested),
                ) if (*width, *dst) == tested
                    && !matches!(inst.op, Op::Shift { op: ShiftOp::Rol | ShiftOp::Ror, .. }) =>
                {
                    Before::Result
                }
                _ => Before::Other,
            };
        }
        let mut lost = reads_memory && writes_memory(&inst.op);
        inst.op.for_each_reg(|reg, role, _| lost |= role != Role::Use && read.contains(reg));
        if lost {
            return Before::Other;
        }
    }
    Before::Other
}

/// May it write memory, slots included?
fn writes_memory(op: &Op<PReg>) -> bool {
    match op {
        Op::Mov { dst, .. } | Op::Imm { dst, .. } => !matches!(dst, RegMem::Reg(_)),
        Op::Store { .. } | Op::Push { .. } | Op::Pop { .. } | Op::Parallel { .. } | Op::Call { .. } => true,
        Op::Alu { dst, .. } | Op::Unary { dst, .. } | Op::Shift { dst, .. } => !matches!(dst, RegMem::Reg(_)),
        Op::StrAddress { .. }
        | Op::Load { .. }
        | Op::Lea { .. }
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
        | Op::Trap { .. }
        | Op::Xchg { .. } => false,
    }
}

/// The condition that asks the same of zero and sign alone, for flags of a comparison with zero.
fn sign_only(cond: Cond) -> Option<Cond> {
    match cond {
        Cond::E | Cond::NE | Cond::S | Cond::NS => Some(cond),
        Cond::L => Some(Cond::S),
        Cond::GE => Some(Cond::NS),
        Cond::O | Cond::NO | Cond::B | Cond::AE | Cond::BE | Cond::A | Cond::LE | Cond::G => None,
    }
}

/// The conditions that are asked from there on, until the flags change.
fn readers(insts: &[Inst<PReg>], from: usize, term: &Terminator<PReg>) -> Vec<Cond> {
    let mut result = Vec::new();
    for inst in &insts[from..] {
        match &inst.op {
            Op::Set { cond, .. } | Op::Cmov { cond, .. } | Op::Trap { cond: Some(cond), .. } => result.push(*cond),
            op if op.writes_flags() => return result,
            _ => {}
        }
    }
    if let Terminator::Branch { cond, .. } = term {
        result.push(*cond);
    }
    result
}

/// Lets the same ask of zero and sign alone.
fn read_sign(insts: &mut [Inst<PReg>], from: usize, term: &mut Terminator<PReg>) {
    for inst in &mut insts[from..] {
        match &mut inst.op {
            Op::Set { cond, .. } | Op::Cmov { cond, .. } | Op::Trap { cond: Some(cond), .. } => {
                *cond = sign_only(*cond).expect("every reader was asked");
            }
            op if op.writes_flags() => return,
            _ => {}
        }
    }
    if let Terminator::Branch { cond, .. } = term {
        *cond = sign_only(*cond).expect("every reader was asked");
    }
}

/// `lea` of a register into itself, as the sum that it is.
fn added(op: &Op<PReg>) -> Option<Op<PReg>> {
    let Op::Lea { width: Width::W64, dst, src } = op else { return None };
    let src = match *src {
        Address { base: Some(base), index: None, disp } if base == *dst => RegMemImm::Imm(i64::from(disp)),
        Address { base: Some(base), index: Some((index, 1)), disp: 0 } if base == *dst => RegMemImm::Reg(index),
        Address { base: Some(base), index: Some((index, 1)), disp: 0 } if index == *dst => RegMemImm::Reg(base),
        _ => return None,
    };
    Some(Op::Alu { op: AluOp::Add, width: Width::W64, dst: RegMem::Reg(*dst), src })
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
        assert_eq!(improved(vec![spill.clone(), reload(slot)], RETURN), vec![spill.clone()]);
        assert_eq!(improved(vec![spill.clone(), reload(other)], RETURN), [spill, reload(other)]);
    }

    #[test]
    fn sums_and_tests() {
        let (a, b, d) = (PReg::RAX, PReg::RBX, PReg::RDX);
        let lea = |base, index, disp| Op::Lea { width: Width::W64, dst: d, src: Address { base, index, disp } };
        let alu = |op, src| Op::Alu { op, width: Width::W64, dst: RegMem::Reg(d), src };
        let test = Op::Test { width: Width::W64, lhs: RegMem::Reg(d), rhs: RegMemImm::Reg(d) };
        let branch = |cond| Terminator::Branch { cond, then: Block::new(0), els: Block::new(0) };
        let minus = alu(AluOp::Add, RegMemImm::Imm(-1));
        assert_eq!(improved(vec![lea(Some(d), None, -1)], RETURN), vec![minus.clone()]);
        assert_eq!(improved(vec![lea(Some(a), Some((d, 1)), 0)], RETURN), [add(d, a)]);
        assert_eq!(improved(vec![lea(Some(d), None, -1)], branch(Cond::E)), [lea(Some(d), None, -1)]);
        // Zero is seen by the sum already; greater than zero is not, because the sum may have overflowed.
        assert_eq!(improved(vec![lea(Some(d), None, -1), test.clone()], branch(Cond::E)), vec![minus.clone()]);
        let kept = [minus.clone(), test.clone()];
        assert_eq!(improved(vec![lea(Some(d), None, -1), test.clone()], branch(Cond::G)), kept);
        let mask = alu(AluOp::And, RegMemImm::Imm(6));
        assert_eq!(improved(vec![mask.clone(), test.clone()], branch(Cond::G)), vec![mask.clone()]);
        // The same comparison again, with a move between; or its operand has changed.
        let again = vec![test.clone(), mov(a, b), test.clone()];
        assert_eq!(improved(again, branch(Cond::G)), [test.clone(), mov(a, b)]);
        let changed = vec![test.clone(), mov(d, b), test.clone()];
        assert_eq!(improved(changed.clone(), branch(Cond::G)), changed);
        // Less than zero becomes the sign, for all who ask.
        let set = |cond| Op::Set { cond, dst: b };
        let signs = improved(vec![minus.clone(), test, set(Cond::GE)], branch(Cond::L));
        assert_eq!(signs, [minus, set(Cond::NS)]);
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
