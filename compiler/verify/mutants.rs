//! Faults put in on purpose: the classic miscompiles of leaving SSA form, and slips of optimization. (Those of selection and
//! allocation are in `machine_mutants`.) They change what interpreters run, never what becomes an executable.
//!
//! A [`Mutant`] has *sites*: each is a place in a program where it can be made. Some sites make no difference (a dropped check
//! that would never have failed); a test holds that every mutant has sites where it does, and names who catches it.
//!
//! ```text
//! naive-order:    parallel %3 = %4, %4 = %3    →    %3 = copy %4
//!                                                   %4 = copy %3        prints 2 2 where 2 1 is right
//! ```
//!
//! Hazards of leaving SSA: Preston Briggs, Keith Cooper, Timothy Harvey, Taylor Simpson: Practical Improvements to the
//! Construction and Destruction of Static Single Assignment Form, 1998. Mutation as a measure of tests: Richard DeMillo,
//! Richard Lipton, Frederick Sayward: Hints on Test Data Selection, 1978.
//!
//! **in**: the program that the mutant's stage left, and what it was before. **out**: the program with the fault at one site.
//! Cost: a copy of the program.

use super::locate::Program;
use super::machine_mutants;
use crate::graph::parallel_copy::{self, Source, Step};
use crate::ir::{self, Block, CopyOrigin, Form, Function, Inst, Op, Operand, Terminator, Value};
use crate::regalloc::checker;
use crate::semantics::{BinaryOp, CompareOp, Scalar};
use crate::ssa::validate;
use crate::support::span::Span;
use crate::x64::{self, VReg};
use cranelift_entity::SecondaryMap;

/// What a program was at the stages before the one that is broken.
#[derive(Clone, Debug, Default)]
pub struct Past {
    /// SSA before critical edges were split.
    pub ssa: Option<ir::Program>,
    /// SSA with split edges.
    pub split: Option<ir::Program>,
    /// Parallel copies.
    pub parallel: Option<ir::Program>,
    /// Machine code over virtual registers.
    pub unallocated: Option<x64::Program<VReg>>,
}

/// A kind of fault.
pub struct Mutant {
    /// Its name, for `--break`.
    pub name: &'static str,
    /// What is done wrong, as a phrase.
    pub title: &'static str,
    /// The stage whose result it spoils.
    pub stage: &'static str,
    make: Make,
}

impl Mutant {
    /// Does it spoil the last code in SSA form? That is another stage's where another way out is taken.
    pub(super) fn of_ssa(&self) -> bool {
        self.stage == "split-edges"
    }
}

type IrMutation = fn(&mut ir::Program, usize) -> bool;

#[derive(Clone, Copy)]
pub(super) enum Make {
    /// From what the program was before, all at once.
    Anew(fn(&Past) -> Option<ir::Program>),
    /// Changes IR at a site; false if there is none of that number.
    Ir(IrMutation),
    /// Changes machine code over virtual registers.
    Virtual(machine_mutants::VirtualMutation),
    /// Changes machine code over physical registers.
    Physical(machine_mutants::PhysicalMutation),
}

pub(super) const fn mutant(name: &'static str, title: &'static str, stage: &'static str, make: Make) -> Mutant {
    Mutant { name, title, stage, make }
}

const OUT_OF_SSA: [Mutant; 5] = [
    mutant("naive-order", "copies of an edge one after the other", "sequence", Make::Anew(naive_order)),
    mutant(
        "rescue-source",
        "the source of a broken cycle kept, not what is overwritten",
        "sequence",
        Make::Anew(rescue_source),
    ),
    mutant("no-split", "copies of a critical edge at the end of its first block", "sequence", Make::Anew(no_split)),
    mutant("coalesce-interfering", "two values that live at once made one", "sequence", Make::Ir(coalesce_interfering)),
    mutant(
        "stale-liveness",
        "a copy deleted by liveness from before it was made",
        "sequence",
        Make::Ir(stale_liveness),
    ),
];

