//! Faults put in on purpose into machine code: slips of selection (before allocation) and of allocation. See `mutants`.
//!
//! ```text
//! missing-spill-store:     mov [spill 0], rax     →     (nothing)         what is reloaded later is not there
//! ```
//!
//! **in**: machine code and the number of a site. **out**: the same code with the fault; false if there is no such site.
//! Cost: linear.

use super::mutants::{Make, Mutant, mutant};
use crate::support::span::Span;
use crate::x64::*;

pub(super) type VirtualMutation = fn(&mut Program<VReg>, usize) -> bool;
pub(super) type PhysicalMutation = fn(&mut Program<PReg>, usize) -> bool;

/// Slips of selection.
pub(super) static SELECTION: [Mutant; 12] = [
    mutant("wrong-condition", "a condition turned round", "isel", Make::Virtual(wrong_condition)),
    mutant("unsigned-condition", "an unsigned condition for a signed one", "isel", Make::Virtual(unsigned_condition)),
    mutant("reversed-sub", "a - b computed as b - a", "isel", Make::Virtual(reversed_sub)),
    mutant("dropped-trap", "a check left out", "isel", Make::Virtual(dropped_trap)),
    mutant("wrong-displacement", "an address off by one element", "isel", Make::Virtual(wrong_displacement)),
    mutant("wrong-scale", "an index scaled by half", "isel", Make::Virtual(wrong_scale)),
    mutant("wrong-magic", "a wrong multiplier for a division by a constant", "isel", Make::Virtual(wrong_magic)),
    mutant("narrow-compare", "a comparison of lower halves", "isel", Make::Virtual(narrow_compare)),
    mutant("wrong-shift", "a shift by one more", "isel", Make::Virtual(wrong_shift)),
    mutant("no-sign-extension", "a dividend extended by zeros", "isel", Make::Virtual(no_sign_extension)),
    mutant("swapped-arguments", "two arguments of a call exchanged", "isel", Make::Virtual(swapped_arguments)),
    mutant("lost-trap-position", "a check that reports another place", "isel", Make::Virtual(lost_trap_position)),
];

/// Slips of allocation.
pub(super) static ALLOCATION: [Mutant; 7] = [
    mutant("missing-spill-store", "a value not stored to its slot", "regalloc", Make::Physical(missing_spill_store)),
    mutant("wrong-spill-slot", "a value loaded from another's slot", "regalloc", Make::Physical(wrong_spill_slot)),
    mutant("missing-move", "a move between registers left out", "regalloc", Make::Physical(missing_move)),
    mutant("swapped-moves", "two moves in the wrong order", "regalloc", Make::Physical(swapped_moves)),
    mutant(
        "clobbered-register",
        "a value kept across a call in a register that the call overwrites",
        "regalloc",
        Make::Physical(clobbered_register),
    ),
    mutant(
        "unsaved-register",
        "a callee-saved register used and not saved",
        "regalloc",
        Make::Physical(unsaved_register),
    ),
    mutant("wrong-source", "a move from another register", "regalloc", Make::Physical(wrong_source)),
];

/// Changes the instruction at the site, counted over those that `pick` takes.
fn at<R: Reg>(
    program: &mut Program<R>,
    site: usize,
    pick: impl Fn(&Inst<R>) -> bool,
    change: impl FnOnce(&mut Vec<Inst<R>>, usize),
) -> bool {
    let mut count = 0;
    for function in program.functions.values_mut() {
        for block in function.layout.clone() {
            let insts = &mut function.blocks[block].insts;
            for index in 0..insts.len() {
                if pick(&insts[index]) {
                    if count == site {
                        change(insts, index);
                        return true;
                    }
                    count += 1;
                }
            }
        }
    }
    false
}

fn change_branch<R: Reg>(program: &mut Program<R>, site: usize, change: impl Fn(Cond) -> Option<Cond>) -> bool {
    let mut count = 0;
    for function in program.functions.values_mut() {
        for block in function.layout.clone() {
            if let Terminator::Branch { cond, .. } = &mut function.blocks[block].term
                && let Some(changed) = change(*cond)
            {
                if count == site {
                    *cond = changed;
                    return true;
                }
                count += 1;
            }
        }
    }
    false
}

