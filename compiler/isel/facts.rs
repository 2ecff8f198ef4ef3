//! What selection asks about the values of a function: how often each is used and defined, where, and which operands end
//! where they are read.
//!
//! An operand *ends* if its register is free behind the instruction. For functions of usual size that takes liveness; for
//! huge ones, whose sets might be too large, it is known of values that one block alone defines and reads, and of those
//! that the block assigns anew before it ends, while others count as going on. It only decides between forms of the same
//! meaning.
//!
//! **in** out of SSA · **out** counts over the blocks of the layout. Cost: linear, and liveness where it is bounded.

use crate::analysis::cfg::Cfg;
use crate::analysis::liveness::Liveness;
use crate::ir::{Block, Function, Inst, InstData, Operand, Value};
use cranelift_entity::SecondaryMap;

/// Where a value is defined.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Site {
    /// The block.
    pub block: Block,
    /// The position in the block's list of instructions.
    pub position: u32,
    /// The instruction.
    pub inst: Inst,
}

/// The blocks that read a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Readers {
    #[default]
    None,
    One(Block),
    Several,
}

/// Up to so many pairs of a block and a value, liveness is computed.
const PAIRS: usize = 1 << 24;

/// Uses and definitions of every value.
pub struct Facts {
    uses: SecondaryMap<Value, u32>,
    defs: SecondaryMap<Value, u32>,
    sites: SecondaryMap<Value, Option<Site>>,
    readers: SecondaryMap<Value, Readers>,
    /// Bit n: operand n ends at the instruction.
    ends: SecondaryMap<Inst, u8>,
}

impl Facts {
    /// Counts.
    pub fn compute(function: &Function, cfg: &Cfg) -> Facts {
        let mut facts = Facts {
            uses: SecondaryMap::new(),
            defs: SecondaryMap::new(),
            sites: SecondaryMap::new(),
            readers: SecondaryMap::new(),
            ends: SecondaryMap::new(),
        };
        for &param in &function.params {
            facts.defs[param] += 1;
        }
        for &block in &function.layout {
            let data = &function.blocks[block];
            for (position, &inst) in data.insts.iter().enumerate() {
                let data = &function.insts[inst];
                data.op.for_each_operand(|operand| facts.count(block, operand));
                data.for_each_def(|value| {
                    facts.defs[value] += 1;
                    facts.sites[value] = Some(Site { block, position: position as u32, inst });
                });
            }
            data.term.for_each_operand(|operand| facts.count(block, operand));
        }
        let is_small = function.layout.len().saturating_mul(function.values.len()) <= PAIRS;
        let liveness = is_small.then(|| Liveness::compute(function, cfg));
        // Whether the value lives where the walk is, in the block that it was last met in.
        let mut lives: SecondaryMap<Value, Option<(Block, bool)>> = SecondaryMap::new();
        for &block in &function.layout {
            let data = &function.blocks[block];
            data.term.for_each_operand(|operand| {
                if let Some(value) = operand.value() {
                    lives[value] = Some((block, true));
                }
            });
            for &inst in data.insts.iter().rev() {
                facts.find_ends(block, inst, &function.insts[inst], liveness.as_ref(), &mut lives);
            }
        }
        facts
    }

    fn count(&mut self, block: Block, operand: Operand) {
        if let Some(value) = operand.value() {
            self.uses[value] += 1;
            self.readers[value] = match self.readers[value] {
                Readers::None => Readers::One(block),
                Readers::One(other) if other == block => Readers::One(block),
                Readers::One(_) | Readers::Several => Readers::Several,
            };
        }
    }

    fn find_ends(
        &mut self,
        block: Block,
        inst: Inst,
        data: &InstData,
        liveness: Option<&Liveness>,
        lives: &mut SecondaryMap<Value, Option<(Block, bool)>>,
    ) {
        data.for_each_def(|value| lives[value] = Some((block, false)));
        let (mut ends, mut number) = (0, 0);
        data.op.for_each_operand(|operand| {
            if let Some(value) = operand.value() {
                let live = match lives[value] {
                    Some((met, live)) if met == block => live,
                    _ => match liveness {
                        Some(liveness) => liveness.is_live_out(block, value),
                        None => !self.is_local(value, block),
                    },
                };
                if !live && number < 8 {
                    ends |= 1 << number;
                }
            }
            number += 1;
        });
        data.op.for_each_operand(|operand| {
            if let Some(value) = operand.value() {
                lives[value] = Some((block, true));
            }
        });
        self.ends[inst] = ends;
    }

    /// Is the block the only one that defines and reads the value?
    fn is_local(&self, value: Value, block: Block) -> bool {
        self.readers[value] == Readers::One(block) && self.site(value).is_some_and(|site| site.block == block)
    }

    /// How often the value is read.
    pub fn uses(&self, value: Value) -> u32 {
        self.uses[value]
    }

    /// Is the value defined more than once?
    pub fn redefined(&self, value: Value) -> bool {
        self.defs[value] > 1
    }

    /// The instruction that defines the value, if it is the only one and no parameter.
    pub fn site(&self, value: Value) -> Option<Site> {
        if self.redefined(value) { None } else { self.sites[value] }
    }

    /// Does the operand with that number end at the instruction?
    pub fn ends(&self, inst: Inst, operand: u32) -> bool {
        self.ends[inst] & 1 << operand != 0
    }
}