const OPTIMIZATION: [Mutant; 12] = [
    mutant("load-over-store", "a load moved in front of a store", "split-edges", Make::Ir(load_over_store)),
    mutant("stale-load", "a load numbered like one before a store", "split-edges", Make::Ir(stale_load)),
    mutant(
        "dropped-store",
        "a store taken for dead",
        "split-edges",
        Make::Ir(|p, n| drop_inst(p, n, |op| matches!(op, Op::Store { .. }))),
    ),
    mutant(
        "dropped-bounds",
        "a bounds check taken for redundant",
        "split-edges",
        Make::Ir(|p, n| drop_inst(p, n, |op| matches!(op, Op::Bounds { .. }))),
    ),
    mutant(
        "dropped-assert",
        "an assertion taken for true",
        "split-edges",
        Make::Ir(|p, n| drop_inst(p, n, |op| matches!(op, Op::Assert(_)))),
    ),
    mutant("swapped-sub", "a subtraction taken for commutative", "split-edges", Make::Ir(swapped_sub)),
    mutant("off-by-one-compare", "`<` for `<=`, `==` for `>=` and so on", "split-edges", Make::Ir(wrong_compare)),
    mutant("wrong-fold", "a constant folded wrongly", "split-edges", Make::Ir(wrong_constant)),
    mutant("wrong-branch", "a branch with its edges exchanged", "split-edges", Make::Ir(wrong_branch)),
    mutant("swapped-phi-args", "two operands of an edge exchanged", "split-edges", Make::Ir(swapped_phi_args)),
    mutant("hoisted-trap", "what may trap moved in front of a print", "split-edges", Make::Ir(hoisted_trap)),
    mutant("lost-position", "a run-time error at another place of the source", "split-edges", Make::Ir(lost_position)),
];

/// All mutants, in the order of the pipeline.
pub fn all() -> impl Iterator<Item = &'static Mutant> {
    OPTIMIZATION.iter().chain(&OUT_OF_SSA).chain(&machine_mutants::SELECTION).chain(&machine_mutants::ALLOCATION)
}

/// The mutant with a name.
pub fn named(name: &str) -> Option<&'static Mutant> {
    all().find(|mutant| mutant.name == name)
}

impl Mutant {
    /// The program with the fault at the site; `None` if it has no such site.
    pub fn apply(&self, past: &Past, program: &Program, site: usize) -> Option<Program> {
        let mut changed = program.clone();
        match (self.make, &mut changed) {
            (Make::Anew(make), Program::Ir(_)) => (site == 0).then(|| make(past)).flatten().map(Program::Ir),
            (Make::Ir(mutate), Program::Ir(ir)) => mutate(ir, site).then_some(changed),
            (Make::Virtual(mutate), Program::Virtual(code)) => mutate(code, site).then_some(changed),
            (Make::Physical(mutate), Program::Physical(code)) => mutate(code, site).then_some(changed),
            (Make::Anew(_) | Make::Ir(_) | Make::Virtual(_) | Make::Physical(_), _) => None,
        }
    }
}

/// Who finds fault with a program without running it, and what they say.
pub fn judges(past: &Past, program: &Program) -> Vec<(&'static str, String)> {
    let mut found = Vec::new();
    let mut say = |judge: &'static str, result: Result<(), crate::support::internal::Internal>| {
        if let Err(internal) = result {
            found.push((judge, internal.to_string()));
        }
    };
    match program {
        Program::Ir(ir) => {
            say("the IR verifier", ir::verify::verify(ir));
            if ir.functions[ir.entry].form == Form::Sequenced
                && let Some(split) = past.split.as_ref().or(past.ssa.as_ref())
            {
                let validate = |(id, function): (_, &Function)| validate::validate(&split.functions[id], function);
                say("the validator of SSA destruction", ir.functions.iter().try_for_each(validate));
            }
        }
        Program::Virtual(code) => say("the verifier of machine code", x64::verify::verify_program(code)),
        Program::Physical(code) => {
            say("the verifier of machine code", x64::verify::verify_program(code));
            if let Some(before) = &past.unallocated {
                let check = |(id, function): (_, &x64::Function<_>)| checker::check(&before.functions[id], function);
                say("the allocation checker", code.functions.iter().try_for_each(check));
            }
        }
    }
    found
}

