//! What running an Atlas program means apart from its operations: input, output, limits, and how a run ends. Every
//! interpreter of the compiler (of the HIR, the IR and machine code) runs on one [`Machine`], so that they can be compared.
//!
//! An interpreter counts its steps with [`Machine::step`], calls with [`Machine::enter`] and [`Machine::leave`], and arrays
//! with [`Machine::allocate`] and [`Machine::release`]; it prints and reads through the machine too. Whatever ends the run
//! early comes back as a [`Stop`], to which the interpreter adds the place in the source ([`Stop::at`]).
//!
//! Source: the language contract (docs/language.md), "Run-time errors" and `read()`. Cost: constant a step; reading is
//! linear in the input.

use crate::semantics::{Scalar, Trap};
use crate::support::span::Span;
use std::io::Write;

/// How far a run may go. Reaching a limit says nothing about the program: the outcome is then a prefix of the real one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Steps; each interpreter counts its own kind of step, at least one for each round of a loop and each call.
    pub steps: u64,
    /// Bytes of output.
    pub output: usize,
    /// Calls active at one time, the program's body not counted.
    pub depth: u32,
    /// Bytes in arrays that live at one time.
    pub memory: u64,
}

impl Default for Limits {
    /// Generous for a test, gone through in seconds.
    fn default() -> Limits {
        Limits { steps: 50_000_000, output: 16 << 20, depth: 100_000, memory: 512 << 20 }
    }
}

/// Which limit a run has reached.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Limit {
    Steps,
    Output,
    Depth,
    Memory,
}

/// How a run ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum End {
    /// The program's body ended: exit status 0.
    Normal,
    /// A run-time error: exit status 101. The span starts at the position that the message names; it is `Span::NONE` for
    /// errors without a position.
    Trap(Trap, Span),
    /// A limit was reached before the program ended.
    Limit(Limit),
}

/// What a run has shown to the world.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Outcome {
    /// Standard output.
    pub output: Vec<u8>,
    /// How the run ended.
    pub end: End,
}

impl Outcome {
    /// Can both be runs of one program on one input? Where neither reached a limit, they must have the same output and
    /// the same end, its position included; where one did, its output must be a prefix of the other's.
    pub fn agrees(&self, other: &Outcome) -> bool {
        let start = |end: End| match end {
            End::Trap(trap, span) => End::Trap(trap, Span { start: span.start, end: span.start }),
            End::Normal | End::Limit(_) => end,
        };
        match (self.end, other.end) {
            (End::Limit(_), End::Limit(_)) => {
                self.output.starts_with(&other.output) || other.output.starts_with(&self.output)
            }
            (End::Limit(_), End::Normal | End::Trap(..)) => other.output.starts_with(&self.output),
            (End::Normal | End::Trap(..), End::Limit(_)) => self.output.starts_with(&other.output),
            (End::Normal | End::Trap(..), End::Normal | End::Trap(..)) => {
                self.output == other.output && start(self.end) == start(other.end)
            }
        }
    }
}

/// Why a run stops early, before the place in the source is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stop {
    /// A run-time error.
    Trap(Trap),
    /// A limit.
    Limit(Limit),
}

impl Stop {
    /// The end of the run, at this place.
    pub fn at(self, span: Span) -> End {
        match self {
            Stop::Trap(trap) if trap.has_position() => End::Trap(trap, span),
            Stop::Trap(trap) => End::Trap(trap, Span::NONE),
            Stop::Limit(limit) => End::Limit(limit),
        }
    }
}

impl From<Trap> for Stop {
    fn from(trap: Trap) -> Stop {
        Stop::Trap(trap)
    }
}

