//! Machine code: functions of blocks of x86-64 instructions, generic over the kind of register.
//!
//! `Function<VReg>` is what selection makes: virtual registers, assigned as often as need be (two-address instructions
//! read and write their first operand), some of them pinned to the physical register that an instruction demands.
//! `Function<PReg>` is what allocation makes. Both are printed, verified and interpreted by the same code.
//!
//! Operands that may stand in memory are [`RegMem`]s: allocation may put a stack slot there, as long as the instruction
//! keeps at most one memory operand. The flags are not a register: what reads them (`set`, `cmov`, `trap`, `branch`)
//! stands behind what sets them with only flag-keeping instructions between ([`Op::writes_flags`]).
//!
//! Invariants: uses are read before defs are written, so that a def may share a register with a use that ends there; a
//! `Mod` is both. A pinned virtual register lives within one block. Cost: an instruction is about 100 bytes.

use super::registers::{PReg, RegSet, VReg};
use super::runtime::RuntimeFn;
use crate::semantics::Scalar;
pub use crate::support::ids::{Block, FuncId, Inst as IrInst, StrId, Value};
use crate::support::span::{Positions, Span};
use cranelift_entity::{PrimaryMap, packed_option::PackedOption};
use smallvec::SmallVec;

/// The width of an operation. 32-bit ones zero the upper half of what they write, which is always a register.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Width {
    W32,
    W64,
}

/// An 8-byte place in the stack frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord)]
pub enum Slot {
    /// The allocator's, numbered from 0.
    Spill(u32),
    /// The caller's: stack argument number n (the seventh argument is 0).
    Incoming(u32),
    /// Of the callee-to-be: stack argument number n of the next call.
    Outgoing(u32),
}

/// `[base + index * scale + disp]`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct Address<R> {
    /// The base register, if any.
    pub base: Option<R>,
    /// The index register, never rsp, and its factor: 1, 2, 4 or 8.
    pub index: Option<(R, u8)>,
    /// The displacement.
    pub disp: i32,
}

/// A register or memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum RegMem<R> {
    Reg(R),
    Slot(Slot),
    Mem(Address<R>),
}

/// A register, memory or an immediate. Immediates wider than 32 signed bits only where an operand says so.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum RegMemImm<R> {
    Reg(R),
    Slot(Slot),
    Mem(Address<R>),
    Imm(i64),
}

impl<R> From<RegMem<R>> for RegMemImm<R> {
    fn from(operand: RegMem<R>) -> RegMemImm<R> {
        match operand {
            RegMem::Reg(reg) => RegMemImm::Reg(reg),
            RegMem::Slot(slot) => RegMemImm::Slot(slot),
            RegMem::Mem(address) => RegMemImm::Mem(address),
        }
    }
}

impl<R> TryFrom<RegMemImm<R>> for RegMem<R> {
    type Error = i64;

    /// The operand, or the value of the immediate that it is.
    fn try_from(operand: RegMemImm<R>) -> Result<RegMem<R>, i64> {
        match operand {
            RegMemImm::Reg(reg) => Ok(RegMem::Reg(reg)),
            RegMemImm::Slot(slot) => Ok(RegMem::Slot(slot)),
            RegMemImm::Mem(address) => Ok(RegMem::Mem(address)),
            RegMemImm::Imm(value) => Err(value),
        }
    }
}

/// Two-operand arithmetic that sets the flags.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum AluOp {
    Add,
    Sub,
    And,
    Or,
    Xor,
}

impl AluOp {
    /// Its mnemonic.
    pub fn name(self) -> &'static str {
        match self {
            AluOp::Add => "add",
            AluOp::Sub => "sub",
            AluOp::And => "and",
            AluOp::Or => "or",
            AluOp::Xor => "xor",
        }
    }
}

/// One-operand arithmetic.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum UnaryOp {
    /// Sets the flags.
    Neg,
    /// Keeps the flags.
    Not,
}

impl UnaryOp {
    /// Its mnemonic.
    pub fn name(self) -> &'static str {
        match self {
            UnaryOp::Neg => "neg",
            UnaryOp::Not => "not",
        }
    }
}

/// Shifts and rotations.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum ShiftOp {
    Shl,
    /// Logical.
    Shr,
    /// Arithmetic.
    Sar,
    Rol,
    Ror,
}

