//! Turns moves that happen at once into machine code.
//!
//! The order comes from `graph::parallel_copy`; here each step becomes instructions that keep the flags. A cycle goes
//! through a register that is free at that place, or, if there is none, by `xchg` (registers only) or over the stack. A
//! move from slot to slot goes through a free register or over the stack, and so does a constant too wide for a store.
//!
//! ```text
//! rax, rcx = rcx, rax      mov rdx, rax        or  xchg rax, rcx
//!                          mov rax, rcx
//!                          mov rcx, rdx
//! ```
//!
//! **in**: moves with distinct destinations, and the registers that nothing needs there. **out**: instructions with the
//! same effect; only destinations and free registers change. Cost: linear.

use super::coalesce::Constant;
use super::resolve::Location;
use crate::graph::parallel_copy::{self, Source, Step};
use crate::x64::{Op, PReg, RegMem, RegSet, Slot};

/// A place that a move reads or writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
enum Place {
    Reg(PReg),
    Slot(Slot),
    /// On top of the stack.
    Stack,
}

type Steps = Vec<Step<Place, Constant>>;

/// Emits the moves, from the second to the first of each pair. `free` are registers that hold nothing there; if there are
/// none, each of `others` holds something before the moves or is written by them.
pub fn emit(moves: &[(Location, Location)], free: RegSet, others: RegSet, out: &mut impl FnMut(Op<PReg>)) {
    if let [(to, from)] = moves
        && to == from
    {
        return;
    }
    let moves: Vec<(Place, Source<Place, Constant>)> = moves
        .iter()
        .map(|(to, from)| {
            let from = match from {
                Location::Constant(constant) => Source::Constant(*constant),
                Location::Reg(_) | Location::Slot(_) => Source::Location(place(*from)),
            };
            (place(*to), from)
        })
        .collect();
    for (to, from) in &moves {
        for at in [Some(*to), if let Source::Location(from) = from { Some(*from) } else { None }].into_iter().flatten()
        {
            let Place::Reg(reg) = at else { continue };
            assert!(!free.contains(reg), "{reg} is said to be free where a move needs it");
        }
    }
    let first = free.iter().next();
    let steps = parallel_copy::sequence(&moves, |_| first.map_or(Place::Stack, Place::Reg));
    // Constants come last: a register that one of them is made in is free until then, as nothing is read any more.
    let last = steps.iter().enumerate().rev().find_map(|(index, step)| match step {
        Step::Move { dst: Place::Reg(reg), src: Source::Constant(_) } => Some((index, *reg)),
        Step::Move { .. } | Step::Rescue { .. } => None,
    });
    let mut at = 0;
    // The free register that holds a rescued value, until that is read.
    let mut busy: Option<PReg> = None;
    while at < steps.len() {
        match steps[at] {
            Step::Rescue { temp: Place::Reg(temp), victim } => {
                busy = Some(temp);
                out(Op::Mov { dst: RegMem::Reg(temp), src: operand(victim) });
            }
            Step::Rescue { temp: Place::Stack, victim } => {
                if let Some(end) = exchange(&steps, at, out) {
                    at = end;
                    continue;
                }
                out(Op::Push { src: operand(victim) });
            }
            Step::Rescue { temp: Place::Slot(_), .. } => panic!("values are rescued into registers or onto the stack"),
            Step::Move { dst, src: Source::Location(Place::Stack) } => out(Op::Pop { dst: operand(dst) }),
            Step::Move { dst, src: Source::Location(src) } => {
                let spare = free.iter().find(|reg| Some(*reg) != busy);
                move_value(dst, src, spare, out);
                if busy.is_some_and(|busy| src == Place::Reg(busy)) {
                    busy = None;
                }
            }
            Step::Move { dst, src: Source::Constant(constant) } => {
                let spare = last.filter(|(index, _)| at < *index).map(|(_, reg)| reg).or(first);
                move_constant(dst, constant, spare, others, out);
            }
        }
        at += 1;
    }
}

fn place(location: Location) -> Place {
    match location {
        Location::Reg(reg) => Place::Reg(reg),
        Location::Slot(slot) => Place::Slot(slot),
        Location::Constant(constant) => panic!("the constant {constant:?} is no destination"),
    }
}

fn operand(place: Place) -> RegMem<PReg> {
    match place {
        Place::Reg(reg) => RegMem::Reg(reg),
        Place::Slot(slot) => RegMem::Slot(slot),
        Place::Stack => panic!("the top of the stack is no operand"),
    }
}

/// Emits a cycle of registers as exchanges, if the steps from `at` are one; the step behind it.
fn exchange(steps: &Steps, at: usize, out: &mut impl FnMut(Op<PReg>)) -> Option<usize> {
    let mut pairs = Vec::new();
    let mut index = at + 1;
    loop {
        match steps.get(index)? {
            Step::Move { dst: Place::Reg(_), src: Source::Location(Place::Stack) } => break,
            Step::Move { dst: Place::Reg(dst), src: Source::Location(Place::Reg(src)) } => pairs.push((*dst, *src)),
            Step::Move { .. } | Step::Rescue { .. } => return None,
        }
        index += 1;
    }
    // Each exchange puts one register right and hands the rescued value on to the next of the cycle.
    pairs.into_iter().for_each(|(a, b)| out(Op::Xchg { a, b }));
    Some(index + 1)
}

fn move_value(dst: Place, src: Place, spare: Option<PReg>, out: &mut impl FnMut(Op<PReg>)) {
    match (dst, src, spare) {
        (Place::Slot(_), Place::Slot(_), Some(spare)) => {
            out(Op::Mov { dst: RegMem::Reg(spare), src: operand(src) });
            out(Op::Mov { dst: operand(dst), src: RegMem::Reg(spare) });
        }
        (Place::Slot(_), Place::Slot(_), None) => {
            out(Op::Push { src: operand(src) });
            out(Op::Pop { dst: operand(dst) });
        }
        _ => out(Op::Mov { dst: operand(dst), src: operand(src) }),
    }
}

fn move_constant(dst: Place, constant: Constant, spare: Option<PReg>, others: RegSet, out: &mut impl FnMut(Op<PReg>)) {
    match (dst, constant, spare) {
        (Place::Reg(reg), _, _) => out(make(reg, constant)),
        (Place::Slot(_), Constant::Imm(value), _) if i32::try_from(value).is_ok() => {
            out(Op::Imm { dst: operand(dst), value });
        }
        (Place::Slot(_), _, Some(spare)) => {
            out(make(spare, constant));
            out(Op::Mov { dst: operand(dst), src: RegMem::Reg(spare) });
        }
        (Place::Slot(_), _, None) => {
            let lent = others.iter().next().expect("there are registers");
            out(Op::Push { src: RegMem::Reg(lent) });
            out(make(lent, constant));
            out(Op::Mov { dst: operand(dst), src: RegMem::Reg(lent) });
            out(Op::Pop { dst: RegMem::Reg(lent) });
        }
        (Place::Stack, _, _) => panic!("the top of the stack is no destination"),
    }
}

/// Makes a constant in a register.
pub fn make(reg: PReg, constant: Constant) -> Op<PReg> {
    match constant {
        Constant::Imm(value) => Op::Imm { dst: RegMem::Reg(reg), value },
        Constant::Str(string) => Op::StrAddress { dst: reg, string },
    }
}
