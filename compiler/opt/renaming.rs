//! Renaming: replaces values by operands everywhere in a function, in one sweep however many replacements there are.
//!
//! A pass collects replacements with [`Renaming::replace`], asks [`Renaming::resolve`] for the current name of an
//! operand, and calls [`Renaming::apply`] once at its end. Chains (`%3` by `%2`, `%2` by `%1`) are followed with path
//! compression. **In**: replacements without cycles, each value replaced at most once. **Out**: no replaced value is read
//! in the layout. Cost: near-linear in the size of the function.

use crate::ir::{Function, Operand, Value};
use cranelift_entity::SecondaryMap;

/// Values with their replacements.
#[derive(Default)]
pub struct Renaming {
    to: SecondaryMap<Value, Option<Operand>>,
    count: usize,
}

impl Renaming {
    /// Nothing renamed yet.
    pub fn new() -> Renaming {
        Renaming::default()
    }

    /// How many values have been replaced.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Replaces `old` by `new` from now on, and notes it in the function's record of `old`.
    pub fn replace(&mut self, function: &mut Function, old: Value, new: Operand) {
        let new = self.resolve(new);
        debug_assert_ne!(new, Operand::Value(old), "{old} would be replaced by itself");
        self.to[old] = Some(new);
        self.count += 1;
        function.note_replaced(old, new);
    }

    /// The operand that stands for `operand` now.
    pub fn resolve(&mut self, operand: Operand) -> Operand {
        let Operand::Value(first) = operand else { return operand };
        let Some(mut last) = self.to[first] else { return operand };
        while let Operand::Value(value) = last {
            match self.to[value] {
                Some(next) => last = next,
                None => break,
            }
        }
        // Point every value on the way at the end, so that long chains are walked once.
        let mut current = first;
        while let Some(Operand::Value(next)) = self.to[current] {
            self.to[current] = Some(last);
            current = next;
        }
        last
    }

    /// Makes every use of the first value of a pair read the second, which is another value, not a new name of it.
    pub fn rename_uses(function: &mut Function, pairs: &[(Value, Value)]) {
        let mut renaming = Renaming::new();
        for (old, new) in pairs {
            renaming.to[*old] = Some((*new).into());
            renaming.count += 1;
        }
        renaming.apply(function);
    }

    /// Rewrites every operand of the blocks in the layout.
    pub fn apply(&mut self, function: &mut Function) {
        if self.count == 0 {
            return;
        }
        for index in 0..function.layout.len() {
            let block = function.layout[index];
            let Function { blocks, insts, .. } = &mut *function;
            let data = &mut blocks[block];
            for inst in &data.insts {
                insts[*inst].op.for_each_operand_mut(|operand| *operand = self.resolve(*operand));
            }
            data.term.for_each_operand_mut(|operand| *operand = self.resolve(*operand));
        }
    }
}
