//! Copy propagation: replaces every copy by what it copies, and every redundant φ by the one value it can have.
//!
//! A set of φs is redundant if, among all their operands, only one value is not a φ of the set: they all are that value.
//! Such sets are found among the strongly connected components of the φs (Braun, Buchwald, Hack, Leißa, Mallon & Zwinkau,
//! "Simple and efficient construction of static single assignment form", 2013, section 3.2): components in topological
//! order, operands first; where a component has several outer operands, the φs inside it that have none are looked at again.
//!
//! ```text
//! b1: %3 = phi [%1 from b0, %4 from b2]
//! b2: %4 = phi [%3 from b1, %1 from b3]    →    (every use of %3, %4 and %5 is %1)
//!     %5 = copy %4
//! ```
//!
//! **In**: SSA. **Out**: SSA without copies and without redundant φs. Cost: near-linear (times the depth to which
//! components with several outer operands nest, which is that of loops).

use super::fuel::Fuel;
use super::renaming::Renaming;
use crate::ir::{Block, Function, Op, Operand, Value};
use cranelift_entity::{EntitySet, SecondaryMap};

/// Removes copies and redundant φs; gives their number.
pub fn run(function: &mut Function, fuel: &mut Fuel) -> usize {
    let mut renaming = Renaming::new();
    copies(function, &mut renaming, fuel);
    redundant_phis(function, &mut renaming, fuel);
    renaming.apply(function);
    renaming.count()
}

/// Replaces the results of copies.
fn copies(function: &mut Function, renaming: &mut Renaming, fuel: &mut Fuel) {
    for index in 0..function.layout.len() {
        let block = function.layout[index];
        let insts = std::mem::take(&mut function.blocks[block].insts);
        let mut kept = Vec::with_capacity(insts.len());
        for inst in insts {
            let data = &function.insts[inst];
            match (&data.op, data.result.expand()) {
                (Op::Copy(source), Some(result)) if fuel.take() => {
                    let source = *source;
                    renaming.replace(function, result, source);
                }
                _ => kept.push(inst),
            }
        }
        function.blocks[block].insts = kept;
    }
}

/// The φs of a function with their operands.
struct Phis {
    /// For each φ its number, from 1; 0 for other values.
    number: SecondaryMap<Value, u32>,
    /// The φs, in the order of their numbers.
    values: Vec<Value>,
    /// Their operands, one after the other.
    operands: Vec<Operand>,
    /// Where the operands of each φ start, and the end.
    starts: Vec<u32>,
}

impl Phis {
    /// The operands of the φ with this number (from 0).
    fn operands(&self, phi: u32) -> &[Operand] {
        &self.operands[self.starts[phi as usize] as usize..self.starts[phi as usize + 1] as usize]
    }

    /// The number (from 0) of the φ that the operand is, if it is one.
    fn number(&self, operand: Operand) -> Option<u32> {
        self.number[operand.value()?].checked_sub(1)
    }
}

/// Lists φs and operands, with copies already replaced.
fn collect(function: &Function, renaming: &mut Renaming) -> Phis {
    let mut number: SecondaryMap<Value, u32> = SecondaryMap::with_capacity(function.values.len());
    let mut first: SecondaryMap<Block, u32> = SecondaryMap::with_capacity(function.blocks.len());
    let mut values = Vec::new();
    for block in &function.layout {
        first[*block] = values.len() as u32;
        for param in &function.blocks[*block].params {
            values.push(*param);
            number[*param] = values.len() as u32;
        }
    }
    let mut starts = vec![0u32; values.len() + 1];
    let each = |visit: &mut dyn FnMut(usize, Operand)| {
        for block in &function.layout {
            for edge in function.blocks[*block].term.edges() {
                for (index, arg) in edge.args.iter().enumerate() {
                    visit(first[edge.target] as usize + index, *arg);
                }
            }
        }
    };
    each(&mut |phi, _| starts[phi + 1] += 1);
    for phi in 0..values.len() {
        starts[phi + 1] += starts[phi];
    }
    let mut fill = starts.clone();
    let mut operands = vec![Operand::Int(0); *starts.last().expect("it has the end") as usize];
    each(&mut |phi, arg| {
        operands[fill[phi] as usize] = renaming.resolve(arg);
        fill[phi] += 1;
    });
    Phis { number, values, operands, starts }
}

