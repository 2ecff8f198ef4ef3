//! Floor 4: register allocation, from machine code over virtual registers to machine code over physical ones.
//!
//! ```text
//! points → live_ranges → coalesce → uses → assign (with split) → resolve → rewrite (with sequence) → code and Facts
//! ```
//!
//! A greedy allocator with live-range splitting in the way of LLVM's (Jakob Stoklund Olesen, 2011), after aggressive
//! coalescing of ranges that hold the same value (Boissinot et al., 2009). Each step says in its file what it does.
//!
//! ```text
//! mov v1, v0          (v1 and v0 are one class)      add rdi, 1
//! add v1, 1
//! ```
//!
//! **in**: a function that `x64::verify` accepts. **out**: the same function over physical registers, with its frame; the
//! flags are changed only where they were; every copy has a known fate. Cost: near-linear in instructions plus blocks
//! over which registers are live; splitting has a budget that is linear in the function.

pub mod assign;
pub mod checker;
pub mod coalesce;
pub mod facts;
pub mod live_ranges;
pub mod places;
pub mod points;
pub mod ranges;
pub mod resolve;
pub mod rewrite;
pub mod sequence;
pub mod split;
pub mod uses;

#[cfg(test)]
mod shape_tests;
#[cfg(test)]
mod tests;

pub use facts::Facts;

use crate::support::internal::Internal;
use crate::x64::{Function, PReg, RegSet, VReg};

/// The fewest registers with which every instruction can be allocated: division with an operand in memory needs rax, rdx
/// and two for the address.
pub const FEWEST_REGISTERS: usize = 4;

/// What allocation may do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// The registers for values. Pinned registers are used whether or not they are in it.
    pub registers: RegSet,
    /// Keep every value in memory but for the instructions that need it in a register.
    pub spill_all: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options { registers: RegSet::ALLOCATABLE, spill_all: false }
    }
}

impl Options {
    /// Options with `count` registers: first those that instructions demand, then one that calls keep, then the rest.
    /// Fewer than [`FEWEST_REGISTERS`] or more than 15 are an error, as a sentence for the user.
    pub fn with_registers(count: usize) -> Result<Options, String> {
        const ORDER: [PReg; 15] = [
            PReg::RAX,
            PReg::RCX,
            PReg::RDX,
            PReg::RBX,
            PReg::RSI,
            PReg::RDI,
            PReg::R12,
            PReg::R8,
            PReg::R9,
            PReg::R13,
            PReg::R10,
            PReg::R11,
            PReg::R14,
            PReg::R15,
            PReg::RBP,
        ];
        if !(FEWEST_REGISTERS..=ORDER.len()).contains(&count) {
            return Err(format!(
                "the number of registers must be between {FEWEST_REGISTERS} and {}, not {count}",
                ORDER.len()
            ));
        }
        Ok(Options { registers: RegSet::of(&ORDER[..count]), spill_all: false })
    }
}

/// Allocates the registers of a function.
pub fn run(function: &Function<VReg>, options: &Options) -> Result<(Function<PReg>, Facts), Internal> {
    let name = |error: Internal| error.in_function(&function.name);
    if options.registers.intersection(RegSet::ALLOCATABLE).len() < FEWEST_REGISTERS {
        let message = format!("allocation needs at least {FEWEST_REGISTERS} registers");
        return Err(name(Internal::new("", message)));
    }
    let points = points::Points::compute(function);
    let live = live_ranges::compute(function, &points);
    let classes = coalesce::run(function, &points, &live);
    let uses = uses::collect(function, &points, &classes);
    let allocator = assign::run(&points, &live.fixed, &classes, uses, options).map_err(name)?;
    let resolution = resolve::run(&allocator, &live);
    let rewritten = rewrite::run(function, &allocator, &live, &resolution).map_err(name)?;
    let facts = facts::gather(function, &points, &live, &allocator, &resolution, &rewritten);
    Ok((rewritten.function, facts))
}