impl ShiftOp {
    /// Its mnemonic.
    pub fn name(self) -> &'static str {
        match self {
            ShiftOp::Shl => "shl",
            ShiftOp::Shr => "shr",
            ShiftOp::Sar => "sar",
            ShiftOp::Rol => "rol",
            ShiftOp::Ror => "ror",
        }
    }
}

/// The count of a shift.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Count<R> {
    /// 0 to 63.
    Imm(u8),
    /// The low 6 bits of rcx: the register must be (pinned to) rcx.
    Cl(R),
}

/// A condition on the flags, by its hardware number.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[repr(u8)]
pub enum Cond {
    O = 0,
    NO = 1,
    B = 2,
    AE = 3,
    E = 4,
    NE = 5,
    BE = 6,
    A = 7,
    S = 8,
    NS = 9,
    L = 12,
    GE = 13,
    LE = 14,
    G = 15,
}

impl Cond {
    /// All of them.
    pub const ALL: [Cond; 14] = [
        Cond::O,
        Cond::NO,
        Cond::B,
        Cond::AE,
        Cond::E,
        Cond::NE,
        Cond::BE,
        Cond::A,
        Cond::S,
        Cond::NS,
        Cond::L,
        Cond::GE,
        Cond::LE,
        Cond::G,
    ];

    /// The condition that holds exactly when this one does not.
    pub fn negate(self) -> Cond {
        match self {
            Cond::O => Cond::NO,
            Cond::NO => Cond::O,
            Cond::B => Cond::AE,
            Cond::AE => Cond::B,
            Cond::E => Cond::NE,
            Cond::NE => Cond::E,
            Cond::BE => Cond::A,
            Cond::A => Cond::BE,
            Cond::S => Cond::NS,
            Cond::NS => Cond::S,
            Cond::L => Cond::GE,
            Cond::GE => Cond::L,
            Cond::LE => Cond::G,
            Cond::G => Cond::LE,
        }
    }

    /// The condition that holds for `b, a` when this one holds for `a, b` compared; `None` for single flags.
    pub fn swap(self) -> Option<Cond> {
        match self {
            Cond::B => Some(Cond::A),
            Cond::A => Some(Cond::B),
            Cond::AE => Some(Cond::BE),
            Cond::BE => Some(Cond::AE),
            Cond::L => Some(Cond::G),
            Cond::G => Some(Cond::L),
            Cond::GE => Some(Cond::LE),
            Cond::LE => Some(Cond::GE),
            Cond::E => Some(Cond::E),
            Cond::NE => Some(Cond::NE),
            Cond::O | Cond::NO | Cond::S | Cond::NS => None,
        }
    }

    /// Its suffix in mnemonics.
    pub fn name(self) -> &'static str {
        match self {
            Cond::O => "o",
            Cond::NO => "no",
            Cond::B => "b",
            Cond::AE => "ae",
            Cond::E => "e",
            Cond::NE => "ne",
            Cond::BE => "be",
            Cond::A => "a",
            Cond::S => "s",
            Cond::NS => "ns",
            Cond::L => "l",
            Cond::GE => "ge",
            Cond::LE => "le",
            Cond::G => "g",
        }
    }
}

/// What a call calls.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Callee {
    /// A function of the program.
    Function(FuncId),
    /// A function of the runtime.
    Runtime(RuntimeFn),
}

/// A run-time error found by inline code. Its position is the start of the instruction's span.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum TrapKind {
    /// No arguments.
    Division,
    /// Arguments: the index and the length.
    Index,
    /// No arguments.
    Assert,
}

impl TrapKind {
    /// All of them.
    pub const ALL: [TrapKind; 3] = [TrapKind::Division, TrapKind::Index, TrapKind::Assert];

    /// Its name in listings.
    pub fn name(self) -> &'static str {
        match self {
            TrapKind::Division => "division",
            TrapKind::Index => "index",
            TrapKind::Assert => "assert",
        }
    }

    /// The function of the runtime that reports it.
    pub fn handler(self) -> RuntimeFn {
        match self {
            TrapKind::Division => RuntimeFn::TrapDivision,
            TrapKind::Index => RuntimeFn::TrapIndex,
            TrapKind::Assert => RuntimeFn::TrapAssert,
        }
    }
}