/// Standard input, whole.
#[derive(Clone, Debug)]
pub struct Input<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Input<'a> {
    /// Input that has not been read from.
    pub fn new(bytes: &'a [u8]) -> Input<'a> {
        Input { bytes, at: 0 }
    }

    /// White space of the input: that of C's `isspace`.
    fn is_space(byte: u8) -> bool {
        matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0B | 0x0C)
    }

    fn skip_space(&mut self) {
        while self.at < self.bytes.len() && Input::is_space(self.bytes[self.at]) {
            self.at += 1;
        }
    }

    /// `eof()`: is only white space left?
    pub fn eof(&mut self) -> bool {
        self.skip_space();
        self.at == self.bytes.len()
    }

    /// `read()`: takes the token up to the next white space, which must be an optional sign and decimal digits that
    /// make a 64-bit integer.
    pub fn read(&mut self) -> Result<i64, Trap> {
        if self.eof() {
            return Err(Trap::NoInteger);
        }
        let start = self.at;
        while self.at < self.bytes.len() && !Input::is_space(self.bytes[self.at]) {
            self.at += 1;
        }
        let token = &self.bytes[start..self.at];
        let (negative, digits) = match token {
            [b'-', rest @ ..] => (true, rest),
            [b'+', rest @ ..] => (false, rest),
            _ => (false, token),
        };
        if digits.is_empty() {
            return Err(Trap::MalformedInteger);
        }
        // The value is built below zero, where there is one more integer than above.
        let mut below = 0i64;
        for &digit in digits {
            if !digit.is_ascii_digit() {
                return Err(Trap::MalformedInteger);
            }
            below = below
                .checked_mul(10)
                .and_then(|value| value.checked_sub(i64::from(digit - b'0')))
                .ok_or(Trap::MalformedInteger)?;
        }
        if negative { Ok(below) } else { below.checked_neg().ok_or(Trap::MalformedInteger) }
    }
}

/// The world around a run: input, output so far, and what has been used of the limits.
#[derive(Clone, Debug)]
pub struct Machine<'a> {
    /// Standard input.
    pub input: Input<'a>,
    /// Standard output so far.
    pub output: Vec<u8>,
    limits: Limits,
    steps: u64,
    depth: u32,
    memory: u64,
}

