//! What a program is between two stages: one language, with its data; and how each language prints and is counted.
//!
//! **In:** any state of the pipeline. **Out:** its [`Listing`] or its [`Counts`]. Cost: linear in the program.

use crate::emit::{self, code::ProgramCode};
use crate::hir;
use crate::ir::{self, Form};
use crate::regalloc;
use crate::support::internal::Internal;
use crate::support::listing::{Kind, Line, Listing};
use crate::support::span::Source;
use crate::syntax;
use crate::x64::{self, PReg, VReg};
use cranelift_entity::PrimaryMap;

/// The language that a program is in at a point of the pipeline.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Language {
    /// The text of an `.atl` file.
    Source,
    /// Its tokens.
    Tokens,
    /// Its abstract syntax tree.
    Ast,
    /// Names and types resolved.
    Hir,
    /// The IR in one of its forms.
    Ir(Form),
    /// Machine code over virtual registers.
    Virtual,
    /// Machine code over physical registers.
    Physical,
    /// Encoded functions.
    Bytes,
    /// An ELF object.
    Object,
    /// An ELF executable.
    Executable,
}

impl Language {
    /// What starts a comment in the dumps of this language; the parsers of the languages that have one skip it.
    pub fn comment(self) -> &'static str {
        match self {
            Language::Source | Language::Ast | Language::Hir => "//",
            Language::Tokens
            | Language::Ir(_)
            | Language::Virtual
            | Language::Physical
            | Language::Object
            | Language::Executable => ";",
            Language::Bytes => "#",
        }
    }
}

/// What the allocator tells about each function, for explanations and dumps.
pub type AllocationFacts = PrimaryMap<ir::FuncId, regalloc::Facts>;

/// A program between two stages.
#[derive(Debug)]
pub enum State {
    /// The text is in the [`Source`].
    Source,
    /// Tokens, and the tree that the parser made of them.
    Tokens(syntax::Parsed),
    /// The tree of a program without syntax errors.
    Ast(syntax::ast::Ast),
    /// A well-typed program.
    Hir(hir::Program),
    /// IR; all functions are in one form.
    Ir(ir::Program),
    /// Machine code over virtual registers.
    Virtual(x64::Program<VReg>),
    /// Machine code over physical registers, and how they were chosen.
    Physical(x64::Program<PReg>, AllocationFacts),
    /// Bytes of functions.
    Bytes(ProgramCode),
    /// The bytes of an ELF object.
    Object(Vec<u8>),
    /// The bytes of an ELF executable.
    Executable(Vec<u8>),
}

/// How large a program is, for `--time-passes`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Instructions, terminators not counted.
    pub instructions: usize,
    /// φs.
    pub phis: usize,
    /// Copies from one place to another: those of the IR, moves of machine code, each move of a parallel one.
    pub copies: usize,
}

impl State {
    /// The language that it is in.
    pub fn language(&self) -> Language {
        match self {
            State::Source => Language::Source,
            State::Tokens(_) => Language::Tokens,
            State::Ast(_) => Language::Ast,
            State::Hir(_) => Language::Hir,
            State::Ir(program) => Language::Ir(program.functions[program.entry].form),
            State::Virtual(_) => Language::Virtual,
            State::Physical(..) => Language::Physical,
            State::Bytes(_) => Language::Bytes,
            State::Object(_) => Language::Object,
            State::Executable(_) => Language::Executable,
        }
    }

    /// Its listing, in the notation of its language.
    pub fn print(&self, source: &Source) -> Listing {
        match self {
            State::Source => Listing::plain(source.text.lines().map(plain_line).collect()),
            State::Tokens(parsed) => syntax::print_tokens(&parsed.tokens, source),
            State::Ast(ast) => syntax::print_ast(ast),
            State::Hir(program) => hir::print::print(program),
            State::Ir(program) => ir::print::print(program),
            State::Virtual(program) => x64::print::print(program, None),
            State::Physical(program, _) => x64::print::print(program, None),
            State::Bytes(program) => emit::disassemble::run(program, None),
            State::Object(bytes) => elf_summary("relocatable object", bytes),
            State::Executable(bytes) => elf_summary("executable", bytes),
        }
    }