// ---- Leaving SSA form ----

/// Each parallel copy in sequence, as `order` has it.
fn sequence_by(
    past: &Past,
    mut order: impl FnMut(&mut Function, &[(Value, Operand)]) -> Vec<(Value, Operand)>,
) -> Option<ir::Program> {
    let mut program = past.parallel.clone()?;
    for function in program.functions.values_mut() {
        for block in function.layout.clone() {
            let mut insts = Vec::new();
            for inst in std::mem::take(&mut function.blocks[block].insts) {
                let Op::Parallel(copies) = function.insts[inst].op.clone() else {
                    insts.push(inst);
                    continue;
                };
                for (destination, source) in order(function, &copies) {
                    insts.push(function.make_inst(Op::Copy(source), Some(destination), Span::NONE));
                }
            }
            function.blocks[block].insts = insts;
        }
        function.form = Form::Sequenced;
    }
    Some(program)
}

fn naive_order(past: &Past) -> Option<ir::Program> {
    sequence_by(past, |_, copies| copies.to_vec())
}

fn rescue_source(past: &Past) -> Option<ir::Program> {
    sequence_by(past, |function, copies| {
        let source_of =
            |value: Value| copies.iter().find(|(to, _)| *to == value).map_or(value.into(), |(_, from)| *from);
        right_order(function, copies)
            .into_iter()
            .map(|(to, from, victim)| (to, victim.map_or(from, source_of)))
            .collect()
    })
}

/// The right sequence; with the victim, for copies that rescue one.
fn right_order(function: &mut Function, copies: &[(Value, Operand)]) -> Vec<(Value, Operand, Option<Value>)> {
    let moves: Vec<(Value, Source<Value, Operand>)> =
        copies.iter().map(|(to, from)| (*to, from.value().map_or(Source::Constant(*from), Source::Location))).collect();
    let steps = parallel_copy::sequence(&moves, |victim| function.make_value(function.values[victim].ty, None));
    let copy = |step| match step {
        Step::Move { dst, src: Source::Location(src) } => (dst, Operand::Value(src), None),
        Step::Move { dst, src: Source::Constant(src) } => (dst, src, None),
        Step::Rescue { temp, victim } => (temp, Operand::Value(victim), Some(victim)),
    };
    steps.into_iter().map(copy).collect()
}

fn no_split(past: &Past) -> Option<ir::Program> {
    let mut program = past.ssa.clone()?;
    for function in program.functions.values_mut() {
        let mut reached: SecondaryMap<Block, bool> = SecondaryMap::new();
        let mut work = vec![function.entry()];
        while let Some(block) = work.pop() {
            if !std::mem::replace(&mut reached[block], true) {
                work.extend(function.blocks[block].term.edges().map(|edge| edge.target));
            }
        }
        function.layout.retain(|block| reached[*block]);
        for block in function.layout.clone() {
            let edges: Vec<(Block, Vec<Operand>)> = function.blocks[block]
                .term
                .edges_mut()
                .map(|edge| (edge.target, std::mem::take(&mut edge.args)))
                .collect();
            for (target, args) in edges {
                let copies: Vec<(Value, Operand)> = function.blocks[target].params.iter().copied().zip(args).collect();
                for (to, from, _) in right_order(function, &copies) {
                    let copy = function.make_inst(Op::Copy(from), Some(to), Span::NONE);
                    function.blocks[block].insts.push(copy);
                }
            }
        }
        for block in function.layout.clone() {
            function.blocks[block].params.clear();
        }
        function.form = Form::Sequenced;
    }
    Some(program)
}

