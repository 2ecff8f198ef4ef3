//! Local value numbering: merges equal operations within a block.
//!
//! Cocke & Schwartz, "Programming languages and their compilers", 1970. One pass over each block with a table that is
//! forgotten at its end; `numbering` says what is equal. Where it finds the same as global value numbering it finds it
//! faster, since no dominators are needed.
//!
//! ```text
//! %3 = int %1 + %2        %3 = int %1 + %2
//! %4 = int %2 + %1   →    print %3
//! print %4
//! ```
//!
//! **In**: SSA. **Out**: SSA; no block computes the same twice. Cost: linear.

use super::fuel::Fuel;
use super::numbering::Numbering;
use super::summaries::Summaries;
use crate::ir::Function;

/// Numbers the values of each block; gives the number of changes.
pub fn run(function: &mut Function, summaries: &Summaries, fuel: &mut Fuel) -> usize {
    let mut numbering = Numbering::new(function, summaries);
    for index in 0..function.layout.len() {
        let block = function.layout[index];
        let scope = numbering.enter();
        let mut insts = std::mem::take(&mut function.blocks[block].insts);
        insts.retain(|inst| numbering.number(function, *inst, fuel));
        function.blocks[block].insts = insts;
        // The terminator is inside the scope: what `assert` has shown holds for it.
        let mut term = std::mem::replace(&mut function.blocks[block].term, crate::ir::Terminator::Unreachable);
        term.for_each_operand_mut(|operand| numbering.rewrite(operand, fuel));
        function.blocks[block].term = term;
        numbering.leave(scope);
    }
    numbering.renaming.apply(function);
    numbering.changes
}