/// What an instruction does. Destinations first, as in Intel syntax.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Op<R> {
    /// `mov dst, src`; at most one in memory. A copy: coalescing tries to make both one.
    Mov { dst: RegMem<R>, src: RegMem<R> },
    /// `mov dst, value`; in memory only values of 32 signed bits. Keeps the flags. Can be done again anywhere.
    Imm { dst: RegMem<R>, value: i64 },
    /// `lea dst, string`: the address of a literal. Can be done again anywhere.
    StrAddress { dst: R, string: StrId },
    /// All sources are read before any destination is written: arguments and results around calls and on entry.
    /// Sources may be immediates of 64 bits. Destinations are distinct. Allocation turns it into a sequence.
    Parallel { moves: Vec<(RegMem<R>, RegMemImm<R>)> },
    /// Reads an array element (or its length): 8 bytes, or one that is zero-extended.
    Load { ty: Scalar, dst: R, src: Address<R> },
    /// Writes an array element; an immediate of 32 signed bits, sign-extended.
    Store { ty: Scalar, dst: Address<R>, src: StoreSource<R> },
    /// `lea dst, src`.
    Lea { width: Width, dst: R, src: Address<R> },
    /// `op dst, src`: dst ← dst op src.
    Alu { op: AluOp, width: Width, dst: RegMem<R>, src: RegMemImm<R> },
    /// `op dst`.
    Unary { op: UnaryOp, width: Width, dst: RegMem<R> },
    /// `op dst, count`. Sets the flags unless the count is 0; they count as written.
    Shift { op: ShiftOp, width: Width, dst: RegMem<R>, count: Count<R> },
    /// `imul dst, src`: dst ← dst * src. Leaves the flags undefined.
    Imul { dst: R, src: RegMem<R> },
    /// `imul dst, src, imm`.
    ImulImm { dst: R, src: RegMem<R>, imm: i32 },
    /// `imul src` or `mul src`: hi:lo ← lo * src; lo is rax, hi is rdx.
    MulHigh { signed: bool, lo: R, hi: R, src: RegMem<R> },
    /// `cqo`: hi ← sign of lo; lo is rax, hi is rdx. Keeps the flags.
    SignExtend { hi: R, lo: R },
    /// `idiv src` or `div src`: lo ← hi:lo / src, hi ← the remainder; lo is rax, hi is rdx. Faults on zero and where the
    /// quotient does not fit, so it stands behind checks for both. The 32-bit form reads the low halves (eax, edx and the
    /// low 4 bytes of `src`) and zeroes the upper ones of what it writes.
    Div { signed: bool, width: Width, lo: R, hi: R, src: RegMem<R> },
    /// `cmp lhs, rhs`.
    Cmp { width: Width, lhs: RegMem<R>, rhs: RegMemImm<R> },
    /// `cmp byte [lhs], imm`: compares a bool in memory.
    CmpByte { lhs: Address<R>, imm: i8 },
    /// `test lhs, rhs`.
    Test { width: Width, lhs: RegMem<R>, rhs: RegMemImm<R> },
    /// `setcc dst8`: writes only the low byte; dst holds 0 or 1 before, so that it holds 0 or 1 after.
    Set { cond: Cond, dst: R },
    /// `cmovcc dst, src`: dst ← src if the condition holds.
    Cmov { cond: Cond, dst: R, src: RegMem<R> },
    /// Calls. `args` are the pinned registers that it reads, `result` the one that it defines (rax). All of
    /// [`RegSet::CALLER_SAVED`] is overwritten. Outgoing slots 0 to `stack_args` - 1 are read.
    Call { callee: Callee, args: SmallVec<[R; 6]>, stack_args: u32, result: Option<R> },
    /// If the condition holds (`None`: always), the program ends with a run-time error: a jump to code out of line, which
    /// brings the arguments into place and calls the runtime.
    Trap { cond: Option<Cond>, kind: TrapKind, args: SmallVec<[RegMemImm<R>; 2]> },
    /// `push src`; only made by allocation, within the sequence of a parallel move, and popped there.
    Push { src: RegMem<R> },
    /// `pop dst`.
    Pop { dst: RegMem<R> },
    /// `xchg a, b`; only made by allocation.
    Xchg { a: R, b: R },
}

/// What a store writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum StoreSource<R> {
    Reg(R),
    Imm(i32),
}

