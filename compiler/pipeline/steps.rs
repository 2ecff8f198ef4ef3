//! The work of each required stage: takes the state that the stage list says it gets, calls the step of the compiler, and
//! wraps what that gives.
//!
//! A state of another language than a step's own cannot come here: the loop runs a stage only from its `from`.

use super::options::Options;
use super::run::{Context, Failure, each, link_object};
use super::state::State;
use crate::ir;
use crate::support::internal::Internal;
use crate::x64::{self, PReg, VReg};
use crate::{build, check, emit, isel as selection, regalloc as allocation, ssa as static_single_assignment, syntax};
use static_single_assignment::{boissinot, construct, destruct, isolate, rename as renaming};

fn wrong(stage: &str, state: &State) -> ! {
    panic!("the stage {stage} does not start from {:?}", state.language())
}

/// Source → tokens (and the tree, which the same reading gives).
pub fn tokens(state: State, context: &Context<'_>) -> Result<State, Failure> {
    match state {
        State::Source => Ok(State::Tokens(syntax::parse(context.source))),
        other => wrong("tokens", &other),
    }
}

/// Tokens → AST, unless there are syntax errors. With some, what is left of the tree is checked, so that one run tells as
/// much as it can.
pub fn ast(state: State, context: &Context<'_>) -> Result<State, Failure> {
    let State::Tokens(parsed) = state else { wrong("ast", &state) };
    match parsed.ast {
        Some(ast) if parsed.diagnostics.is_empty() => Ok(State::Ast(ast)),
        Some(ast) => {
            let mut diagnostics = parsed.diagnostics;
            diagnostics.extend(check::run(&ast, context.source).err().unwrap_or_default());
            diagnostics.sort_by_key(|diagnostic| diagnostic.primary.span);
            Err(Failure::Source(diagnostics))
        }
        None => Err(Failure::Source(parsed.diagnostics)),
    }
}

/// AST → HIR, unless names, types or control flow are wrong.
pub fn hir(state: State, context: &Context<'_>) -> Result<State, Failure> {
    let State::Ast(ast) = state else { wrong("hir", &state) };
    check::run(&ast, context.source).map(State::Hir).map_err(Failure::Source)
}

/// HIR → IR over variables.
pub fn cfg(state: State, _: &Context<'_>) -> Result<State, Failure> {
    let State::Hir(program) = state else { wrong("cfg", &state) };
    Ok(State::Ir(build::run(&program)))
}

/// IR over variables → SSA; gives the number of φs.
pub fn ssa(function: &mut ir::Function, options: &Options) -> usize {
    construct::run(function, &options.ssa);
    function.layout.iter().map(|block| function.blocks[*block].params.len()).sum()
}

/// SSA → SSA without critical edges that carry arguments; gives the number of blocks made.
pub fn split_edges(function: &mut ir::Function, _: &Options) -> usize {
    let before = function.blocks.len();
    static_single_assignment::split_edges::run(function);
    function.blocks.len() - before
}

/// Split SSA → parallel copies on edges; gives the number of instructions made.
pub fn parallel_copies(function: &mut ir::Function, _: &Options) -> usize {
    let before = function.insts.len();
    destruct::run(function);
    function.insts.len() - before
}

/// Parallel copies → copies in sequence; gives the number of instructions made.
pub fn sequence(function: &mut ir::Function, _: &Options) -> usize {
    let before = function.insts.len();
    static_single_assignment::sequence::run(function);
    function.insts.len() - before
}

/// SSA → SSA without branches whose edges go to one block with different arguments; gives the number of blocks made.
pub fn split_twin_edges(function: &mut ir::Function, _: &Options) -> usize {
    let before = function.blocks.len();
    static_single_assignment::split_edges::run_twins(function);
    function.blocks.len() - before
}

/// SSA → parallel copies into and out of values of their own; gives the number of values made.
pub fn isolate(function: &mut ir::Function, _: &Options) -> usize {
    let before = function.values.len();
    isolate::run(function);
    function.values.len() - before
}

/// SSA → the parallel copies that coalescing by value leaves; gives the number of copies coalesced.
pub fn coalesce(function: &mut ir::Function, _: &Options) -> usize {
    boissinot::run(function).coalesced
}

