//! Call summaries: what each function of a program may do, seen from its callers.
//!
//! The effects of a function are those of its instructions and of the functions it calls, except that loads and stores in
//! arrays which it makes itself are its own affair (arrays cannot be returned). A function with a loop, or one that may
//! call itself again, may run forever. Effects only grow, so a worklist over callers reaches the least fixed point.
//!
//! **In**: any program. **Out**: one [`Effects`] per function. Cost: linear in instructions and calls (an effect has six
//! bits, so a function is visited at most six times).

use crate::ir::effects::{Effects, effects};
use crate::ir::{Block, FuncId, Function, Op, Program, Value};
use cranelift_entity::{EntitySet, SecondaryMap};

/// What the functions of a program may do.
#[derive(Clone, Default)]
pub struct Summaries {
    known: SecondaryMap<FuncId, Option<Effects>>,
}

impl Summaries {
    /// Nothing is known: a call may do anything.
    pub fn unknown() -> Summaries {
        Summaries::default()
    }

    /// Summarizes every function of the program.
    pub fn compute(program: &Program) -> Summaries {
        let mut found: SecondaryMap<FuncId, Effects> = SecondaryMap::with_capacity(program.functions.len());
        let mut callers: SecondaryMap<FuncId, Vec<FuncId>> = SecondaryMap::with_capacity(program.functions.len());
        let mut calls: SecondaryMap<FuncId, Vec<FuncId>> = SecondaryMap::with_capacity(program.functions.len());
        for (id, function) in program.functions.iter() {
            let mut called = EntitySet::new();
            found[id] = own_effects(function, |callee| {
                if called.insert(callee) {
                    callers[callee].push(id);
                    calls[id].push(callee);
                }
            });
        }
        for id in recursive(program, &calls) {
            found[id].diverges = true;
        }
        let mut work: Vec<FuncId> = program.functions.keys().collect();
        while let Some(callee) = work.pop() {
            for caller in &callers[callee] {
                let union = found[*caller].union(found[callee]);
                if union != found[*caller] {
                    found[*caller] = union;
                    work.push(*caller);
                }
            }
        }
        let mut known = SecondaryMap::with_capacity(program.functions.len());
        for id in program.functions.keys() {
            known[id] = Some(found[id]);
        }
        Summaries { known }
    }

    /// What an instruction may do, with what is known of the function it calls.
    pub fn effects(&self, op: &Op) -> Effects {
        match op {
            Op::Call { callee, .. } => self.known[*callee].unwrap_or(Effects::ANY),
            Op::Copy(_)
            | Op::Parallel(_)
            | Op::Binary { .. }
            | Op::Compare { .. }
            | Op::Unary { .. }
            | Op::Select { .. }
            | Op::Array { .. }
            | Op::Free(_)
            | Op::Len(_)
            | Op::Bounds { .. }
            | Op::Load { .. }
            | Op::Store { .. }
            | Op::Read
            | Op::Eof
            | Op::Print(_)
            | Op::Assert(_) => effects(op),
        }
    }
}

/// What the function's own instructions may do; tells `on_call` of each callee.
fn own_effects(function: &Function, mut on_call: impl FnMut(FuncId)) -> Effects {
    let mut own_arrays: EntitySet<Value> = EntitySet::new();
    for block in &function.layout {
        for inst in &function.blocks[*block].insts {
            let data = &function.insts[*inst];
            if let (Op::Array { .. }, Some(result)) = (&data.op, data.result.expand()) {
                own_arrays.insert(result);
            }
        }
    }
    let mut all = Effects { diverges: has_cycle(function), ..Effects::default() };
    for block in &function.layout {
        for inst in &function.blocks[*block].insts {
            let op = &function.insts[*inst].op;
            match op {
                Op::Call { callee, .. } => on_call(*callee),
                Op::Load { array, .. } | Op::Store { array, .. } | Op::Free(array)
                    if array.value().is_some_and(|array| own_arrays.contains(array)) => {}
                Op::Copy(_)
                | Op::Parallel(_)
                | Op::Binary { .. }
                | Op::Compare { .. }
                | Op::Unary { .. }
                | Op::Select { .. }
                | Op::Array { .. }
                | Op::Free(_)
                | Op::Len(_)
                | Op::Bounds { .. }
                | Op::Load { .. }
                | Op::Store { .. }
                | Op::Read
                | Op::Eof
                | Op::Print(_)
                | Op::Assert(_) => all = all.union(effects(op)),
            }
        }
    }
    all
}

/// Does the graph of blocks have a cycle?
fn has_cycle(function: &Function) -> bool {
    // Depth-first search; a block is open while its successors are being visited.
    let mut seen: EntitySet<Block> = EntitySet::with_capacity(function.blocks.len());
    let mut open: EntitySet<Block> = EntitySet::with_capacity(function.blocks.len());
    let mut stack = vec![(function.entry(), 0)];
    seen.insert(function.entry());
    open.insert(function.entry());
    while let Some((block, next)) = stack.last_mut() {
        match function.blocks[*block].term.edges().nth(*next) {
            Some(edge) => {
                *next += 1;
                if open.contains(edge.target) {
                    return true;
                }
                if seen.insert(edge.target) {
                    open.insert(edge.target);
                    stack.push((edge.target, 0));
                }
            }
            None => {
                open.remove(*block);
                stack.pop();
            }
        }
    }
    false
}

/// The functions that stand on a cycle of the call graph, or are so near to one that a search from them finds it: those
/// of each strongly connected component with more than one member, and those that call themselves (Tarjan, "Depth-first
/// search and linear graph algorithms", 1972).
fn recursive(program: &Program, calls: &SecondaryMap<FuncId, Vec<FuncId>>) -> Vec<FuncId> {
    components(program, calls)
        .into_iter()
        .filter(|component| component.len() > 1 || calls[component[0]].contains(&component[0]))
        .flatten()
        .collect()
}

/// The strongly connected components of the call graph, callees before callers.
pub fn components(program: &Program, calls: &SecondaryMap<FuncId, Vec<FuncId>>) -> Vec<Vec<FuncId>> {
    const UNSEEN: u32 = u32::MAX;
    let mut order: SecondaryMap<FuncId, u32> = SecondaryMap::with_default(UNSEEN);
    let mut low: SecondaryMap<FuncId, u32> = SecondaryMap::with_default(UNSEEN);
    let mut open: EntitySet<FuncId> = EntitySet::new();
    let mut pending: Vec<FuncId> = Vec::new();
    let mut found = Vec::new();
    let mut count = 0;
    for root in program.functions.keys() {
        if order[root] != UNSEEN {
            continue;
        }
        let mut stack = vec![(root, 0)];
        while let Some((id, next)) = stack.last_mut() {
            let id = *id;
            if *next == 0 {
                order[id] = count;
                low[id] = count;
                count += 1;
                pending.push(id);
                open.insert(id);
            }
            match calls[id].get(*next) {
                Some(callee) => {
                    *next += 1;
                    if order[*callee] == UNSEEN {
                        stack.push((*callee, 0));
                    } else if open.contains(*callee) {
                        low[id] = low[id].min(order[*callee]);
                    }
                }
                None => {
                    stack.pop();
                    if let Some((caller, _)) = stack.last() {
                        low[*caller] = low[*caller].min(low[id]);
                    }
                    if low[id] == order[id] {
                        let start = pending.iter().rposition(|other| *other == id).expect("it was pushed");
                        let component = pending.split_off(start);
                        component.iter().for_each(|member| _ = open.remove(*member));
                        found.push(component);
                    }
                }
            }
        }
    }
    found
}
