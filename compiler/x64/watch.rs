//! What a run of machine code tells besides what it shows: counts, and each step to who watches. For the interpreter.

use super::types::{Block, FuncId};
use crate::execution::Outcome;

/// What a run took.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Instructions, the ends of blocks included; a parallel move counts as its moves, a jump to the block that follows in
    /// the layout as none.
    pub instructions: u64,
    /// Copies between registers and slots.
    pub moves: u64,
    /// Reads of arrays.
    pub loads: u64,
    /// Writes of arrays.
    pub stores: u64,
    /// Reads of the allocator's slots.
    pub reloads: u64,
    /// Writes of the allocator's slots.
    pub spills: u64,
    /// Jumps and conditional jumps.
    pub branches: u64,
    /// Calls, those of the runtime included.
    pub calls: u64,
}

/// A run: what it showed, and what it took.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Run {
    /// What it showed.
    pub outcome: Outcome,
    /// What it took.
    pub counts: Counts,
}

/// Watches a run. Places are the block and the number of the instruction in it.
pub trait Watch {
    /// An instruction, not a call, has written a register or a slot.
    fn wrote(&mut self, function: FuncId, block: Block, index: usize, value: u64);

    /// Something was printed, and the output is so long now.
    fn printed(&mut self, function: FuncId, block: Block, index: usize, output: usize);
}

/// Watches nothing, at no cost.
impl Watch for () {
    fn wrote(&mut self, _: FuncId, _: Block, _: usize, _: u64) {}

    fn printed(&mut self, _: FuncId, _: Block, _: usize, _: usize) {}
}