/// How a block ends. A branch reads the flags.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Terminator<R> {
    /// `jmp`
    Jump(Block),
    /// `jcc then`, else `els`.
    Branch { cond: Cond, then: Block, els: Block },
    /// `ret`, with the result in rax.
    Return { value: Option<R> },
    /// A call in tail position: the frame is taken down and control passes to the callee. `args` as for a call.
    TailCall { callee: FuncId, args: SmallVec<[R; 6]> },
    /// Control cannot come here.
    Unreachable,
}

impl<R> Terminator<R> {
    /// The blocks that control may go to, in order.
    pub fn successors(&self) -> SmallVec<[Block; 2]> {
        match self {
            Terminator::Jump(target) => SmallVec::from_slice(&[*target]),
            Terminator::Branch { then, els, .. } => SmallVec::from_slice(&[*then, *els]),
            Terminator::Return { .. } | Terminator::TailCall { .. } | Terminator::Unreachable => SmallVec::new(),
        }
    }

    /// Calls `change` on each successor.
    pub fn for_each_successor_mut(&mut self, mut change: impl FnMut(&mut Block)) {
        match self {
            Terminator::Jump(target) => change(target),
            Terminator::Branch { then, els, .. } => {
                change(then);
                change(els);
            }
            Terminator::Return { .. } | Terminator::TailCall { .. } | Terminator::Unreachable => {}
        }
    }
}

/// An instruction with where it comes from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Inst<R> {
    /// What it does.
    pub op: Op<R>,
    /// Where it comes from in the source.
    pub span: Span,
    /// The IR instruction that it was selected for; none for what a terminator needed or the allocator made.
    pub origin: PackedOption<IrInst>,
}

/// A basic block.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BlockData<R> {
    /// Its instructions.
    pub insts: Vec<Inst<R>>,
    /// How it ends.
    pub term: Terminator<R>,
    /// Where the terminator comes from.
    pub term_span: Span,
    /// How many loops it is in; spill costs grow with it.
    pub loop_depth: u32,
}

/// What is known of a virtual register.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VRegData {
    /// The physical register that it must be.
    pub pinned: Option<PReg>,
    /// The IR value that it holds.
    pub value: PackedOption<Value>,
}

/// The stack frame, known after allocation.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Frame {
    /// Number of spill slots.
    pub spill_slots: u32,
    /// Number of slots for stack arguments of calls: the most that any call needs.
    pub outgoing: u32,
    /// Callee-saved registers that the function uses, and so saves.
    pub saved: RegSet,
    /// Does it call anything that returns? If not, the stack need not be aligned.
    pub calls: bool,
}

/// A function in machine code.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Function<R> {
    /// Its name in listings.
    pub name: String,
    /// Its symbol in the object.
    pub symbol: String,
    /// Number of stack arguments that it takes.
    pub incoming: u32,
    /// The blocks, in the order of emission; the entry first. It has no predecessors.
    pub layout: Vec<Block>,
    /// Records of all blocks.
    pub blocks: PrimaryMap<Block, BlockData<R>>,
    /// Records of all virtual registers (kept after allocation, for explanations).
    pub vregs: PrimaryMap<VReg, VRegData>,
    /// The stack frame.
    pub frame: Frame,
}

/// A program in machine code.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Program<R> {
    /// All functions.
    pub functions: PrimaryMap<FuncId, Function<R>>,
    /// The program's body.
    pub entry: FuncId,
    /// The string literals.
    pub strings: PrimaryMap<StrId, String>,
    /// The source's name, as run-time errors show it.
    pub source_name: String,
    /// Where its spans are in the source, for run-time errors.
    pub positions: Positions,
}

/// Does an operand read its register, write it, or both?
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Role {
    Use,
    Def,
    Mod,
}

/// Where an operand's register may live.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Constraint {
    /// In a register.
    Reg,
    /// In a register or, if the instruction has no other memory operand, in a slot. In `Parallel` and `Trap` any number
    /// of operands may be slots.
    Any,
}

impl<R: Copy> Address<R> {
    /// `[base + disp]`.
    pub fn base(base: R, disp: i32) -> Address<R> {
        Address { base: Some(base), index: None, disp }
    }

    fn for_each(&self, visit: &mut impl FnMut(R, Role, Constraint)) {
        if let Some(base) = self.base {
            visit(base, Role::Use, Constraint::Reg);
        }
        if let Some((index, _)) = self.index {
            visit(index, Role::Use, Constraint::Reg);
        }
    }