fn wrong_condition(program: &mut Program<VReg>, site: usize) -> bool {
    change_branch(program, site, |cond| Some(cond.negate()))
}

fn unsigned_condition(program: &mut Program<VReg>, site: usize) -> bool {
    change_branch(program, site, |cond| match cond {
        Cond::L => Some(Cond::B),
        Cond::GE => Some(Cond::AE),
        Cond::LE => Some(Cond::BE),
        Cond::G => Some(Cond::A),
        Cond::O | Cond::NO | Cond::B | Cond::AE | Cond::E | Cond::NE | Cond::BE | Cond::A | Cond::S | Cond::NS => None,
    })
}

fn reversed_sub(program: &mut Program<VReg>, site: usize) -> bool {
    let pick =
        |inst: &Inst<VReg>| matches!(&inst.op, Op::Alu { op: AluOp::Sub, width: Width::W64, dst: RegMem::Reg(_), .. });
    at(program, site, pick, |insts, index| {
        if let Op::Alu { dst, .. } = insts[index].op {
            let negate = Inst { op: Op::Unary { op: UnaryOp::Neg, width: Width::W64, dst }, ..insts[index].clone() };
            insts.insert(index + 1, negate);
        }
    })
}

fn dropped_trap(program: &mut Program<VReg>, site: usize) -> bool {
    at(
        program,
        site,
        |inst| matches!(inst.op, Op::Trap { .. }),
        |insts, index| {
            insts.remove(index);
        },
    )
}

fn address<R>(op: &mut Op<R>) -> Option<&mut Address<R>> {
    match op {
        Op::Load { src, .. } => Some(src),
        Op::Store { dst, .. } => Some(dst),
        _ => None,
    }
}

fn wrong_displacement(program: &mut Program<VReg>, site: usize) -> bool {
    let pick = |inst: &Inst<VReg>| matches!(inst.op, Op::Load { .. } | Op::Store { .. });
    at(program, site, pick, |insts, index| {
        if let Some(address) = address(&mut insts[index].op) {
            address.disp += 8;
        }
    })
}

fn wrong_scale(program: &mut Program<VReg>, site: usize) -> bool {
    let pick = |inst: &Inst<VReg>| match &inst.op {
        Op::Load { src: address, .. } | Op::Store { dst: address, .. } => matches!(address.index, Some((_, 8))),
        _ => false,
    };
    at(program, site, pick, |insts, index| {
        if let Some(Some((_, scale))) = address(&mut insts[index].op).map(|address| address.index.as_mut()) {
            *scale = 4;
        }
    })
}

fn wrong_magic(program: &mut Program<VReg>, site: usize) -> bool {
    let pick = |inst: &Inst<VReg>| matches!(inst.op, Op::Imm { value, .. } if value.unsigned_abs() > 1 << 40);
    at(program, site, pick, |insts, index| {
        if let Op::Imm { value, .. } = &mut insts[index].op {
            *value ^= 1 << 36;
        }
    })
}

fn narrow_compare(program: &mut Program<VReg>, site: usize) -> bool {
    let pick = |inst: &Inst<VReg>| matches!(inst.op, Op::Cmp { width: Width::W64, .. });
    at(program, site, pick, |insts, index| {
        if let Op::Cmp { width, .. } = &mut insts[index].op {
            *width = Width::W32;
        }
    })
}

fn wrong_shift(program: &mut Program<VReg>, site: usize) -> bool {
    let pick = |inst: &Inst<VReg>| matches!(inst.op, Op::Shift { count: Count::Imm(0..63), .. });
    at(program, site, pick, |insts, index| {
        if let Op::Shift { count: Count::Imm(count), .. } = &mut insts[index].op {
            *count += 1;
        }
    })
}

fn no_sign_extension(program: &mut Program<VReg>, site: usize) -> bool {
    at(
        program,
        site,
        |inst| matches!(inst.op, Op::SignExtend { .. }),
        |insts, index| {
            if let Op::SignExtend { hi, .. } = insts[index].op {
                insts[index].op = Op::Imm { dst: RegMem::Reg(hi), value: 0 };
            }
        },
    )
}

