//! Leaves SSA form, second half: each parallel copy becomes a sequence of copies, by `graph::parallel_copy`.
//!
//! ```text
//! parallel %3 = %4, %4 = %3, %5 = %5     →     %8 = copy %3
//!                                              %3 = copy %4
//!                                              %4 = copy %8
//! ```
//!
//! **In**: [`Form::ParallelCopies`]. **Out**: [`Form::Sequenced`]; each cycle has one new value that rescues what it
//! overwrites first. `copy_origins` names for each copy the φ and the edge that it stands for, or what it rescues. Cost:
//! linear.

use crate::graph::parallel_copy::{self, Source, Step};
use crate::ir::{CopyOrigin, Form, Function, Inst, Op, Operand, Value};

/// Sequences all parallel copies.
pub fn run(function: &mut Function) {
    assert!(function.form == Form::ParallelCopies, "only parallel copies are sequenced");
    for block in function.layout.clone() {
        if !function.blocks[block].insts.iter().any(|inst| matches!(function.insts[*inst].op, Op::Parallel(_))) {
            continue;
        }
        let mut insts = Vec::new();
        for inst in std::mem::take(&mut function.blocks[block].insts) {
            if let Op::Parallel(copies) = &function.insts[inst].op {
                let copies = copies.clone();
                sequence(function, inst, &copies, &mut insts);
            } else {
                insts.push(inst);
            }
        }
        function.blocks[block].insts = insts;
    }
    function.form = Form::Sequenced;
}

/// Appends the copies that one parallel copy becomes.
fn sequence(function: &mut Function, parallel: Inst, copies: &[(Value, Operand)], insts: &mut Vec<Inst>) {
    let span = function.insts[parallel].span;
    let edge = function.copy_origins.get(&parallel).map(|origin| match *origin {
        CopyOrigin::Phi { pred, edge, .. } | CopyOrigin::Rescue { pred, edge, .. } => (pred, edge),
    });
    let moves: Vec<(Value, Source<Value, Operand>)> = copies
        .iter()
        .map(|(destination, source)| match source {
            Operand::Value(value) => (*destination, Source::Location(*value)),
            Operand::Int(_) | Operand::Bool(_) => (*destination, Source::Constant(*source)),
        })
        .collect();
    let steps = parallel_copy::sequence(&moves, |victim| function.make_value(function.values[victim].ty, None));
    for step in steps {
        let (destination, source, victim) = match step {
            Step::Move { dst, src: Source::Location(src) } => (dst, Operand::Value(src), None),
            Step::Move { dst, src: Source::Constant(src) } => (dst, src, None),
            Step::Rescue { temp, victim } => (temp, Operand::Value(victim), Some(victim)),
        };
        let inst = function.make_inst(Op::Copy(source), Some(destination), span);
        // Parallel copies of IR text have no origin.
        if let Some((pred, edge)) = edge {
            let origin = match victim {
                Some(victim) => CopyOrigin::Rescue { victim, pred, edge },
                None => CopyOrigin::Phi { phi: destination, pred, edge },
            };
            function.copy_origins.insert(inst, origin);
        }
        insts.push(inst);
    }
}
