//! Inlining: puts the body of a function in the place of its call.
//!
//! Bottom-up over the strongly connected components of the call graph, so that a callee has done its own inlining before
//! its callers look at it. Small functions are inlined everywhere, larger ones where they are called from one place
//! only; a caller grows to a limit. A function that calls itself is unfolded into itself a little, which saves part of its
//! calls. Instructions keep their place in the source, so errors name the same positions.
//!
//! ```text
//! b0: %1 = call inc(%0)          b0: jump b1(%0)
//!     print %1             →     b1: %2 = phi n [%0 from b0]
//!                                    %3 = int %2 + 1
//!                                    jump b2(%3)
//!                                b2: %1 = phi [%3 from b1]
//!                                    print %1
//! ```
//!
//! **In**: SSA. **Out**: SSA; may have redundant φs. Functions that are no longer called stay in the program. Cost: linear in
//! the size of the result.

use super::fuel::Fuel;
use super::summaries::components;
use crate::ir::{
    Block, Edge, FuncId, Function, Inst, Op, Operand, Program, Role, Terminator, Value, Variable, VariableData,
};
use cranelift_entity::{EntitySet, SecondaryMap};
use rustc_hash::{FxHashMap, FxHashSet};

/// The size (instructions and blocks) up to which a function is inlined everywhere.
const SMALL: usize = 40;

/// The size up to which one is inlined where it is called from one place only.
const ONCE: usize = 400;

/// The size up to which a caller grows.
const CALLER: usize = 2_000;

/// The size up to which a function that calls itself is unfolded into itself.
const UNFOLDED: usize = 300;

/// The size of a body that is worth unfolding: in larger ones the call itself matters little.
const UNFOLDABLE: usize = 28;

/// How many levels deep at most.
const LEVELS: usize = 3;

/// Inlines calls; gives their number.
pub fn run(program: &mut Program, fuel: &mut Fuel) -> usize {
    let mut calls: SecondaryMap<FuncId, Vec<FuncId>> = SecondaryMap::with_capacity(program.functions.len());
    let mut times: SecondaryMap<FuncId, u32> = SecondaryMap::with_capacity(program.functions.len());
    for (id, function) in program.functions.iter() {
        let mut known: EntitySet<FuncId> = EntitySet::new();
        for (_, _, callee) in call_sites(function) {
            times[callee] += 1;
            if known.insert(callee) {
                calls[id].push(callee);
            }
        }
    }
    let order = components(program, &calls);
    let mut component: SecondaryMap<FuncId, usize> = SecondaryMap::with_capacity(program.functions.len());
    for (number, members) in order.iter().enumerate() {
        members.iter().for_each(|member| component[*member] = number);
    }
    let mut changes = 0;
    for caller in order.iter().flatten() {
        changes += into_caller(program, *caller, &component, &times, fuel);
        changes += unfold(program, *caller, fuel);
    }
    changes
}

/// Instructions and blocks of a function.
fn size(function: &Function) -> usize {
    function.layout.iter().map(|block| 1 + function.blocks[*block].insts.len()).sum()
}

/// The calls of a function: block, instruction, callee.
fn call_sites(function: &Function) -> Vec<(Block, Inst, FuncId)> {
    let mut found = Vec::new();
    for block in &function.layout {
        for inst in &function.blocks[*block].insts {
            if let Op::Call { callee, .. } = &function.insts[*inst].op {
                found.push((*block, *inst, *callee));
            }
        }
    }
    found
}

/// Inlines calls of other components' functions into a caller.
fn into_caller(
    program: &mut Program,
    caller: FuncId,
    component: &SecondaryMap<FuncId, usize>,
    times: &SecondaryMap<FuncId, u32>,
    fuel: &mut Fuel,
) -> usize {
    let mut chosen = Vec::new();
    let mut total = size(&program.functions[caller]);
    let limit = CALLER.max(total + total / 4);
    for (_, inst, callee) in call_sites(&program.functions[caller]) {
        if component[callee] == component[caller] {
            continue;
        }
        let cost = size(&program.functions[callee]);
        let allowed = if times[callee] == 1 { ONCE } else { SMALL };
        if cost <= allowed && total + cost <= limit && fuel.take() {
            total += cost;
            chosen.push((inst, callee));
        }
    }
    splice(program, caller, &chosen, None)
}

/// Unfolds calls of a function to itself, some levels deep: what an unfolded body calls is unfolded in turn.
fn unfold(program: &mut Program, id: FuncId, fuel: &mut Fuel) -> usize {
    let body = program.functions[id].clone();
    let cost = size(&body);
    let makes_arrays = body.insts.values().any(|data| matches!(data.op, Op::Array { .. }));
    if makes_arrays || cost > UNFOLDABLE {
        return 0;
    }
    let mut changes = 0;
    for _ in 0..LEVELS {
        let sites = call_sites(&program.functions[id]).into_iter().filter(|(_, _, callee)| *callee == id);
        let sites: Vec<(Inst, FuncId)> = sites.map(|(_, inst, callee)| (inst, callee)).collect();
        if size(&program.functions[id]) + cost * sites.len() > UNFOLDED {
            break;
        }
        let chosen: Vec<(Inst, FuncId)> = sites.into_iter().filter(|_| fuel.take()).collect();
        if chosen.is_empty() {
            break;
        }
        changes += splice(program, id, &chosen, Some(&body));
    }
    changes
}

