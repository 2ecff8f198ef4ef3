//! What the arithmetic of x86-64 computes, at 64 and 32 bits, flags included (Intel, Software Developer's Manual,
//! volume 2). Flags are followed one by one; what the manual leaves undefined, or what only some counts of a shift define,
//! is undefined here. For the interpreter; tests compare it with the processor. Cost: constant.

use super::types::*;

/// The flags; `None` is undefined.
#[derive(Clone, Copy, Debug, Default)]
pub struct Flags {
    pub carry: Option<bool>,
    pub zero: Option<bool>,
    pub sign: Option<bool>,
    pub overflow: Option<bool>,
}

impl Flags {
    /// Does the condition hold?
    pub fn holds(&self, cond: Cond) -> Result<bool, String> {
        let undefined = || format!("the condition {} reads an undefined flag", cond.name());
        let carry = || self.carry.ok_or_else(undefined);
        let zero = || self.zero.ok_or_else(undefined);
        let sign = || self.sign.ok_or_else(undefined);
        let overflow = || self.overflow.ok_or_else(undefined);
        Ok(match cond {
            Cond::O => overflow()?,
            Cond::NO => !overflow()?,
            Cond::B => carry()?,
            Cond::AE => !carry()?,
            Cond::E => zero()?,
            Cond::NE => !zero()?,
            Cond::BE => carry()? | zero()?,
            Cond::A => !(carry()? | zero()?),
            Cond::S => sign()?,
            Cond::NS => !sign()?,
            Cond::L => sign()? != overflow()?,
            Cond::GE => sign()? == overflow()?,
            Cond::LE => zero()? | (sign()? != overflow()?),
            Cond::G => !(zero()? | (sign()? != overflow()?)),
        })
    }
}

/// An addition or subtraction of `bits` bits.
pub fn add(a: u64, b: u64, bits: u32, subtract: bool) -> (u64, Flags) {
    let mask = u64::MAX >> (64 - bits);
    let (a, b) = (a & mask, b & mask);
    let result = if subtract { a.wrapping_sub(b) } else { a.wrapping_add(b) } & mask;
    let negative = |value: u64| value >> (bits - 1) & 1 == 1;
    let overflow = if subtract {
        negative(a) != negative(b) && negative(result) != negative(a)
    } else {
        negative(a) == negative(b) && negative(result) != negative(a)
    };
    let flags = Flags {
        carry: Some(if subtract { a < b } else { result < a }),
        zero: Some(result == 0),
        sign: Some(negative(result)),
        overflow: Some(overflow),
    };
    (result, flags)
}

/// The result of `and`, `or`, `xor` or `test`, with the flags that they set.
pub fn logic(result: u64, width: Width) -> (u64, Flags) {
    let result = truncate(result, width);
    let flags = Flags {
        carry: Some(false),
        zero: Some(result == 0),
        sign: Some(result >> (bits(width) - 1) & 1 == 1),
        overflow: Some(false),
    };
    (result, flags)
}

/// A shift; `immediate` if the count stands in the instruction.
pub fn shift(op: ShiftOp, value: u64, count: u64, immediate: bool, width: Width) -> (u64, Flags) {
    let size = bits(width);
    let count = (count & u64::from(size - 1)) as u32;
    let value = truncate(value, width);
    let signed = if width == Width::W64 { value as i64 } else { i64::from(value as i32) };
    let result = match op {
        ShiftOp::Shl => value << count,
        ShiftOp::Shr => value >> count,
        ShiftOp::Sar => (signed >> count) as u64,
        ShiftOp::Rol if width == Width::W64 => value.rotate_left(count),
        ShiftOp::Rol => u64::from((value as u32).rotate_left(count)),
        ShiftOp::Ror if width == Width::W64 => value.rotate_right(count),
        ShiftOp::Ror => u64::from((value as u32).rotate_right(count)),
    };
    let result = truncate(result, width);
    // A count in cl may be 0, which keeps the flags: nobody may count on either.
    let mut flags = Flags::default();
    if immediate && count > 0 && !matches!(op, ShiftOp::Rol | ShiftOp::Ror) {
        let top = |value: u64| value >> (size - 1) & 1 == 1;
        let out = match op {
            ShiftOp::Shl => value >> (size - count) & 1 == 1,
            ShiftOp::Shr | ShiftOp::Sar | ShiftOp::Rol | ShiftOp::Ror => value >> (count - 1) & 1 == 1,
        };
        let overflow = match op {
            ShiftOp::Shl => top(result) != out,
            ShiftOp::Shr => top(value),
            ShiftOp::Sar | ShiftOp::Rol | ShiftOp::Ror => false,
        };
        flags = Flags {
            carry: Some(out),
            zero: Some(result == 0),
            sign: Some(top(result)),
            overflow: (count == 1).then_some(overflow),
        };
    }
    (result, flags)
}

/// The number of bits.
pub fn bits(width: Width) -> u32 {
    match width {
        Width::W32 => 32,
        Width::W64 => 64,
    }
}

/// The low half at 32 bits.
pub fn truncate(value: u64, width: Width) -> u64 {
    match width {
        Width::W32 => value & 0xFFFF_FFFF,
        Width::W64 => value,
    }
}

/// Quotient and remainder of `high:low` by the divisor, or why the machine would fault.
pub fn divide(signed: bool, width: Width, high: u64, low: u64, divisor: u64) -> Result<(u64, u64), String> {
    if divisor == 0 {
        return Err("a division by zero faults".to_string());
    }
    let size = bits(width);
    let dividend = u128::from(high) << size | u128::from(low);
    let (quotient, remainder, fits) = if signed {
        // Sign-extend from twice the width, and the divisor from the width.
        let dividend = (dividend << (128 - 2 * size)) as i128 >> (128 - 2 * size);
        let divisor = i128::from((divisor << (64 - size)) as i64 >> (64 - size));
        let quotient = dividend.wrapping_div(divisor);
        let limit = 1i128 << (size - 1);
        (quotient as u64, dividend.wrapping_rem(divisor) as u64, (-limit..limit).contains(&quotient))
    } else {
        let quotient = dividend / u128::from(divisor);
        (quotient as u64, (dividend % u128::from(divisor)) as u64, quotient >> size == 0)
    };
    if fits { Ok((quotient, remainder)) } else { Err("a quotient does not fit, so the division faults".to_string()) }
}
