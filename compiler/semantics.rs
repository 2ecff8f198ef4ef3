//! What the operations of Atlas mean: the one place that says how `+`, `/`, `%`, `<<` and comparison compute, which of
//! them trap, and how values print. Every interpreter and constant folding ask it; native code is tested against it.
//!
//! Source: the language contract (docs/language.md): 64-bit two's complement, wrapping; `/` truncates; shift counts are
//! taken modulo 64; `MIN / -1` is `MIN`, `MIN % -1` is 0. Cost: constant.

use std::fmt;

/// A type of a value that fits a register.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord)]
pub enum Scalar {
    /// 64-bit two's complement.
    Int,
    /// `true` or `false`; in a register 0 or 1 in all 64 bits, in memory one byte.
    Bool,
}

impl Scalar {
    /// Bytes of one array element.
    pub fn size(self) -> u64 {
        match self {
            Scalar::Int => 8,
            Scalar::Bool => 1,
        }
    }
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Scalar::Int => "int",
            Scalar::Bool => "bool",
        })
    }
}

/// A binary operation that gives what it takes: ints from ints, and for `And`, `Or`, `Xor` also bools from bools.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord)]
pub enum BinaryOp {
    Add,
    Sub,
    Mul,
    /// Truncates towards zero; traps on zero.
    Div,
    /// Has the sign of the left side; traps on zero.
    Rem,
    And,
    Or,
    Xor,
    /// The count is taken modulo 64.
    Shl,
    /// Keeps the sign; the count is taken modulo 64.
    Shr,
}

impl BinaryOp {
    /// All of them, for tables and tests.
    pub const ALL: [BinaryOp; 10] = [
        BinaryOp::Add,
        BinaryOp::Sub,
        BinaryOp::Mul,
        BinaryOp::Div,
        BinaryOp::Rem,
        BinaryOp::And,
        BinaryOp::Or,
        BinaryOp::Xor,
        BinaryOp::Shl,
        BinaryOp::Shr,
    ];

    /// Its spelling in the source and in IR text.
    pub fn symbol(self) -> &'static str {
        match self {
            BinaryOp::Add => "+",
            BinaryOp::Sub => "-",
            BinaryOp::Mul => "*",
            BinaryOp::Div => "/",
            BinaryOp::Rem => "%",
            BinaryOp::And => "&",
            BinaryOp::Or => "|",
            BinaryOp::Xor => "^",
            BinaryOp::Shl => "<<",
            BinaryOp::Shr => ">>",
        }
    }

    /// Is `a op b` the same as `b op a`?
    pub fn commutes(self) -> bool {
        match self {
            BinaryOp::Add | BinaryOp::Mul | BinaryOp::And | BinaryOp::Or | BinaryOp::Xor => true,
            BinaryOp::Sub | BinaryOp::Div | BinaryOp::Rem | BinaryOp::Shl | BinaryOp::Shr => false,
        }
    }

    /// May it trap for some operands?
    pub fn may_trap(self) -> bool {
        matches!(self, BinaryOp::Div | BinaryOp::Rem)
    }

    /// The result on ints, or `None` where it traps (division by zero).
    pub fn eval(self, a: i64, b: i64) -> Option<i64> {
        Some(match self {
            BinaryOp::Add => a.wrapping_add(b),
            BinaryOp::Sub => a.wrapping_sub(b),
            BinaryOp::Mul => a.wrapping_mul(b),
            BinaryOp::Div if b == 0 => return None,
            BinaryOp::Div => a.wrapping_div(b),
            BinaryOp::Rem if b == 0 => return None,
            BinaryOp::Rem => a.wrapping_rem(b),
            BinaryOp::And => a & b,
            BinaryOp::Or => a | b,
            BinaryOp::Xor => a ^ b,
            BinaryOp::Shl => a.wrapping_shl(b as u32),
            BinaryOp::Shr => a.wrapping_shr(b as u32),
        })
    }

    /// The result on bools, for the three operations that have one.
    pub fn eval_bool(self, a: bool, b: bool) -> Option<bool> {
        match self {
            BinaryOp::And => Some(a & b),
            BinaryOp::Or => Some(a | b),
            BinaryOp::Xor => Some(a ^ b),
            BinaryOp::Add
            | BinaryOp::Sub
            | BinaryOp::Mul
            | BinaryOp::Div
            | BinaryOp::Rem
            | BinaryOp::Shl
            | BinaryOp::Shr => None,
        }
    }
}

/// A comparison, signed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord)]
pub enum CompareOp {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

impl CompareOp {
    /// All of them, for tables and tests.
    pub const ALL: [CompareOp; 6] =
        [CompareOp::Eq, CompareOp::Ne, CompareOp::Lt, CompareOp::Le, CompareOp::Gt, CompareOp::Ge];

    /// Its spelling in the source and in IR text.
    pub fn symbol(self) -> &'static str {
        match self {
            CompareOp::Eq => "==",
            CompareOp::Ne => "!=",
            CompareOp::Lt => "<",
            CompareOp::Le => "<=",
            CompareOp::Gt => ">",
            CompareOp::Ge => ">=",
        }
    }