    fn map<S>(&self, map: &mut impl FnMut(R, Role, Constraint) -> RegMem<S>) -> Address<S> {
        Address {
            base: self.base.map(|base| in_register(map(base, Role::Use, Constraint::Reg))),
            index: self.index.map(|(index, scale)| (in_register(map(index, Role::Use, Constraint::Reg)), scale)),
            disp: self.disp,
        }
    }
}

fn in_register<S>(operand: RegMem<S>) -> S {
    match operand {
        RegMem::Reg(reg) => reg,
        RegMem::Slot(_) | RegMem::Mem(_) => panic!("an operand that must be in a register was put in memory"),
    }
}

impl<R: Copy> RegMem<R> {
    fn for_each(&self, role: Role, visit: &mut impl FnMut(R, Role, Constraint)) {
        match self {
            RegMem::Reg(reg) => visit(*reg, role, Constraint::Any),
            RegMem::Slot(_) => {}
            RegMem::Mem(address) => address.for_each(visit),
        }
    }

    fn map<S>(&self, role: Role, map: &mut impl FnMut(R, Role, Constraint) -> RegMem<S>) -> RegMem<S> {
        match self {
            RegMem::Reg(reg) => map(*reg, role, Constraint::Any),
            RegMem::Slot(slot) => RegMem::Slot(*slot),
            RegMem::Mem(address) => RegMem::Mem(address.map(map)),
        }
    }

    /// As `for_each`, for what an operation of that width changes: only a register has its upper half zeroed by a 32-bit
    /// one, so there it may not become a slot.
    fn for_each_mod(&self, width: Width, visit: &mut impl FnMut(R, Role, Constraint)) {
        match (self, width) {
            (RegMem::Reg(reg), Width::W32) => visit(*reg, Role::Mod, Constraint::Reg),
            (_, Width::W32 | Width::W64) => self.for_each(Role::Mod, visit),
        }
    }

    /// As `map`, for what an operation of that width changes.
    fn map_mod<S>(&self, width: Width, map: &mut impl FnMut(R, Role, Constraint) -> RegMem<S>) -> RegMem<S> {
        match (self, width) {
            (RegMem::Reg(reg), Width::W32) => RegMem::Reg(in_register(map(*reg, Role::Mod, Constraint::Reg))),
            (_, Width::W32 | Width::W64) => self.map(Role::Mod, map),
        }
    }

    /// The register, if it is one.
    pub fn reg(self) -> Option<R> {
        match self {
            RegMem::Reg(reg) => Some(reg),
            RegMem::Slot(_) | RegMem::Mem(_) => None,
        }
    }
}

impl<R: Copy> RegMemImm<R> {
    fn for_each(&self, visit: &mut impl FnMut(R, Role, Constraint)) {
        match self {
            RegMemImm::Reg(reg) => visit(*reg, Role::Use, Constraint::Any),
            RegMemImm::Slot(_) | RegMemImm::Imm(_) => {}
            RegMemImm::Mem(address) => address.for_each(visit),
        }
    }

    fn map<S>(&self, map: &mut impl FnMut(R, Role, Constraint) -> RegMem<S>) -> RegMemImm<S> {
        match self {
            RegMemImm::Reg(reg) => map(*reg, Role::Use, Constraint::Any).into(),
            RegMemImm::Slot(slot) => RegMemImm::Slot(*slot),
            RegMemImm::Mem(address) => RegMemImm::Mem(address.map(map)),
            RegMemImm::Imm(value) => RegMemImm::Imm(*value),
        }
    }
}

