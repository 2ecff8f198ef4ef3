//! What the user may choose about a compilation; the same options and source give the same bytes.

use crate::ssa::{OutOfSsa, construct};
use crate::x64::RegSet;

/// The choices that stages look at.
#[derive(Clone, Debug)]
pub struct Options {
    /// The optimization level, 0 to 2.
    pub level: u8,
    /// How many changes optimization may make, to find a wrong one by bisection; no limit by default.
    pub opt_limit: Option<u64>,
    /// How φs are placed, and whether copies between variables survive the construction of SSA.
    pub ssa: construct::Options,
    /// The way out of SSA form.
    pub out_of_ssa: OutOfSsa,
    /// The registers that allocation may use.
    pub registers: RegSet,
    /// Every virtual register lives in the stack frame.
    pub spill_all: bool,
    /// Keep functions that the body cannot reach, for objects that other code links with.
    pub keep_functions: bool,
    /// Check every stage's result; debug builds always do.
    pub verify: bool,
    /// How many threads may work on the functions of one stage; 0 for as many as there are cores.
    pub threads: usize,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            level: 1,
            opt_limit: None,
            ssa: construct::Options::default(),
            out_of_ssa: OutOfSsa::default(),
            registers: RegSet::ALLOCATABLE,
            spill_all: false,
            keep_functions: false,
            verify: cfg!(debug_assertions),
            threads: 0,
        }
    }
}
