//! Encoded machine code: bytes, what they refer to, and where each comes from. Made by `encode`, read by `object` and
//! `disassemble`.

use crate::support::ids::{FuncId, StrId};
use crate::support::span::Span;
use crate::x64::runtime::RuntimeFn;
use cranelift_entity::PrimaryMap;

/// What a relocation refers to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Target {
    /// A function of the program.
    Function(FuncId),
    /// A function of the runtime.
    Runtime(RuntimeFn),
    /// A string literal.
    Str(StrId),
}

/// How the four bytes at the relocation's offset are to be filled.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum RelocKind {
    /// The displacement of a call or jump (`R_X86_64_PLT32`).
    Branch,
    /// A rip-relative displacement to data (`R_X86_64_PC32`).
    Data,
}

/// Four bytes that linking fills in.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct Reloc {
    /// Offset of the four bytes within the function.
    pub offset: u32,
    /// How to fill them.
    pub kind: RelocKind,
    /// What they refer to.
    pub target: Target,
    /// Added to the target's address; -4 where the four bytes end their instruction.
    pub addend: i32,
}

/// One function's bytes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FunctionCode {
    /// Its name in listings.
    pub name: String,
    /// Its symbol.
    pub symbol: String,
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// What linking fills in, by offset.
    pub relocs: Vec<Reloc>,
    /// From this offset on, the code comes from this span, until the next mark. By offset.
    pub marks: Vec<(u32, Span)>,
    /// The offset of each block, by block number; `None` for blocks that are not in the code.
    pub blocks: Vec<Option<u32>>,
}

/// A program's bytes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProgramCode {
    /// All functions.
    pub functions: PrimaryMap<FuncId, FunctionCode>,
    /// The program's body; its symbol is `ENTRY_SYMBOL`.
    pub entry: FuncId,
    /// The string literals.
    pub strings: PrimaryMap<StrId, String>,
    /// The source's name, as run-time errors show it.
    pub source_name: String,
}