/// SSA → variables, unless the form is not conventional.
pub fn rename(state: State, _: &Context<'_>) -> Result<State, Failure> {
    let State::Ir(mut program) = state else { wrong("rename", &state) };
    for function in program.functions.values_mut() {
        renaming::run(function)
            .map_err(|overlap| Failure::NotConventional(format!("{overlap} (function {})", function.name)))?;
    }
    Ok(State::Ir(program))
}

/// Variables that renaming has left → out of SSA form.
pub fn finish_renaming(function: &mut ir::Function, _: &Options) -> usize {
    renaming::finish(function);
    0
}

/// Runs each function's SSA form and what it has become side by side, symbolically.
pub fn validate_out_of_ssa(ssa: &ir::Program, destroyed: &ir::Program) -> Result<(), Internal> {
    let validate =
        |(id, function): (_, &ir::Function)| static_single_assignment::validate::validate(&ssa.functions[id], function);
    destroyed.functions.iter().try_for_each(validate)
}

/// Out of SSA → machine code over virtual registers.
pub fn isel(state: State, context: &Context<'_>) -> Result<State, Failure> {
    let State::Ir(program) = state else { wrong("isel", &state) };
    let functions = each(
        &program.functions,
        context.options,
        |function| function.insts.len(),
        |function| function.name.clone(),
        |id, _| Ok(selection::select(&program, id)),
    )
    .map_err(|internal| internal.in_stage("isel"))?;
    Ok(State::Virtual(x64::Program {
        functions,
        entry: program.entry,
        strings: program.strings,
        source_name: context.source.name.clone(),
        positions: program.positions,
    }))
}

/// Virtual → physical registers.
pub fn regalloc(state: State, context: &Context<'_>) -> Result<State, Failure> {
    let State::Virtual(program) = state else { wrong("regalloc", &state) };
    let options = allocation::Options { registers: context.options.registers, spill_all: context.options.spill_all };
    let allocated = each(
        &program.functions,
        context.options,
        |function| function.vregs.len(),
        |function| function.name.clone(),
        |_, function| allocation::run(function, &options),
    )
    .map_err(|internal| internal.in_stage("regalloc"))?;
    let (functions, facts): (Vec<_>, Vec<_>) = allocated.into_iter().map(|(_, pair)| pair).unzip();
    let program = x64::Program {
        functions: functions.into_iter().collect(),
        entry: program.entry,
        strings: program.strings,
        source_name: program.source_name,
        positions: program.positions,
    };
    Ok(State::Physical(program, facts.into_iter().collect()))
}

/// Follows every value through each function's allocated code.
pub fn check_allocation(before: &x64::Program<VReg>, after: &x64::Program<PReg>) -> Result<(), Internal> {
    let check = |(id, allocated): (_, &x64::Function<PReg>)| {
        let checked = allocation::checker::check(&before.functions[id], allocated);
        checked.map_err(|internal| internal.in_function(&allocated.name))
    };
    after.functions.iter().try_for_each(check)
}

/// Machine code → bytes.
pub fn bytes(state: State, context: &Context<'_>) -> Result<State, Failure> {
    let State::Physical(program, _) = state else { wrong("bytes", &state) };
    let functions = each(
        &program.functions,
        context.options,
        |function| function.blocks.values().map(|block| block.insts.len()).sum(),
        |function| function.name.clone(),
        |_, function| emit::encode::encode(function, &program.positions),
    )
    .map_err(|internal| internal.in_stage("bytes"))?;
    Ok(State::Bytes(emit::code::ProgramCode {
        functions,
        entry: program.entry,
        strings: program.strings,
        source_name: program.source_name,
    }))
}

/// Bytes → ELF object.
pub fn object(state: State, _: &Context<'_>) -> Result<State, Failure> {
    let State::Bytes(code) = state else { wrong("object", &state) };
    Ok(State::Object(emit::object::run(&code)))
}

/// ELF object → executable.
pub fn executable(state: State, _: &Context<'_>) -> Result<State, Failure> {
    let State::Object(bytes) = state else { wrong("executable", &state) };
    link_object(&bytes).map(State::Executable)
}
