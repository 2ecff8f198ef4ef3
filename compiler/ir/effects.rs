//! The one table of what IR instructions may do besides giving a result. Dead code elimination, value numbering, code
//! motion, inlining and selection all ask it. Cost: constant.
//!
//! What a call does depends on the callee; without knowledge of it a call may do anything. `summary` in `analysis`
//! computes what each function of a program may do, from this table.

use super::types::Op;

/// What an instruction may do.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Effects {
    /// May end the program with a run-time error.
    pub traps: bool,
    /// May write to standard output or read standard input.
    pub io: bool,
    /// Reads elements of arrays.
    pub reads: bool,
    /// Writes elements of arrays.
    pub writes: bool,
    /// Makes or frees an array.
    pub allocates: bool,
    /// May run forever.
    pub diverges: bool,
}

impl Effects {
    /// Everything that an unknown call may do.
    pub const ANY: Effects =
        Effects { traps: true, io: true, reads: true, writes: true, allocates: true, diverges: true };

    /// Everything that either may do.
    pub fn union(self, other: Effects) -> Effects {
        Effects {
            traps: self.traps | other.traps,
            io: self.io | other.io,
            reads: self.reads | other.reads,
            writes: self.writes | other.writes,
            allocates: self.allocates | other.allocates,
            diverges: self.diverges | other.diverges,
        }
    }

    /// May it be removed where nothing uses its result?
    pub fn removable(self) -> bool {
        !(self.traps || self.io || self.writes || self.allocates || self.diverges)
    }

    /// May it run where the source would not have run it, and give the same result wherever its operands are the same?
    pub fn speculatable(self) -> bool {
        self.removable() && !self.reads
    }
}

/// What the instruction may do, whatever its operands are.
pub fn effects(op: &Op) -> Effects {
    let none = Effects::default();
    match op {
        Op::Copy(_) | Op::Parallel(_) | Op::Compare { .. } | Op::Unary { .. } | Op::Select { .. } | Op::Len(_) => none,
        Op::Binary { op, args, .. } => {
            // Division by a constant other than zero cannot trap.
            let safe = args[1].constant().is_some_and(|divisor| divisor != 0);
            Effects { traps: op.may_trap() && !safe, ..none }
        }
        Op::Bounds { .. } | Op::Assert(_) => Effects { traps: true, ..none },
        Op::Array { .. } => Effects { traps: true, allocates: true, ..none },
        Op::Free(_) => Effects { allocates: true, writes: true, ..none },
        Op::Load { .. } => Effects { reads: true, ..none },
        Op::Store { .. } => Effects { writes: true, ..none },
        Op::Call { .. } => Effects::ANY,
        Op::Read => Effects { traps: true, io: true, ..none },
        Op::Eof => Effects { io: true, ..none },
        Op::Print(_) => Effects { traps: true, io: true, ..none },
    }
}
