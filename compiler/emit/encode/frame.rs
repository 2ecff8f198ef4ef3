//! The stack frame: its size, where slots are, and the code at a function's ends.
//!
//! ```text
//!   incoming n     [rsp + size + 8 * saved + 8 + 8 * n]
//!   return address
//!   saved registers
//!   (padding)
//!   spill n        [rsp + 8 * (outgoing + n)]
//!   outgoing n     [rsp + 8 * n]
//! ```
//!
//! At calls rsp is a multiple of 16. Source: System V AMD64 ABI, section 3.2.2. Cost: constant, but large frames touch
//! every page, so that an overflow of the stack meets its guard page.

use crate::support::internal::Internal;
use crate::x64::{Function, Op, PReg, RegSet, Slot};

/// Bytes of a page: what a guard page at the end of the stack has at least.
pub const PAGE: u32 = 4096;

/// How a function's frame lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Layout {
    /// Registers that are pushed.
    pub saved: RegSet,
    /// Bytes below them.
    pub size: u32,
    outgoing: u32,
    spill_slots: u32,
    incoming: u32,
}

impl Layout {
    /// From what allocation found.
    pub fn of(function: &Function<PReg>) -> Result<Layout, Internal> {
        let frame = &function.frame;
        let calls = function.layout.iter().any(|block| {
            let insts = &function.blocks[*block].insts;
            insts.iter().any(|inst| matches!(inst.op, Op::Call { .. }))
        });
        let slots = u64::from(frame.outgoing) + u64::from(frame.spill_slots);
        let above = 8 + 8 * frame.saved.len() as u64;
        let mut size = 8 * slots;
        if calls && !(above + size).is_multiple_of(16) {
            size += 8;
        }
        if size > 1 << 30 {
            return Err(Internal::new(&function.name, "the stack frame is larger than a gigabyte"));
        }
        let (outgoing, spill_slots) = (frame.outgoing, frame.spill_slots);
        Ok(Layout { saved: frame.saved, size: size as u32, outgoing, spill_slots, incoming: function.incoming })
    }

    /// The displacement of a slot from rsp; `framed`: the frame is made; `pushed`: bytes pushed since.
    pub fn displacement(&self, slot: Slot, framed: bool, pushed: i32) -> Result<i32, Internal> {
        let frame = if framed { self.size as i32 + 8 * self.saved.len() as i32 } else { 0 };
        let disp = match slot {
            Slot::Incoming(number) if number < self.incoming => frame + 8 + 8 * number as i32,
            Slot::Spill(number) if number < self.spill_slots && framed => 8 * (self.outgoing + number) as i32,
            Slot::Outgoing(number) if number < self.outgoing && framed => 8 * number as i32,
            Slot::Incoming(_) | Slot::Spill(_) | Slot::Outgoing(_) => {
                return Err(Internal::new(format!("{slot:?}"), "the frame has no such slot"));
            }
        };
        Ok(disp + pushed)
    }
}