fn coalesce_interfering(program: &mut ir::Program, site: usize) -> bool {
    let copies =
        |function: &Function, inst: Inst| match (&function.insts[inst].op, function.insts[inst].result.expand()) {
            (Op::Copy(Operand::Value(from)), Some(to)) => {
                *from != to && function.values[*from].ty == function.values[to].ty && !function.params.contains(&to)
            }
            (_, _) => false,
        };
    at_inst(program, site, copies, |function, block, index| {
        let inst = function.blocks[block].insts.remove(index);
        let (Op::Copy(Operand::Value(from)), Some(to)) =
            (function.insts[inst].op.clone(), function.insts[inst].result.expand())
        else {
            return;
        };
        let rename = |operand: &mut Operand| {
            if *operand == Operand::Value(to) {
                *operand = Operand::Value(from);
            }
        };
        for block in function.layout.clone() {
            for inst in function.blocks[block].insts.clone() {
                function.insts[inst].op.for_each_operand_mut(rename);
                if function.insts[inst].result.expand() == Some(to) {
                    function.insts[inst].result = Some(from).into();
                }
            }
            function.blocks[block].term.for_each_operand_mut(rename);
        }
    })
}

fn stale_liveness(program: &mut ir::Program, site: usize) -> bool {
    // Before φs became copies, a φ was defined at its block's start: not live at the ends of the blocks before.
    let for_phi =
        |function: &Function, inst: Inst| matches!(function.copy_origins.get(&inst), Some(CopyOrigin::Phi { .. }));
    at_inst(program, site, for_phi, |function, block, index| {
        function.blocks[block].insts.remove(index);
    })
}

// ---- Optimization ----

/// Changes the instruction at the site, counted over those that `pick` takes.
fn at_inst(
    program: &mut ir::Program,
    site: usize,
    pick: impl Fn(&Function, Inst) -> bool,
    change: impl FnOnce(&mut Function, Block, usize),
) -> bool {
    let mut count = 0;
    for function in program.functions.values_mut() {
        for block in function.layout.clone() {
            for index in 0..function.blocks[block].insts.len() {
                if pick(function, function.blocks[block].insts[index]) {
                    if count == site {
                        change(function, block, index);
                        return true;
                    }
                    count += 1;
                }
            }
        }
    }
    false
}

fn drop_inst(program: &mut ir::Program, site: usize, pick: fn(&Op) -> bool) -> bool {
    at_inst(
        program,
        site,
        |function, inst| pick(&function.insts[inst].op),
        |function, block, index| {
            function.blocks[block].insts.remove(index);
        },
    )
}

/// Pairs of instructions of one block, the first before the second.
fn at_pair(
    program: &mut ir::Program,
    site: usize,
    pick: impl Fn(&Op, &Op) -> bool,
    change: impl FnOnce(&mut Function, Block, usize, usize),
) -> bool {
    /// Farther apart, pairs are not tried, so that their number stays linear.
    const REACH: usize = 12;
    let mut count = 0;
    for function in program.functions.values_mut() {
        for block in function.layout.clone() {
            let insts = function.blocks[block].insts.clone();
            for second in 1..insts.len() {
                for first in second.saturating_sub(REACH)..second {
                    if pick(&function.insts[insts[first]].op, &function.insts[insts[second]].op) {
                        if count == site {
                            change(function, block, first, second);
                            return true;
                        }
                        count += 1;
                    }
                }
            }
        }
    }
    false
}

fn load_over_store(program: &mut ir::Program, site: usize) -> bool {
    let pick = |first: &Op, second: &Op| match (first, second) {
        (Op::Store { array: a, .. }, Op::Load { array: b, .. }) => a == b,
        (_, _) => false,
    };
    at_pair(program, site, pick, |function, block, first, second| {
        let load = function.blocks[block].insts.remove(second);
        function.blocks[block].insts.insert(first, load);
    })
}

fn stale_load(program: &mut ir::Program, site: usize) -> bool {
    let pick =
        |first: &Op, second: &Op| matches!((first, second), (Op::Load { .. }, Op::Load { .. })) && first == second;
    at_pair(program, site, pick, |function, block, first, second| {
        let (first, second) = (function.blocks[block].insts[first], function.blocks[block].insts[second]);
        if let Some(value) = function.insts[first].result.expand() {
            function.insts[second].op = Op::Copy(value.into());
        }
    })
}

fn swapped_sub(program: &mut ir::Program, site: usize) -> bool {
    let pick = |function: &Function, inst: Inst| matches!(&function.insts[inst].op, Op::Binary { op: BinaryOp::Sub, args, .. } if args[0] != args[1]);
    at_inst(program, site, pick, |function, block, index| {
        if let Op::Binary { args, .. } = &mut function.insts[function.blocks[block].insts[index]].op {
            args.swap(0, 1);
        }
    })
}

