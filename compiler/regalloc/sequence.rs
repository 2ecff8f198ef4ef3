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

#[cfg(test)]
mod tests {
    use super::*;
    use rustc_hash::FxHashMap;

    /// Runs the instructions on a table of places; slots are named regardless of the depth of the stack, as in listings.
    fn simulate(ops: &[Op<PReg>], held: &mut FxHashMap<RegMem<PReg>, i64>) {
        let mut stack = Vec::new();
        for op in ops {
            match op {
                Op::Mov { dst, src } => {
                    assert!(matches!(dst, RegMem::Reg(_)) || matches!(src, RegMem::Reg(_)), "{op:?}");
                    let value = held[src];
                    held.insert(*dst, value);
                }
                Op::Imm { dst, value } => {
                    assert!(matches!(dst, RegMem::Reg(_)) || i32::try_from(*value).is_ok(), "{op:?}");
                    held.insert(*dst, *value);
                }
                Op::Push { src } => stack.push(held[src]),
                Op::Pop { dst } => {
                    held.insert(*dst, stack.pop().expect("something was pushed"));
                }
                Op::Xchg { a, b } => {
                    let (x, y) = (held[&RegMem::Reg(*a)], held[&RegMem::Reg(*b)]);
                    held.insert(RegMem::Reg(*a), y);
                    held.insert(RegMem::Reg(*b), x);
                }
                other => panic!("{other:?} is no move"),
            }
        }
        assert!(stack.is_empty());
    }

    #[test]
    fn every_destination_gets_its_source_and_nothing_else_changes() {
        let places: Vec<Location> = (0..8)
            .filter(|number| *number != 4)
            .map(|number| Location::Reg(PReg::new(number)))
            .chain((0..5).map(|number| Location::Slot(Slot::Spill(number))))
            .collect();
        let constants = [0, -1, i64::MAX, 1 << 40];
        let mut seed = 3u64;
        let mut pick = |below: usize| {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (seed >> 33) as usize % below
        };
        for _ in 0..20_000 {
            let mut moves: Vec<(Location, Location)> = Vec::new();
            for _ in 0..1 + pick(9) {
                let to = places[pick(places.len())];
                let from = match pick(4) {
                    0 => Location::Constant(Constant::Imm(constants[pick(4)])),
                    _ => places[pick(places.len())],
                };
                if moves.iter().all(|(other, _)| *other != to) {
                    moves.push((to, from));
                }
            }
            let unused: Vec<PReg> = places
                .iter()
                .filter(|place| moves.iter().all(|(to, from)| to != *place && from != *place))
                .filter_map(|place| if let Location::Reg(reg) = place { Some(*reg) } else { None })
                .collect();
            let free = RegSet::of(&unused[..unused.len().min(pick(3))]);
            let as_operand = |location: &Location| operand(place(*location));
            let mut held: FxHashMap<RegMem<PReg>, i64> =
                places.iter().enumerate().map(|(index, place)| (as_operand(place), 1000 + index as i64)).collect();
            let mut expected = held.clone();
            for (to, from) in &moves {
                let value = match from {
                    Location::Constant(Constant::Imm(value)) => *value,
                    other => held[&as_operand(other)],
                };
                expected.insert(as_operand(to), value);
            }
            let mut ops = Vec::new();
            emit(&moves, free, RegSet::of(&[PReg::RAX, PReg::RCX]), &mut |op| ops.push(op));
            simulate(&ops, &mut held);
            for reg in free.iter() {
                held.remove(&RegMem::Reg(reg));
                expected.remove(&RegMem::Reg(reg));
            }
            assert_eq!(held, expected, "{moves:?} became {ops:?}");
        }
    }
}