impl<R: Copy> Op<R> {
    /// Calls `visit` on every register operand. The order is that of [`Op::map`].
    pub fn for_each_reg(&self, mut visit: impl FnMut(R, Role, Constraint)) {
        let visit = &mut visit;
        match self {
            Op::Mov { dst, src } => {
                dst.for_each(Role::Def, visit);
                src.for_each(Role::Use, visit);
            }
            Op::Imm { dst, .. } => dst.for_each(Role::Def, visit),
            Op::StrAddress { dst, .. } => visit(*dst, Role::Def, Constraint::Reg),
            Op::Parallel { moves } => {
                for (dst, src) in moves {
                    dst.for_each(Role::Def, visit);
                    src.for_each(visit);
                }
            }
            Op::Load { dst, src, .. } | Op::Lea { dst, src, .. } => {
                visit(*dst, Role::Def, Constraint::Reg);
                src.for_each(visit);
            }
            Op::Store { dst, src, .. } => {
                dst.for_each(visit);
                match src {
                    StoreSource::Reg(reg) => visit(*reg, Role::Use, Constraint::Reg),
                    StoreSource::Imm(_) => {}
                }
            }
            Op::Alu { width, dst, src, .. } => {
                dst.for_each_mod(*width, visit);
                src.for_each(visit);
            }
            Op::Unary { width, dst, .. } => dst.for_each_mod(*width, visit),
            Op::Shift { width, dst, count, .. } => {
                dst.for_each_mod(*width, visit);
                match count {
                    Count::Cl(reg) => visit(*reg, Role::Use, Constraint::Reg),
                    Count::Imm(_) => {}
                }
            }
            Op::Imul { dst, src } | Op::Cmov { dst, src, .. } => {
                visit(*dst, Role::Mod, Constraint::Reg);
                src.for_each(Role::Use, visit);
            }
            Op::ImulImm { dst, src, .. } => {
                visit(*dst, Role::Def, Constraint::Reg);
                src.for_each(Role::Use, visit);
            }
            Op::MulHigh { lo, hi, src, .. } => {
                visit(*lo, Role::Mod, Constraint::Reg);
                visit(*hi, Role::Def, Constraint::Reg);
                src.for_each(Role::Use, visit);
            }
            Op::SignExtend { hi, lo } => {
                visit(*hi, Role::Def, Constraint::Reg);
                visit(*lo, Role::Use, Constraint::Reg);
            }
            Op::Div { lo, hi, src, .. } => {
                visit(*lo, Role::Mod, Constraint::Reg);
                visit(*hi, Role::Mod, Constraint::Reg);
                src.for_each(Role::Use, visit);
            }
            Op::Cmp { lhs, rhs, .. } | Op::Test { lhs, rhs, .. } => {
                lhs.for_each(Role::Use, visit);
                rhs.for_each(visit);
            }
            Op::CmpByte { lhs, .. } => lhs.for_each(visit),
            Op::Set { dst, .. } => visit(*dst, Role::Mod, Constraint::Reg),
            Op::Call { args, result, .. } => {
                args.iter().for_each(|arg| visit(*arg, Role::Use, Constraint::Reg));
                if let Some(result) = result {
                    visit(*result, Role::Def, Constraint::Reg);
                }
            }
            Op::Trap { args, .. } => args.iter().for_each(|arg| arg.for_each(visit)),
            Op::Push { src } => src.for_each(Role::Use, visit),
            Op::Pop { dst } => dst.for_each(Role::Def, visit),
            Op::Xchg { a, b } => {
                visit(*a, Role::Mod, Constraint::Reg);
                visit(*b, Role::Mod, Constraint::Reg);
            }
        }
    }

    /// Calls `visit` on every slot that it names.
    pub fn for_each_slot(&self, mut visit: impl FnMut(Slot)) {
        let mut reg_mem = |operand: &RegMem<R>| match operand {
            RegMem::Slot(slot) => visit(*slot),
            RegMem::Reg(_) | RegMem::Mem(_) => {}
        };
        let reg_mem = &mut reg_mem;
        let mut any = |operand: &RegMemImm<R>| match operand {
            RegMemImm::Slot(slot) => reg_mem(&RegMem::Slot(*slot)),
            RegMemImm::Reg(_) | RegMemImm::Mem(_) | RegMemImm::Imm(_) => {}
        };
        match self {
            Op::Mov { dst, src } => {
                any(&(*dst).into());
                any(&(*src).into());
            }
            Op::Parallel { moves } => moves.iter().for_each(|(dst, src)| {
                any(&(*dst).into());
                any(src);
            }),
            Op::Alu { dst: lhs, src: rhs, .. } | Op::Cmp { lhs, rhs, .. } | Op::Test { lhs, rhs, .. } => {
                any(&(*lhs).into());
                any(rhs);
            }
            Op::Imm { dst: operand, .. }
            | Op::Unary { dst: operand, .. }
            | Op::Shift { dst: operand, .. }
            | Op::Imul { src: operand, .. }
            | Op::ImulImm { src: operand, .. }
            | Op::MulHigh { src: operand, .. }
            | Op::Div { src: operand, .. }
            | Op::Cmov { src: operand, .. }
            | Op::Push { src: operand }
            | Op::Pop { dst: operand } => any(&(*operand).into()),
            Op::Trap { args, .. } => args.iter().for_each(any),
            Op::StrAddress { .. }
            | Op::Load { .. }
            | Op::Store { .. }
            | Op::Lea { .. }
            | Op::SignExtend { .. }
            | Op::CmpByte { .. }
            | Op::Set { .. }
            | Op::Call { .. }
            | Op::Xchg { .. } => {}
        }
    }