fn wrong_compare(program: &mut ir::Program, site: usize) -> bool {
    let pick = |function: &Function, inst: Inst| match &function.insts[inst].op {
        Op::Compare { args, .. } => function.type_of(args[0]) == ir::Type::INT,
        _ => false,
    };
    at_inst(program, site, pick, |function, block, index| {
        if let Op::Compare { op, .. } = &mut function.insts[function.blocks[block].insts[index]].op {
            *op = match *op {
                CompareOp::Lt => CompareOp::Le,
                CompareOp::Le => CompareOp::Lt,
                CompareOp::Gt => CompareOp::Ge,
                CompareOp::Ge => CompareOp::Gt,
                CompareOp::Eq => CompareOp::Ge,
                CompareOp::Ne => CompareOp::Lt,
            };
        }
    })
}

fn wrong_constant(program: &mut ir::Program, site: usize) -> bool {
    let constant = |op: &Op| match op {
        Op::Binary { ty: Scalar::Int, args, .. } => args.iter().position(|arg| matches!(arg, Operand::Int(_))),
        _ => None,
    };
    at_inst(
        program,
        site,
        |function, inst| constant(&function.insts[inst].op).is_some(),
        |function, block, index| {
            let op = &mut function.insts[function.blocks[block].insts[index]].op;
            if let (Some(place), Op::Binary { args, .. }) = (constant(op), op)
                && let Operand::Int(value) = &mut args[place]
            {
                *value = value.wrapping_add(1);
            }
        },
    )
}

/// Changes the terminator at the site, counted over those that `pick` takes.
fn at_terminator(
    program: &mut ir::Program,
    site: usize,
    pick: impl Fn(&Terminator) -> bool,
    change: impl FnOnce(&mut Terminator),
) -> bool {
    let mut sites = program.functions.values_mut().flat_map(|function| {
        let layout = function.layout.clone();
        let in_layout = move |block: &Block| layout.contains(block);
        let blocks = function.blocks.iter_mut().filter(move |(block, _)| in_layout(block));
        blocks.map(|(_, data)| &mut data.term)
    });
    match sites.by_ref().filter(|term| pick(term)).nth(site) {
        Some(term) => {
            change(term);
            true
        }
        None => false,
    }
}

fn wrong_branch(program: &mut ir::Program, site: usize) -> bool {
    at_terminator(
        program,
        site,
        |term| matches!(term, Terminator::Branch { .. }),
        |term| {
            if let Terminator::Branch { then, els, .. } = term {
                std::mem::swap(then, els);
            }
        },
    )
}

fn swapped_phi_args(program: &mut ir::Program, site: usize) -> bool {
    let two = |term: &Terminator| term.edges().any(|edge| edge.args.len() > 1 && edge.args[0] != edge.args[1]);
    at_terminator(program, site, two, |term| {
        if let Some(edge) = term.edges_mut().find(|edge| edge.args.len() > 1 && edge.args[0] != edge.args[1]) {
            edge.args.swap(0, 1);
        }
    })
}

fn hoisted_trap(program: &mut ir::Program, site: usize) -> bool {
    let pick = |first: &Op, second: &Op| {
        let traps = matches!(second, Op::Bounds { .. } | Op::Assert(_))
            || matches!(second, Op::Binary { op, args, .. } if op.may_trap() && args[1].constant().is_none());
        matches!(first, Op::Print(_)) && traps
    };
    at_pair(program, site, pick, |function, block, first, second| {
        let trap = function.blocks[block].insts.remove(second);
        function.blocks[block].insts.insert(first, trap);
    })
}

fn lost_position(program: &mut ir::Program, site: usize) -> bool {
    let traps = |function: &Function, inst: Inst| ir::effects::effects(&function.insts[inst].op).traps;
    at_inst(program, site, traps, |function, block, index| {
        function.insts[function.blocks[block].insts[index]].span = Span::new(0, 0);
    })
}