/// Replaces redundant φs and drops them.
fn redundant_phis(function: &mut Function, renaming: &mut Renaming, fuel: &mut Fuel) {
    let phis = collect(function, renaming);
    let count = phis.values.len();
    // The set that each φ belongs to at the moment: 0 for those that are settled.
    let mut set = vec![1u32; count];
    let mut sets = 1;
    let mut removed: EntitySet<Value> = EntitySet::with_capacity(function.values.len());
    // Sets still to look at, the next last.
    let mut work: Vec<Vec<u32>> = if count == 0 { Vec::new() } else { vec![(0..count as u32).collect()] };
    while let Some(members) = work.pop() {
        let current = set[members[0] as usize];
        let mut later = Vec::new();
        for component in components(&phis, &members, &set, current) {
            sets += 1;
            component.iter().for_each(|phi| set[*phi as usize] = sets);
            let mut outer: Option<Operand> = None;
            let mut several = false;
            let mut inner = Vec::new();
            for phi in &component {
                let mut inside = true;
                for operand in phis.operands(*phi) {
                    if phis.number(*operand).is_some_and(|other| set[other as usize] == sets) {
                        continue;
                    }
                    inside = false;
                    let operand = renaming.resolve(*operand);
                    several |= outer.is_some_and(|known| known != operand);
                    outer = Some(operand);
                }
                if inside {
                    inner.push(*phi);
                }
            }
            match outer {
                // All of them or none: a part of them alone might still need the others.
                Some(operand) if !several && fuel.take() => {
                    for phi in &component {
                        let value = phis.values[*phi as usize];
                        removed.insert(value);
                        renaming.replace(function, value, operand);
                    }
                }
                Some(_) if !inner.is_empty() => {
                    sets += 1;
                    inner.iter().for_each(|phi| set[*phi as usize] = sets);
                    later.push(inner);
                }
                // Needed as they are, or (`None`) a loop that is never entered: nothing to replace by.
                Some(_) | None => {}
            }
        }
        work.append(&mut later);
    }
    if removed.is_empty() {
        return;
    }
    drop_phis(function, &removed);
}

/// The strongly connected components of the members, under "is an operand of"; operands come before those that read them
/// (Tarjan 1972, iterative).
fn components(phis: &Phis, members: &[u32], set: &[u32], current: u32) -> Vec<Vec<u32>> {
    const UNSEEN: u32 = u32::MAX;
    const CLOSED: u32 = u32::MAX - 1;
    let mut order: rustc_hash::FxHashMap<u32, u32> = rustc_hash::FxHashMap::default();
    order.reserve(members.len());
    let mut found = Vec::new();
    let mut pending: Vec<u32> = Vec::new();
    let mut stack: Vec<(u32, usize, u32)> = Vec::new();
    let mut count = 0;
    for root in members {
        if order.contains_key(root) {
            continue;
        }
        // A frame: the φ, how many operands are done, the lowest order reached from it.
        stack.push((*root, 0, count));
        order.insert(*root, count);
        pending.push(*root);
        count += 1;
        while let Some((phi, next, low)) = stack.last_mut() {
            match phis.operands(*phi).get(*next) {
                Some(operand) => {
                    *next += 1;
                    let Some(other) = phis.number(*operand) else { continue };
                    if set[other as usize] != current {
                        continue;
                    }
                    match order.get(&other).copied().unwrap_or(UNSEEN) {
                        UNSEEN => {
                            stack.push((other, 0, count));
                            order.insert(other, count);
                            pending.push(other);
                            count += 1;
                        }
                        CLOSED => {}
                        known => *low = (*low).min(known),
                    }
                }
                None => {
                    let (phi, _, low) = stack.pop().expect("it is the last");
                    if let Some((_, _, above)) = stack.last_mut() {
                        *above = (*above).min(low);
                    }
                    if low == order[&phi] {
                        let start = pending.iter().rposition(|other| *other == phi).expect("it was pushed");
                        let component = pending.split_off(start);
                        component.iter().for_each(|member| _ = order.insert(*member, CLOSED));
                        found.push(component);
                    }
                }
            }
        }
    }
    found
}

/// Drops φs from their blocks and their operands from the edges.
fn drop_phis(function: &mut Function, removed: &EntitySet<Value>) {
    let mut flags: SecondaryMap<Block, Option<Box<[bool]>>> = SecondaryMap::with_capacity(function.blocks.len());
    for block in &function.layout {
        let params = &function.blocks[*block].params;
        if params.iter().any(|param| removed.contains(*param)) {
            flags[*block] = Some(params.iter().map(|param| !removed.contains(*param)).collect());
        }
    }
    for block in &function.layout {
        let data = &mut function.blocks[*block];
        data.params.retain(|param| !removed.contains(*param));
        for edge in data.term.edges_mut() {
            if let Some(flags) = &flags[edge.target] {
                let mut flags = flags.iter();
                edge.args.retain(|_| *flags.next().expect("an argument for each φ"));
            }
        }
    }
}