impl<'a> Machine<'a> {
    /// A machine before its run.
    pub fn new(input: &'a [u8], limits: Limits) -> Machine<'a> {
        Machine { input: Input::new(input), output: Vec::new(), limits, steps: 0, depth: 0, memory: 0 }
    }

    /// Counts one step.
    #[inline]
    pub fn step(&mut self) -> Result<(), Stop> {
        self.steps += 1;
        if self.steps > self.limits.steps { Err(Stop::Limit(Limit::Steps)) } else { Ok(()) }
    }

    /// Steps so far.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// Counts a call.
    pub fn enter(&mut self) -> Result<(), Stop> {
        if self.depth == self.limits.depth {
            return Err(Stop::Limit(Limit::Depth));
        }
        self.depth += 1;
        Ok(())
    }

    /// Counts the end of a call.
    pub fn leave(&mut self) {
        self.depth -= 1;
    }

    /// Bytes in arrays that live now; 0 when every array has been released.
    pub fn memory(&self) -> u64 {
        self.memory
    }

    /// Counts a new array of `len` elements and gives its length as `usize`. A length that no x86-64 machine could hold
    /// (2^47 bytes and more) is `out of memory`, as it is for the executable; a lesser one may reach the limit.
    pub fn allocate(&mut self, element: Scalar, len: i64) -> Result<usize, Stop> {
        if len < 0 {
            return Err(Trap::NegativeLength { length: len }.into());
        }
        let bytes = (len as u64).checked_mul(element.size()).filter(|bytes| *bytes < 1 << 47);
        let bytes = bytes.ok_or(Stop::Trap(Trap::OutOfMemory))?;
        if bytes > self.limits.memory - self.memory {
            return Err(Stop::Limit(Limit::Memory));
        }
        self.memory += bytes;
        Ok(len as usize)
    }

    /// Counts the end of an array that [`Machine::allocate`] has counted.
    pub fn release(&mut self, element: Scalar, len: usize) {
        self.memory -= len as u64 * element.size();
    }

    /// Prints an `int`, then `end`.
    pub fn print_int(&mut self, value: i64, end: u8) -> Result<(), Stop> {
        write!(self.output, "{value}").expect("writing to memory does not fail");
        self.print_end(end)
    }

    /// Prints a `bool`, then `end`.
    pub fn print_bool(&mut self, value: bool, end: u8) -> Result<(), Stop> {
        self.print_str(if value { b"true" } else { b"false" }, end)
    }

    /// Prints bytes as they are, then `end`.
    pub fn print_str(&mut self, text: &[u8], end: u8) -> Result<(), Stop> {
        self.output.extend_from_slice(text);
        self.print_end(end)
    }

    fn print_end(&mut self, end: u8) -> Result<(), Stop> {
        self.output.push(end);
        if self.output.len() > self.limits.output { Err(Stop::Limit(Limit::Output)) } else { Ok(()) }
    }

    /// The outcome of a run that ended so.
    pub fn finish(self, end: End) -> Outcome {
        Outcome { output: self.output, end }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_whole_tokens() {
        let mut input = Input::new(b" 12\x0b-7\x0c+0009\t-9223372036854775808\r\n9223372036854775807");
        assert_eq!(input.read(), Ok(12));
        assert_eq!(input.read(), Ok(-7));
        assert_eq!(input.read(), Ok(9));
        assert_eq!(input.read(), Ok(i64::MIN));
        assert!(!input.eof());
        assert_eq!(input.read(), Ok(i64::MAX));
        assert!(input.eof());
        assert_eq!(input.read(), Err(Trap::NoInteger));
    }

    #[test]
    fn malformed_tokens() {
        for token in [
            "12abc",
            "0x1F",
            "-",
            "+",
            "--1",
            "+-1",
            "1-",
            "1_0",
            "9223372036854775808",
            "-9223372036854775809",
            "\0",
            "1\0",
        ] {
            assert_eq!(Input::new(token.as_bytes()).read(), Err(Trap::MalformedInteger), "{token:?}");
        }
        assert_eq!(Input::new("99999999999999999999999999".as_bytes()).read(), Err(Trap::MalformedInteger));
    }

    #[test]
    fn arrays_count_against_memory() {
        let mut machine = Machine::new(b"", Limits { memory: 80, ..Limits::default() });
        assert_eq!(machine.allocate(Scalar::Int, -1), Err(Stop::Trap(Trap::NegativeLength { length: -1 })));
        assert_eq!(machine.allocate(Scalar::Int, i64::MAX), Err(Stop::Trap(Trap::OutOfMemory)));
        assert_eq!(machine.allocate(Scalar::Bool, i64::MAX), Err(Stop::Trap(Trap::OutOfMemory)));
        assert_eq!(machine.allocate(Scalar::Int, 10), Ok(10));
        assert_eq!(machine.allocate(Scalar::Bool, 1), Err(Stop::Limit(Limit::Memory)));
        machine.release(Scalar::Int, 10);
        assert_eq!(machine.memory(), 0);
    }

    #[test]
    fn a_limited_run_agrees_with_any_that_goes_on() {
        let outcome = |output: &str, end| Outcome { output: output.as_bytes().to_vec(), end };
        let limited = outcome("1\n", End::Limit(Limit::Steps));
        assert!(limited.agrees(&outcome("1\n2\n", End::Normal)));
        assert!(outcome("1\n2\n", End::Normal).agrees(&limited));
        assert!(!limited.agrees(&outcome("2\n", End::Normal)));
        assert!(!outcome("", End::Normal).agrees(&outcome("", End::Trap(Trap::AssertionFailed, Span::new(0, 6)))));
        let trap = |start, end| outcome("", End::Trap(Trap::AssertionFailed, Span::new(start, end)));
        assert!(trap(0, 6).agrees(&trap(0, 1)));
        assert!(!trap(0, 6).agrees(&trap(1, 6)));
    }
}