    /// What the verifier of the language finds wrong.
    pub fn verify(&self) -> Result<(), Internal> {
        match self {
            State::Source | State::Tokens(_) | State::Ast(_) | State::Hir(_) => Ok(()),
            State::Ir(program) => ir::verify::verify(program),
            State::Virtual(program) => x64::verify::verify_program(program),
            State::Physical(program, _) => x64::verify::verify_program(program),
            State::Bytes(_) | State::Object(_) | State::Executable(_) => Ok(()),
        }
    }

    /// Its size, for languages of instructions.
    pub fn counts(&self) -> Option<Counts> {
        match self {
            State::Source | State::Tokens(_) | State::Ast(_) | State::Hir(_) => None,
            State::Ir(program) => Some(program.functions.values().map(ir_counts).fold(Counts::default(), Counts::plus)),
            State::Virtual(program) => {
                Some(program.functions.values().map(machine_counts).fold(Counts::default(), Counts::plus))
            }
            State::Physical(program, _) => {
                Some(program.functions.values().map(machine_counts).fold(Counts::default(), Counts::plus))
            }
            State::Bytes(_) | State::Object(_) | State::Executable(_) => None,
        }
    }
}

impl Counts {
    fn plus(self, other: Counts) -> Counts {
        Counts {
            instructions: self.instructions + other.instructions,
            phis: self.phis + other.phis,
            copies: self.copies + other.copies,
        }
    }
}

fn ir_counts(function: &ir::Function) -> Counts {
    let mut counts = Counts::default();
    for block in function.layout.iter().map(|block| &function.blocks[*block]) {
        counts.phis += block.params.len();
        counts.instructions += block.insts.len();
        for inst in &block.insts {
            match &function.insts[*inst].op {
                ir::Op::Copy(_) => counts.copies += 1,
                ir::Op::Parallel(copies) => counts.copies += copies.len(),
                ir::Op::Binary { .. }
                | ir::Op::Compare { .. }
                | ir::Op::Unary { .. }
                | ir::Op::Select { .. }
                | ir::Op::Array { .. }
                | ir::Op::Free(_)
                | ir::Op::Len(_)
                | ir::Op::Bounds { .. }
                | ir::Op::Load { .. }
                | ir::Op::Store { .. }
                | ir::Op::Call { .. }
                | ir::Op::Read
                | ir::Op::Eof
                | ir::Op::Print(_)
                | ir::Op::Assert(_) => {}
            }
        }
    }
    counts
}

fn machine_counts<R: Copy>(function: &x64::Function<R>) -> Counts {
    let mut counts = Counts::default();
    for block in function.layout.iter().map(|block| &function.blocks[*block]) {
        counts.instructions += block.insts.len();
        for inst in &block.insts {
            counts.copies += match &inst.op {
                x64::Op::Mov { .. } | x64::Op::Xchg { .. } => 1,
                x64::Op::Parallel { moves } => moves.len(),
                x64::Op::Imm { .. }
                | x64::Op::StrAddress { .. }
                | x64::Op::Load { .. }
                | x64::Op::Store { .. }
                | x64::Op::Lea { .. }
                | x64::Op::Alu { .. }
                | x64::Op::Unary { .. }
                | x64::Op::Shift { .. }
                | x64::Op::Imul { .. }
                | x64::Op::ImulImm { .. }
                | x64::Op::MulHigh { .. }
                | x64::Op::SignExtend { .. }
                | x64::Op::Div { .. }
                | x64::Op::Cmp { .. }
                | x64::Op::CmpByte { .. }
                | x64::Op::Test { .. }
                | x64::Op::Set { .. }
                | x64::Op::Cmov { .. }
                | x64::Op::Call { .. }
                | x64::Op::Trap { .. }
                | x64::Op::Push { .. }
                | x64::Op::Pop { .. } => 0,
            };
        }
    }
    counts
}

fn plain_line(text: &str) -> Line {
    let mut line = Line::new();
    line.put(Kind::Plain, text);
    line
}

/// Files of bytes are not for reading: their kind and size.
fn elf_summary(kind: &str, bytes: &[u8]) -> Listing {
    Listing::plain(vec![plain_line(&format!("ELF {kind}, {} bytes", bytes.len()))])
}