fn swapped_arguments(program: &mut Program<VReg>, site: usize) -> bool {
    let pick =
        |inst: &Inst<VReg>| matches!(&inst.op, Op::Parallel { moves } if moves.len() > 1 && moves[0].1 != moves[1].1);
    at(program, site, pick, |insts, index| {
        if let Op::Parallel { moves } = &mut insts[index].op {
            let first = moves[0].1;
            moves[0].1 = moves[1].1;
            moves[1].1 = first;
        }
    })
}

fn lost_trap_position(program: &mut Program<VReg>, site: usize) -> bool {
    at(program, site, |inst| matches!(inst.op, Op::Trap { .. }), |insts, index| insts[index].span = Span::new(0, 0))
}

fn missing_spill_store(program: &mut Program<PReg>, site: usize) -> bool {
    let pick = |inst: &Inst<PReg>| matches!(inst.op, Op::Mov { dst: RegMem::Slot(Slot::Spill(_)), .. });
    at(program, site, pick, |insts, index| {
        insts.remove(index);
    })
}

fn wrong_spill_slot(program: &mut Program<PReg>, site: usize) -> bool {
    let pick = |inst: &Inst<PReg>| matches!(inst.op, Op::Mov { src: RegMem::Slot(Slot::Spill(1..)), .. });
    at(program, site, pick, |insts, index| {
        if let Op::Mov { src: RegMem::Slot(Slot::Spill(number)), .. } = &mut insts[index].op {
            *number -= 1;
        }
    })
}

fn between_registers(inst: &Inst<PReg>) -> bool {
    matches!(&inst.op, Op::Mov { dst: RegMem::Reg(dst), src: RegMem::Reg(src) } if dst != src)
}

fn missing_move(program: &mut Program<PReg>, site: usize) -> bool {
    at(program, site, between_registers, |insts, index| {
        insts.remove(index);
    })
}

fn swapped_moves(program: &mut Program<PReg>, site: usize) -> bool {
    let mut count = 0;
    for function in program.functions.values_mut() {
        for block in function.layout.clone() {
            let insts = &mut function.blocks[block].insts;
            for second in 1..insts.len() {
                let (first, other) = (&insts[second - 1], &insts[second]);
                // The second overwrites what the first reads.
                let depends = match (&first.op, &other.op) {
                    (Op::Mov { src, .. }, Op::Mov { dst, .. }) => src == dst,
                    (_, _) => false,
                };
                if depends {
                    if count == site {
                        insts.swap(second - 1, second);
                        return true;
                    }
                    count += 1;
                }
            }
        }
    }
    false
}

fn clobbered_register(program: &mut Program<PReg>, site: usize) -> bool {
    let mut count = 0;
    for function in program.functions.values_mut() {
        if !function.frame.calls {
            continue;
        }
        for register in function.frame.saved.iter() {
            if count == site {
                let rename = |reg: PReg| if reg == register { PReg::R11 } else { reg };
                for block in function.layout.clone() {
                    let data = &mut function.blocks[block];
                    for inst in &mut data.insts {
                        inst.op = inst.op.map(|reg, _, _| RegMem::Reg(rename(reg)));
                    }
                    data.term = data.term.map(rename);
                }
                function.frame.saved = function.frame.saved.without(register);
                return true;
            }
            count += 1;
        }
    }
    false
}

fn unsaved_register(program: &mut Program<PReg>, site: usize) -> bool {
    let functions = program.functions.values_mut();
    let mut sites = functions.flat_map(|function| {
        let saved = function.frame.saved;
        let frame = std::iter::once(&mut function.frame);
        frame.filter_map(move |frame| saved.iter().next().map(|register| (frame, register)))
    });
    match sites.nth(site) {
        Some((frame, register)) => {
            frame.saved = frame.saved.without(register);
            true
        }
        None => false,
    }
}

fn wrong_source(program: &mut Program<PReg>, site: usize) -> bool {
    at(program, site, between_registers, |insts, index| {
        if let Op::Mov { dst: RegMem::Reg(dst), src: RegMem::Reg(src) } = &mut insts[index].op {
            let candidates = [PReg::RAX, PReg::RDI, PReg::RSI];
            if let Some(other) = candidates.into_iter().find(|other| other != src && other != dst) {
                *src = other;
            }
        }
    })
}