/// Replaces the chosen calls of a caller by the bodies of their callees; `itself` is the body that it has for itself.
fn splice(program: &mut Program, caller: FuncId, chosen: &[(Inst, FuncId)], itself: Option<&Function>) -> usize {
    if chosen.is_empty() {
        return 0;
    }
    let callee_of: FxHashMap<Inst, FuncId> = chosen.iter().copied().collect();
    // The caller is changed as a copy, so that callees can be read.
    let mut function = program.functions[caller].clone();
    let mut variables = Variables::of(&function);
    let mut layout = Vec::with_capacity(function.layout.len());
    for original in std::mem::take(&mut function.layout) {
        layout.push(original);
        let insts = std::mem::take(&mut function.blocks[original].insts);
        let mut block = original;
        for inst in insts {
            match callee_of.get(&inst) {
                None => function.blocks[block].insts.push(inst),
                Some(callee) => {
                    let body = itself.filter(|_| *callee == caller).unwrap_or(&program.functions[*callee]);
                    block = inline_call(&mut function, block, inst, *callee, body, &mut variables, &mut layout);
                }
            }
        }
    }
    function.layout = layout;
    program.functions[caller] = function;
    chosen.len()
}

/// The caller's variables, and those that stand for a callee's.
struct Variables {
    names: FxHashSet<String>,
    copies: FxHashMap<(FuncId, Variable), Variable>,
}

impl Variables {
    fn of(function: &Function) -> Variables {
        Variables {
            names: function.variables.values().map(|variable| variable.name.clone()).collect(),
            copies: FxHashMap::default(),
        }
    }

    /// The caller's variable that stands for one of a callee.
    fn copy(&mut self, function: &mut Function, callee: FuncId, body: &Function, variable: Variable) -> Variable {
        if let Some(known) = self.copies.get(&(callee, variable)) {
            return *known;
        }
        let data = &body.variables[variable];
        let mut name = data.name.clone();
        let mut number = 1;
        while !self.names.insert(name.clone()) {
            name = format!("{}.{number}", data.name);
            number += 1;
        }
        let new = function.variables.push(VariableData { name, ..data.clone() });
        self.copies.insert((callee, variable), new);
        new
    }
}

/// Puts the callee's body behind what `block` has so far; gives the block that goes on behind it.
fn inline_call(
    function: &mut Function,
    block: Block,
    call: Inst,
    callee: FuncId,
    body: &Function,
    variables: &mut Variables,
    layout: &mut Vec<Block>,
) -> Block {
    let Op::Call { args, .. } = &function.insts[call].op else { panic!("{call} is a call") };
    let args = args.clone();
    let span = function.insts[call].span;
    let rest = function.make_block(Role::InlineEnd);
    let mut values: SecondaryMap<Value, Option<Operand>> = SecondaryMap::with_capacity(body.values.len());
    for (param, arg) in body.params.iter().zip(args) {
        values[*param] = Some(arg);
    }
    let mut blocks: SecondaryMap<Block, Option<Block>> = SecondaryMap::with_capacity(body.blocks.len());
    for old in &body.layout {
        let role = match body.blocks[*old].role {
            Role::Entry => Role::Other,
            role => role,
        };
        let new = function.make_block(role);
        blocks[*old] = Some(new);
        layout.push(new);
    }
    layout.push(rest);
    // All values first, since φs and blocks out of order read what comes later.
    let mut copy_value = |function: &mut Function, value: Value| {
        let data = &body.values[value];
        let variable = data.variable.expand().map(|variable| variables.copy(function, callee, body, variable));
        let new = function.make_value(data.ty, variable);
        values[value] = Some(new.into());
        new
    };
    for old in &body.layout {
        let new = blocks[*old].expect("every block has its copy");
        for param in &body.blocks[*old].params {
            let param = copy_value(function, *param);
            function.blocks[new].params.push(param);
        }
        for inst in &body.blocks[*old].insts {
            let data = &body.insts[*inst];
            let result = data.result.expand().map(|result| copy_value(function, result));
            let inst = function.make_inst(data.op.clone(), result, data.span);
            function.blocks[new].insts.push(inst);
        }
    }
    let renamed = |operand: &mut Operand| {
        if let Operand::Value(value) = *operand {
            *operand = values[value].expect("every value that is read has its copy");
        }
    };
    for old in &body.layout {
        let new = blocks[*old].expect("every block has its copy");
        for index in 0..function.blocks[new].insts.len() {
            let inst = function.blocks[new].insts[index];
            function.insts[inst].op.for_each_operand_mut(renamed);
        }
        let mut term = body.blocks[*old].term.clone();
        term.for_each_operand_mut(renamed);
        term.edges_mut().for_each(|edge| edge.target = blocks[edge.target].expect("every block has its copy"));
        if let Terminator::Return(returned) = &term {
            let wanted = function.insts[call].result.is_some();
            term = Terminator::Jump(Edge { target: rest, args: returned.iter().copied().filter(|_| wanted).collect() });
        }
        function.blocks[new].term = term;
        function.blocks[new].term_span = body.blocks[*old].term_span;
    }
    // The rest goes on with the terminator of the block; the call's result is a φ of it.
    let term = std::mem::replace(
        &mut function.blocks[block].term,
        Terminator::Jump(Edge::to(blocks[body.entry()].expect("the entry has its copy"))),
    );
    let term_span = std::mem::replace(&mut function.blocks[block].term_span, span);
    let result = function.insts[call].result.expand();
    let data = &mut function.blocks[rest];
    data.term = term;
    data.term_span = term_span;
    data.params.extend(result);
    rest
}