    /// The same instruction with every register operand replaced. Where the constraint is `Reg`, `map` must give a
    /// register.
    pub fn map<S>(&self, mut map: impl FnMut(R, Role, Constraint) -> RegMem<S>) -> Op<S> {
        let map = &mut map;
        match self {
            Op::Mov { dst, src } => Op::Mov { dst: dst.map(Role::Def, map), src: src.map(Role::Use, map) },
            Op::Imm { dst, value } => Op::Imm { dst: dst.map(Role::Def, map), value: *value },
            Op::StrAddress { dst, string } => {
                Op::StrAddress { dst: in_register(map(*dst, Role::Def, Constraint::Reg)), string: *string }
            }
            Op::Parallel { moves } => {
                Op::Parallel { moves: moves.iter().map(|(dst, src)| (dst.map(Role::Def, map), src.map(map))).collect() }
            }
            Op::Load { ty, dst, src } => {
                Op::Load { ty: *ty, dst: in_register(map(*dst, Role::Def, Constraint::Reg)), src: src.map(map) }
            }
            Op::Store { ty, dst, src } => Op::Store {
                ty: *ty,
                dst: dst.map(map),
                src: match src {
                    StoreSource::Reg(reg) => StoreSource::Reg(in_register(map(*reg, Role::Use, Constraint::Reg))),
                    StoreSource::Imm(value) => StoreSource::Imm(*value),
                },
            },
            Op::Lea { width, dst, src } => {
                Op::Lea { width: *width, dst: in_register(map(*dst, Role::Def, Constraint::Reg)), src: src.map(map) }
            }
            Op::Alu { op, width, dst, src } => {
                Op::Alu { op: *op, width: *width, dst: dst.map_mod(*width, map), src: src.map(map) }
            }
            Op::Unary { op, width, dst } => Op::Unary { op: *op, width: *width, dst: dst.map_mod(*width, map) },
            Op::Shift { op, width, dst, count } => Op::Shift {
                op: *op,
                width: *width,
                dst: dst.map_mod(*width, map),
                count: match count {
                    Count::Imm(count) => Count::Imm(*count),
                    Count::Cl(reg) => Count::Cl(in_register(map(*reg, Role::Use, Constraint::Reg))),
                },
            },
            Op::Imul { dst, src } => {
                Op::Imul { dst: in_register(map(*dst, Role::Mod, Constraint::Reg)), src: src.map(Role::Use, map) }
            }
            Op::ImulImm { dst, src, imm } => Op::ImulImm {
                dst: in_register(map(*dst, Role::Def, Constraint::Reg)),
                src: src.map(Role::Use, map),
                imm: *imm,
            },
            Op::MulHigh { signed, lo, hi, src } => Op::MulHigh {
                signed: *signed,
                lo: in_register(map(*lo, Role::Mod, Constraint::Reg)),
                hi: in_register(map(*hi, Role::Def, Constraint::Reg)),
                src: src.map(Role::Use, map),
            },
            Op::SignExtend { hi, lo } => Op::SignExtend {
                hi: in_register(map(*hi, Role::Def, Constraint::Reg)),
                lo: in_register(map(*lo, Role::Use, Constraint::Reg)),
            },
            Op::Div { signed, width, lo, hi, src } => Op::Div {
                signed: *signed,
                width: *width,
                lo: in_register(map(*lo, Role::Mod, Constraint::Reg)),
                hi: in_register(map(*hi, Role::Mod, Constraint::Reg)),
                src: src.map(Role::Use, map),
            },
            Op::Cmp { width, lhs, rhs } => Op::Cmp { width: *width, lhs: lhs.map(Role::Use, map), rhs: rhs.map(map) },
            Op::CmpByte { lhs, imm } => Op::CmpByte { lhs: lhs.map(map), imm: *imm },
            Op::Test { width, lhs, rhs } => Op::Test { width: *width, lhs: lhs.map(Role::Use, map), rhs: rhs.map(map) },
            Op::Set { cond, dst } => Op::Set { cond: *cond, dst: in_register(map(*dst, Role::Mod, Constraint::Reg)) },
            Op::Cmov { cond, dst, src } => Op::Cmov {
                cond: *cond,
                dst: in_register(map(*dst, Role::Mod, Constraint::Reg)),
                src: src.map(Role::Use, map),
            },
            Op::Call { callee, args, stack_args, result } => Op::Call {
                callee: *callee,
                args: args.iter().map(|arg| in_register(map(*arg, Role::Use, Constraint::Reg))).collect(),
                stack_args: *stack_args,
                result: result.map(|result| in_register(map(result, Role::Def, Constraint::Reg))),
            },
            Op::Trap { cond, kind, args } => {
                Op::Trap { cond: *cond, kind: *kind, args: args.iter().map(|arg| arg.map(map)).collect() }
            }
            Op::Push { src } => Op::Push { src: src.map(Role::Use, map) },
            Op::Pop { dst } => Op::Pop { dst: dst.map(Role::Def, map) },
            Op::Xchg { a, b } => Op::Xchg {
                a: in_register(map(*a, Role::Mod, Constraint::Reg)),
                b: in_register(map(*b, Role::Mod, Constraint::Reg)),
            },
        }
    }