    /// The answer for two ints (bools compare as 0 and 1).
    pub fn eval(self, a: i64, b: i64) -> bool {
        match self {
            CompareOp::Eq => a == b,
            CompareOp::Ne => a != b,
            CompareOp::Lt => a < b,
            CompareOp::Le => a <= b,
            CompareOp::Gt => a > b,
            CompareOp::Ge => a >= b,
        }
    }

    /// The comparison that holds exactly when this one does not.
    pub fn negate(self) -> CompareOp {
        match self {
            CompareOp::Eq => CompareOp::Ne,
            CompareOp::Ne => CompareOp::Eq,
            CompareOp::Lt => CompareOp::Ge,
            CompareOp::Le => CompareOp::Gt,
            CompareOp::Gt => CompareOp::Le,
            CompareOp::Ge => CompareOp::Lt,
        }
    }

    /// The comparison with its sides exchanged.
    pub fn swap(self) -> CompareOp {
        match self {
            CompareOp::Eq => CompareOp::Eq,
            CompareOp::Ne => CompareOp::Ne,
            CompareOp::Lt => CompareOp::Gt,
            CompareOp::Le => CompareOp::Ge,
            CompareOp::Gt => CompareOp::Lt,
            CompareOp::Ge => CompareOp::Le,
        }
    }
}

/// A prefix operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord)]
pub enum UnaryOp {
    /// `-`, wraps.
    Neg,
    /// `~`.
    BitNot,
    /// `!`, on a bool.
    Not,
    /// `int(b)`: 0 or 1.
    IntOfBool,
}

impl UnaryOp {
    /// Its spelling in IR text.
    pub fn symbol(self) -> &'static str {
        match self {
            UnaryOp::Neg => "-",
            UnaryOp::BitNot => "~",
            UnaryOp::Not => "!",
            UnaryOp::IntOfBool => "int",
        }
    }

    /// The type it takes.
    pub fn operand(self) -> Scalar {
        match self {
            UnaryOp::Neg | UnaryOp::BitNot => Scalar::Int,
            UnaryOp::Not | UnaryOp::IntOfBool => Scalar::Bool,
        }
    }

    /// The type it gives.
    pub fn result(self) -> Scalar {
        match self {
            UnaryOp::Neg | UnaryOp::BitNot | UnaryOp::IntOfBool => Scalar::Int,
            UnaryOp::Not => Scalar::Bool,
        }
    }

    /// The result, with bools as 0 and 1.
    pub fn eval(self, a: i64) -> i64 {
        match self {
            UnaryOp::Neg => a.wrapping_neg(),
            UnaryOp::BitNot => !a,
            UnaryOp::Not => a ^ 1,
            UnaryOp::IntOfBool => a,
        }
    }
}

/// A run-time error with what its message needs. [`fmt::Display`] gives the message of the contract.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Trap {
    DivisionByZero,
    IndexOutOfBounds {
        index: i64,
        length: i64,
    },
    NegativeLength {
        length: i64,
    },
    OutOfMemory,
    AssertionFailed,
    NoInteger,
    MalformedInteger,
    /// Has no position.
    StackOverflow,
    /// Has no position.
    CannotWrite,
}

impl Trap {
    /// Does the message have a ` --> FILE:LINE:COL` line?
    pub fn has_position(self) -> bool {
        !matches!(self, Trap::StackOverflow | Trap::CannotWrite)
    }
}

impl fmt::Display for Trap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Trap::DivisionByZero => f.write_str("division by zero"),
            Trap::IndexOutOfBounds { index, length } => {
                write!(f, "index {index} out of bounds for an array of length {length}")
            }
            Trap::NegativeLength { length } => write!(f, "negative array length {length}"),
            Trap::OutOfMemory => f.write_str("out of memory"),
            Trap::AssertionFailed => f.write_str("assertion failed"),
            Trap::NoInteger => f.write_str("no integer to read"),
            Trap::MalformedInteger => f.write_str("malformed integer in the input"),
            Trap::StackOverflow => f.write_str("stack overflow"),
            Trap::CannotWrite => f.write_str("cannot write to standard output"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_of_division_and_shift() {
        assert_eq!(BinaryOp::Div.eval(i64::MIN, -1), Some(i64::MIN));
        assert_eq!(BinaryOp::Rem.eval(i64::MIN, -1), Some(0));
        assert_eq!(BinaryOp::Rem.eval(-7, 2), Some(-1));
        assert_eq!(BinaryOp::Div.eval(1, 0), None);
        assert_eq!(BinaryOp::Shl.eval(1, 64), Some(1));
        assert_eq!(BinaryOp::Shl.eval(1, -1), Some(i64::MIN));
        assert_eq!(BinaryOp::Shr.eval(-8, 65), Some(-4));
    }

    #[test]
    fn negate_and_swap_agree_with_eval() {
        for op in CompareOp::ALL {
            for (a, b) in [(1, 2), (2, 1), (1, 1), (i64::MIN, i64::MAX)] {
                assert_eq!(op.eval(a, b), !op.negate().eval(a, b));
                assert_eq!(op.eval(a, b), op.swap().eval(b, a));
            }
        }
    }
}
