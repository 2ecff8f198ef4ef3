//! Floor 4: optimization, passes from SSA to SSA. A file is a pass, named by its textbook term, with one `run` that gives the
//! number of changes it has made; [`PASSES`] has them in the order in which they run.
//!
//! Every pass keeps what a program does: its output, its run-time errors with their positions, their order, and whether it
//! ends. What may trap or go on forever is never removed unless an equal one has run before. Every change is right by
//! itself and asks [`fuel::Fuel`] first, so that a wrong one can be found by bisection. A replaced value names its
//! replacement; ids are never reused; what stays keeps its place in the source.

pub mod bounds_elim;
pub mod copy_propagation;
pub mod dce;
pub mod drop_functions;
mod flow;
pub mod fuel;
pub mod gvn;
pub mod if_convert;
pub mod inline;
pub mod licm;
pub mod loop_rotate;
mod lower_bounds;
pub mod lvn;
mod memory;
mod numbering;
mod renaming;
pub mod sccp;
pub mod simplify;
pub mod simplify_cfg;
pub mod sink_conditions;
mod ssa_repair;
pub mod summaries;
pub mod tail_recursion;
#[cfg(test)]
mod tests;
pub mod unreachable;
mod uses;

use crate::ir::{Function, Program};
use fuel::Fuel;
use summaries::Summaries;

/// One run of a pass in the sequence.
#[derive(Clone, Copy)]
pub struct Pass {
    /// Its name in options and dumps, unique: a pass that runs again is `gvn.2`.
    pub name: &'static str,
    /// What it does, as a phrase for listings.
    pub title: &'static str,
    /// The lowest optimization level that runs it.
    pub level: u8,
    /// Runs it on a whole program; gives the number of changes.
    pub run: fn(&mut Program, &mut Fuel) -> usize,
}