    /// May it change the flags (or leave them undefined)?
    pub fn writes_flags(&self) -> bool {
        match self {
            Op::Alu { .. }
            | Op::Shift { .. }
            | Op::Imul { .. }
            | Op::ImulImm { .. }
            | Op::MulHigh { .. }
            | Op::Div { .. }
            | Op::Cmp { .. }
            | Op::CmpByte { .. }
            | Op::Test { .. }
            | Op::Call { .. } => true,
            Op::Unary { op, .. } => *op == UnaryOp::Neg,
            Op::Mov { .. }
            | Op::Imm { .. }
            | Op::StrAddress { .. }
            | Op::Parallel { .. }
            | Op::Load { .. }
            | Op::Store { .. }
            | Op::Lea { .. }
            | Op::SignExtend { .. }
            | Op::Set { .. }
            | Op::Cmov { .. }
            | Op::Trap { .. }
            | Op::Push { .. }
            | Op::Pop { .. }
            | Op::Xchg { .. } => false,
        }
    }

    /// Does it read the flags?
    pub fn reads_flags(&self) -> bool {
        matches!(self, Op::Set { .. } | Op::Cmov { .. } | Op::Trap { cond: Some(_), .. })
    }

    /// The registers that it overwrites besides its operands: with pinned operands, only calls do.
    pub fn clobbers(&self) -> RegSet {
        if matches!(self, Op::Call { .. }) { RegSet::CALLER_SAVED } else { RegSet::EMPTY }
    }
}

impl<R: Copy> Terminator<R> {
    /// Calls `visit` on every register operand; all are uses, in registers.
    pub fn for_each_reg(&self, mut visit: impl FnMut(R, Role, Constraint)) {
        match self {
            Terminator::Return { value } => value.iter().for_each(|reg| visit(*reg, Role::Use, Constraint::Reg)),
            Terminator::TailCall { args, .. } => {
                args.iter().for_each(|reg| visit(*reg, Role::Use, Constraint::Reg));
            }
            Terminator::Jump(_) | Terminator::Branch { .. } | Terminator::Unreachable => {}
        }
    }

    /// The same terminator with every register replaced.
    pub fn map<S>(&self, mut map: impl FnMut(R) -> S) -> Terminator<S> {
        match self {
            Terminator::Jump(target) => Terminator::Jump(*target),
            Terminator::Branch { cond, then, els } => Terminator::Branch { cond: *cond, then: *then, els: *els },
            Terminator::Return { value } => Terminator::Return { value: value.map(map) },
            Terminator::TailCall { callee, args } => {
                Terminator::TailCall { callee: *callee, args: args.iter().map(|arg| map(*arg)).collect() }
            }
            Terminator::Unreachable => Terminator::Unreachable,
        }
    }
}