/// The passes in the order in which they run. Constants come first, since they decide branches; control flow is cleaned up
/// before value numbering, so that fewer joins hide what is equal; dead code goes last, as every pass leaves some behind.
pub const PASSES: &[Pass] = &[
    Pass {
        name: "sccp",
        title: "sparse conditional constant propagation",
        level: 1,
        run: |p, f| each(p, f, sccp::run),
    },
    Pass {
        name: "copy-propagation",
        title: "copy propagation",
        level: 1,
        run: |p, f| each(p, f, copy_propagation::run),
    },
    Pass {
        name: "simplify-cfg",
        title: "control flow simplification",
        level: 1,
        run: |p, f| each(p, f, simplify_cfg::run),
    },
    Pass { name: "simplify", title: "algebraic simplification", level: 1, run: |p, f| each(p, f, simplify::run) },
    Pass { name: "lvn", title: "local value numbering", level: 1, run: |p, f| each_summarized(p, f, lvn::run) },
    Pass { name: "gvn", title: "global value numbering", level: 1, run: |p, f| each_summarized(p, f, gvn::run) },
    Pass {
        name: "sccp.2",
        title: "sparse conditional constant propagation, again",
        level: 1,
        run: |p, f| each(p, f, sccp::run),
    },
    Pass {
        name: "copy-propagation.2",
        title: "copy propagation, again",
        level: 1,
        run: |p, f| each(p, f, copy_propagation::run),
    },
    Pass { name: "dce", title: "dead code elimination", level: 1, run: |p, f| each_summarized(p, f, dce::run) },
    Pass {
        name: "simplify-cfg.2",
        title: "control flow simplification, again",
        level: 1,
        run: |p, f| each(p, f, simplify_cfg::run),
    },
    Pass { name: "tail-recursion", title: "tail recursion elimination", level: 2, run: tail_recursion::run },
    Pass { name: "inline", title: "inlining", level: 2, run: inline::run },
    Pass {
        name: "sccp.3",
        title: "sparse conditional constant propagation, across inlined calls",
        level: 2,
        run: |p, f| each(p, f, sccp::run),
    },
    Pass {
        name: "copy-propagation.3",
        title: "copy propagation, across inlined calls",
        level: 2,
        run: |p, f| each(p, f, copy_propagation::run),
    },
    Pass {
        name: "simplify-cfg.3",
        title: "control flow simplification, across inlined calls",
        level: 2,
        run: |p, f| each(p, f, simplify_cfg::run),
    },
    Pass {
        name: "simplify.2",
        title: "algebraic simplification, across inlined calls",
        level: 2,
        run: |p, f| each(p, f, simplify::run),
    },
    Pass {
        name: "bounds-elim",
        title: "bounds check elimination",
        level: 2,
        run: |p, f| each_summarized(p, f, bounds_elim::run),
    },
    Pass {
        name: "dce.2",
        title: "dead code elimination, across inlined calls",
        level: 2,
        run: |p, f| each_summarized(p, f, dce::run),
    },
    Pass {
        name: "simplify-cfg.4",
        title: "control flow simplification, before loops",
        level: 2,
        run: |p, f| each(p, f, simplify_cfg::run),
    },
    Pass { name: "if-convert", title: "if-conversion", level: 2, run: |p, f| each(p, f, if_convert::run) },
    Pass {
        name: "simplify-cfg.5",
        title: "control flow simplification, where branches went",
        level: 2,
        run: |p, f| each(p, f, simplify_cfg::run),
    },
    Pass { name: "loop-rotate", title: "loop rotation", level: 2, run: |p, f| each(p, f, loop_rotate::run) },
    Pass {
        name: "copy-propagation.4",
        title: "copy propagation, after loop rotation",
        level: 2,
        run: |p, f| each(p, f, copy_propagation::run),
    },
    Pass {
        name: "simplify-cfg.6",
        title: "control flow simplification, after loop rotation",
        level: 2,
        run: |p, f| each(p, f, simplify_cfg::run),
    },
    Pass { name: "licm", title: "loop-invariant code motion", level: 2, run: |p, f| each_summarized(p, f, licm::run) },
    Pass {
        name: "gvn.2",
        title: "global value numbering, across loops",
        level: 2,
        run: |p, f| each_summarized(p, f, gvn::run),
    },
    Pass {
        name: "simplify.3",
        title: "algebraic simplification, at last",
        level: 2,
        run: |p, f| each(p, f, simplify::run),
    },
    Pass {
        name: "copy-propagation.5",
        title: "copy propagation, at last",
        level: 2,
        run: |p, f| each(p, f, copy_propagation::run),
    },
    Pass {
        name: "sink-conditions",
        title: "comparisons put before their branches",
        level: 2,
        run: |p, f| each(p, f, sink_conditions::run),
    },
    Pass {
        name: "dce.3",
        title: "dead code elimination, at last",
        level: 2,
        run: |p, f| each_summarized(p, f, dce::run),
    },
    Pass {
        name: "simplify-cfg.7",
        title: "control flow simplification, at last",
        level: 2,
        run: |p, f| each(p, f, simplify_cfg::run),
    },
    Pass {
        name: "copy-propagation.6",
        title: "copy propagation, of what control flow has left",
        level: 2,
        run: |p, f| each(p, f, copy_propagation::run),
    },
];

/// Runs all passes of a level; gives the number of changes.
pub fn run(program: &mut Program, level: u8, fuel: &mut Fuel) -> usize {
    PASSES.iter().filter(|pass| pass.level <= level).map(|pass| (pass.run)(program, fuel)).sum()
}

/// Runs a pass on each function.
fn each(program: &mut Program, fuel: &mut Fuel, run: fn(&mut Function, &mut Fuel) -> usize) -> usize {
    program.functions.values_mut().map(|function| run(function, fuel)).sum()
}

/// Runs a pass that asks what calls do on each function.
fn each_summarized(
    program: &mut Program,
    fuel: &mut Fuel,
    run: fn(&mut Function, &Summaries, &mut Fuel) -> usize,
) -> usize {
    let summaries = Summaries::compute(program);
    program.functions.values_mut().map(|function| run(function, &summaries, fuel)).sum()
}
