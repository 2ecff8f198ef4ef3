//! One machine instruction → its bytes: the only door to `cranelift-assembler-x64`.
//!
//! Chooses the shortest form that means the same: 8-bit immediates, 32-bit moves of constants, the short forms of rax,
//! `xor` for zero where the flags are free. What an instruction cannot say (two memory operands, an immediate that does
//! not fit, the wrong register for a division) is refused, never bent.
//!
//! Source: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2. Cost: constant.

use super::buffer::Buffer;
use super::frame::Layout;
use crate::emit::code::{RelocKind, Target};
use crate::semantics::Scalar;
use crate::support::internal::Internal;
use crate::x64::*;
use cranelift_assembler_x64::{
    Amode, AmodeOffset, AmodeOffsetPlusKnownOffset, CodeSink, DeferredTarget, Fixed, GprMem, KnownOffset, NonRspGpr,
    Registers, Scale, TrapCode, inst,
};
use std::num::NonZeroU8;

/// Registers as the assembler sees them: hardware numbers.
struct Numbers;

impl Registers for Numbers {
    type ReadGpr = u8;
    type ReadWriteGpr = u8;
    type WriteGpr = u8;
    type ReadXmm = u8;
    type ReadWriteXmm = u8;
    type WriteXmm = u8;
}

struct Sink<'a>(&'a mut Vec<u8>);

impl CodeSink for Sink<'_> {
    fn put1(&mut self, value: u8) {
        self.0.push(value);
    }

    fn put2(&mut self, value: u16) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    fn put4(&mut self, value: u32) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    fn put8(&mut self, value: u64) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    fn add_trap(&mut self, _: TrapCode) {}

    fn use_target(&mut self, _: DeferredTarget) {}

    fn known_offset(&self, _: KnownOffset) -> i32 {
        unreachable!("addresses are made without offsets that are known later")
    }
}

type Operand = GprMem<u8, u8>;

/// The code around an instruction, as far as it matters for its bytes.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// The function's frame.
    pub layout: &'a Layout,
    /// Is the frame made?
    pub framed: bool,
    /// Bytes pushed since.
    pub pushed: i32,
    /// Does something behind the instruction read the flags as they are before it?
    pub flags_live: bool,
}

type Encoded = Result<(), Internal>;

fn refuse(message: &str) -> Internal {
    Internal::new("", message)
}

/// Appends an instruction of the assembler.
macro_rules! put {
    ($buffer:expr, $name:ident $(, $argument:expr)*) => {
        inst::$name::<Numbers>::new($($argument),*).encode(&mut Sink(&mut $buffer.bytes))
    };
}

/// Appends one of the eight forms of two-operand arithmetic.
macro_rules! arithmetic {
    ($buffer:expr, $width:expr, $dst:expr, $src:expr; $mr64:ident $rm64:ident $sxb64:ident $mi64:ident $i64:ident
     $mr32:ident $rm32:ident $sxb32:ident $mi32:ident $i32:ident) => {
        match ($width, $dst, $src) {
            (Width::W64, dst, Source::Operand(GprMem::Gpr(src))) => put!($buffer, $mr64, dst, src),
            (Width::W64, GprMem::Gpr(dst), Source::Operand(src)) => put!($buffer, $rm64, dst, src),
            (Width::W32, dst, Source::Operand(GprMem::Gpr(src))) => put!($buffer, $mr32, dst, src),
            (Width::W32, GprMem::Gpr(dst), Source::Operand(src)) => put!($buffer, $rm32, dst, src),
            (_, GprMem::Mem(_), Source::Operand(GprMem::Mem(_))) => {
                return Err(refuse("an instruction has two operands in memory"));
            }
            (width, dst, Source::Imm(imm)) => match (i8::try_from(imm), width, dst) {
                (Ok(imm), Width::W64, dst) => put!($buffer, $sxb64, dst, imm),
                (Ok(imm), Width::W32, dst) => put!($buffer, $sxb32, dst, imm),
                (Err(_), Width::W64, GprMem::Gpr(0)) => put!($buffer, $i64, Fixed(0u8), imm),
                (Err(_), Width::W32, GprMem::Gpr(0)) => put!($buffer, $i32, Fixed(0u8), imm),
                (Err(_), Width::W64, dst) => put!($buffer, $mi64, dst, imm),
                (Err(_), Width::W32, dst) => put!($buffer, $mi32, dst, imm),
            },
        }
    };
}

/// Appends one of the forms of a shift.
macro_rules! shift {
    ($buffer:expr, $width:expr, $dst:expr, $count:expr; $mc64:ident $mi64:ident $m164:ident
     $mc32:ident $mi32:ident $m132:ident) => {
        match ($width, $count) {
            (Width::W64, Count::Imm(1)) => put!($buffer, $m164, $dst),
            (Width::W64, Count::Imm(count)) => put!($buffer, $mi64, $dst, count),
            (Width::W64, Count::Cl(_)) => put!($buffer, $mc64, $dst, Fixed(1u8)),
            (Width::W32, Count::Imm(1)) => put!($buffer, $m132, $dst),
            (Width::W32, Count::Imm(count)) => put!($buffer, $mi32, $dst, count),
            (Width::W32, Count::Cl(_)) => put!($buffer, $mc32, $dst, Fixed(1u8)),
        }
    };
}

/// Appends the form of a conditional instruction for its condition.
macro_rules! conditional {
    ($buffer:expr, $cond:expr, $arguments:tt; $o:ident $no:ident $b:ident $ae:ident $e:ident $ne:ident $be:ident
     $a:ident $s:ident $ns:ident $l:ident $ge:ident $le:ident $g:ident) => {
        match $cond {
            Cond::O => conditional!(@ $buffer, $o, $arguments),
            Cond::NO => conditional!(@ $buffer, $no, $arguments),
            Cond::B => conditional!(@ $buffer, $b, $arguments),
            Cond::AE => conditional!(@ $buffer, $ae, $arguments),
            Cond::E => conditional!(@ $buffer, $e, $arguments),
            Cond::NE => conditional!(@ $buffer, $ne, $arguments),
            Cond::BE => conditional!(@ $buffer, $be, $arguments),
            Cond::A => conditional!(@ $buffer, $a, $arguments),
            Cond::S => conditional!(@ $buffer, $s, $arguments),
            Cond::NS => conditional!(@ $buffer, $ns, $arguments),
            Cond::L => conditional!(@ $buffer, $l, $arguments),
            Cond::GE => conditional!(@ $buffer, $ge, $arguments),
            Cond::LE => conditional!(@ $buffer, $le, $arguments),
            Cond::G => conditional!(@ $buffer, $g, $arguments),
        }
    };
    (@ $buffer:expr, $name:ident, ($($argument:expr),*)) => { put!($buffer, $name $(, $argument)*) };
}

/// Appends a jump: the instruction itself, to be followed by nothing.
pub fn jump(bytes: &mut Vec<u8>, cond: Option<Cond>, long: bool, distance: i32) -> Encoded {
    macro_rules! jump {
        ($name:ident, $distance:expr) => {
            inst::$name::new($distance).encode(&mut Sink(bytes))
        };
    }
    macro_rules! pick {
        ($distance:expr; $always:ident $o:ident $no:ident $b:ident $ae:ident $e:ident $ne:ident $be:ident $a:ident
         $s:ident $ns:ident $l:ident $ge:ident $le:ident $g:ident) => {
            match cond {
                None => jump!($always, $distance),
                Some(Cond::O) => jump!($o, $distance),
                Some(Cond::NO) => jump!($no, $distance),
                Some(Cond::B) => jump!($b, $distance),
                Some(Cond::AE) => jump!($ae, $distance),
                Some(Cond::E) => jump!($e, $distance),
                Some(Cond::NE) => jump!($ne, $distance),
                Some(Cond::BE) => jump!($be, $distance),
                Some(Cond::A) => jump!($a, $distance),
                Some(Cond::S) => jump!($s, $distance),
                Some(Cond::NS) => jump!($ns, $distance),
                Some(Cond::L) => jump!($l, $distance),
                Some(Cond::GE) => jump!($ge, $distance),
                Some(Cond::LE) => jump!($le, $distance),
                Some(Cond::G) => jump!($g, $distance),
            }
        };
    }
    if long {
        pick!(distance; jmp_d32 jo_d32 jno_d32 jb_d32 jae_d32 je_d32 jne_d32 jbe_d32 ja_d32 js_d32 jns_d32 jl_d32 jge_d32
            jle_d32 jg_d32);
    } else {
        let distance = i8::try_from(distance).map_err(|_| refuse("a short jump is out of reach"))?;
        pick!(distance; jmp_d8 jo_d8 jno_d8 jb_d8 jae_d8 je_d8 jne_d8 jbe_d8 ja_d8 js_d8 jns_d8 jl_d8 jge_d8 jle_d8 jg_d8);
    }
    Ok(())
}

/// Appends that many bytes of instructions that do nothing.
pub fn pad(bytes: &mut Vec<u8>, count: u32) {
    let mut left = count;
    while left > 0 {
        let size = left.min(9);
        let sink = &mut Sink(bytes);
        match size {
            1 => inst::nop_1b::new().encode(sink),
            2 => inst::nop_2b::new().encode(sink),
            3 => inst::nop_3b::new().encode(sink),
            4 => inst::nop_4b::new().encode(sink),
            5 => inst::nop_5b::new().encode(sink),
            6 => inst::nop_6b::new().encode(sink),
            7 => inst::nop_7b::new().encode(sink),
            8 => inst::nop_8b::new().encode(sink),
            _ => inst::nop_9b::new().encode(sink),
        }
        left -= size;
    }
}

/// Appends a call.
pub fn call(buffer: &mut Buffer, target: Target) {
    inst::callq_d::new(0).encode(&mut Sink(&mut buffer.bytes));
    buffer.relocate(RelocKind::Branch, target);
}

/// Appends a jump to another function.
pub fn jump_to_function(buffer: &mut Buffer, target: Target) {
    inst::jmp_d32::new(0).encode(&mut Sink(&mut buffer.bytes));
    buffer.relocate(RelocKind::Branch, target);
}

/// Appends `ret`.
pub fn ret(buffer: &mut Buffer) {
    inst::retq_zo::new().encode(&mut Sink(&mut buffer.bytes));
}

/// Appends an instruction that faults.
pub fn undefined(buffer: &mut Buffer) {
    inst::ud2_zo::new(TRAP).encode(&mut Sink(&mut buffer.bytes));
}

/// Appends the code that makes the frame.
pub fn prologue(buffer: &mut Buffer, layout: &Layout) {
    for reg in layout.saved.iter() {
        put!(buffer, pushq_o, reg.number());
    }
    let mut left = layout.size;
    // Every page is touched before the next, so that none of them skips the guard page.
    while left >= super::frame::PAGE - 64 {
        let step = left.min(super::frame::PAGE);
        lower_stack(buffer, step as i32);
        put!(buffer, testl_mr, stack(0), PReg::RSP.number());
        left -= step;
    }
    if left > 0 {
        lower_stack(buffer, left as i32);
    }
}

/// rsp less so many bytes.
fn lower_stack(buffer: &mut Buffer, bytes: i32) {
    let rsp = PReg::RSP.number();
    match (i8::try_from(bytes), i8::try_from(-bytes)) {
        (Ok(bytes), _) => put!(buffer, subq_mi_sxb, rsp, bytes),
        (Err(_), Ok(bytes)) => put!(buffer, addq_mi_sxb, rsp, bytes),
        (Err(_), Err(_)) => put!(buffer, subq_mi_sxl, rsp, bytes),
    }
}

/// rsp plus so many bytes.
fn raise_stack(buffer: &mut Buffer, bytes: i32) {
    let rsp = PReg::RSP.number();
    match (i8::try_from(bytes), i8::try_from(-bytes)) {
        (Ok(bytes), _) => put!(buffer, addq_mi_sxb, rsp, bytes),
        (Err(_), Ok(bytes)) => put!(buffer, subq_mi_sxb, rsp, bytes),
        (Err(_), Err(_)) => put!(buffer, addq_mi_sxl, rsp, bytes),
    }
}

/// Appends the code that takes the frame down. Changes the flags.
pub fn epilogue(buffer: &mut Buffer, layout: &Layout) {
    if layout.size > 0 {
        raise_stack(buffer, layout.size as i32);
    }
    let saved: Vec<PReg> = layout.saved.iter().collect();
    for reg in saved.into_iter().rev() {
        put!(buffer, popq_o, reg.number());
    }
}

/// What the hardware does on a fault of this instruction is of no interest to the assembler's sink.
const TRAP: TrapCode = TrapCode(NonZeroU8::MIN);

fn stack(disp: i32) -> Operand {
    GprMem::Mem(based(PReg::RSP, disp))
}

fn based(base: PReg, disp: i32) -> Amode<u8> {
    let simm32 = AmodeOffsetPlusKnownOffset { simm32: AmodeOffset::new(disp), offset: None };
    Amode::ImmReg { base: base.number(), simm32, trap: None }
}

fn address(address: &Address<PReg>) -> Result<Amode<u8>, Internal> {
    let Some((index, factor)) = address.index else {
        let base = address.base.ok_or_else(|| refuse("an address has no register"))?;
        return Ok(based(base, address.disp));
    };
    if index == PReg::RSP {
        return Err(refuse("rsp cannot be an index"));
    }
    let (base, index, scale) = match (address.base, factor) {
        // Without a displacement, rbp and r13 cannot be bases without a byte more.
        (Some(base), 1) if matches!(base, PReg::RBP | PReg::R13) && address.disp == 0 => (index, base, Scale::One),
        (Some(base), 1) => (base, index, Scale::One),
        (Some(base), 2) => (base, index, Scale::Two),
        (Some(base), 4) => (base, index, Scale::Four),
        (Some(base), 8) => (base, index, Scale::Eight),
        (None, 1) => return Ok(based(index, address.disp)),
        (None, 2) => (index, index, Scale::One),
        (None, _) => return Err(refuse("an address without a base")),
        (Some(_), _) => return Err(refuse("an index can be scaled by 1, 2, 4 or 8 only")),
    };
    Ok(Amode::ImmRegRegShift {
        base: base.number(),
        index: NonRspGpr::new(index.number()),
        scale,
        simm32: AmodeOffset::new(address.disp),
        trap: None,
    })
}

/// The second operand of an instruction.
enum Source {
    Operand(Operand),
    Imm(i32),
}

impl Context<'_> {
    fn slot(&self, slot: Slot) -> Result<Operand, Internal> {
        Ok(stack(self.layout.displacement(slot, self.framed, self.pushed)?))
    }

    fn operand(&self, operand: &RegMem<PReg>) -> Result<Operand, Internal> {
        match operand {
            RegMem::Reg(reg) => Ok(GprMem::Gpr(reg.number())),
            RegMem::Slot(slot) => self.slot(*slot),
            RegMem::Mem(place) => {
                let relative = place.base == Some(PReg::RSP);
                if relative {
                    return Err(refuse("the stack is reached through slots only"));
                }
                Ok(GprMem::Mem(address(place)?))
            }
        }
    }

    fn source(&self, operand: &RegMemImm<PReg>) -> Result<Source, Internal> {
        match operand {
            RegMemImm::Reg(reg) => Ok(Source::Operand(GprMem::Gpr(reg.number()))),
            RegMemImm::Slot(slot) => Ok(Source::Operand(self.slot(*slot)?)),
            RegMemImm::Mem(place) => Ok(Source::Operand(GprMem::Mem(address(place)?))),
            RegMemImm::Imm(value) => match i32::try_from(*value) {
                Ok(value) => Ok(Source::Imm(value)),
                Err(_) => Err(refuse("an immediate does not fit 32 bits")),
            },
        }
    }

    /// What an operation of that width changes.
    fn changed(&self, width: Width, operand: &RegMem<PReg>) -> Result<Operand, Internal> {
        match (width, operand) {
            (Width::W32, RegMem::Slot(_) | RegMem::Mem(_)) => {
                Err(refuse("a 32-bit operation leaves the upper half of memory as it was"))
            }
            (Width::W32, RegMem::Reg(_)) | (Width::W64, _) => self.operand(operand),
        }
    }

    /// Appends `mov dst, value` for any value.
    pub fn load_constant(&self, buffer: &mut Buffer, dst: PReg, value: i64) {
        let dst = dst.number();
        if value == 0 && !self.flags_live {
            put!(buffer, xorl_rm, dst, dst);
        } else if let Ok(value) = u32::try_from(value) {
            put!(buffer, movl_oi, dst, value);
        } else if let Ok(value) = i32::try_from(value) {
            put!(buffer, movq_mi_sxl, dst, value);
        } else {
            put!(buffer, movabsq_oi, dst, value as u64);
        }
    }

    /// Appends `push` for any operand; wide immediates are refused.
    pub fn push(&self, buffer: &mut Buffer, src: &RegMemImm<PReg>) -> Encoded {
        match self.source(src)? {
            Source::Operand(GprMem::Gpr(reg)) => put!(buffer, pushq_o, reg),
            Source::Operand(memory) => put!(buffer, pushq_m, memory),
            Source::Imm(value) => match i8::try_from(value) {
                Ok(value) => inst::pushq_i8::new(value).encode(&mut Sink(&mut buffer.bytes)),
                Err(_) => inst::pushq_i32::new(value).encode(&mut Sink(&mut buffer.bytes)),
            },
        }
        Ok(())
    }

    /// Appends the instruction's bytes. Calls and traps are the business of others.
    pub fn encode(&self, buffer: &mut Buffer, op: &Op<PReg>) -> Encoded {
        match op {
            Op::Mov { dst, src } => self.mov(buffer, dst, src)?,
            Op::Imm { dst, value } => match self.operand(dst)? {
                GprMem::Gpr(dst) => self.load_constant(buffer, PReg::new(dst), *value),
                memory => {
                    let value = i32::try_from(*value).map_err(|_| refuse("an immediate in memory must fit 32 bits"))?;
                    put!(buffer, movq_mi_sxl, memory, value);
                }
            },
            Op::StrAddress { dst, string } => {
                put!(buffer, leaq_rm, dst.number(), Amode::RipRelative { target: DeferredTarget::None });
                buffer.relocate(RelocKind::Data, Target::Str(*string));
            }
            Op::Load { ty: Scalar::Int, dst, src } => {
                put!(buffer, movq_rm, dst.number(), self.operand(&RegMem::Mem(*src))?);
            }
            Op::Load { ty: Scalar::Bool, dst, src } => {
                put!(buffer, movzbl_rm, dst.number(), self.operand(&RegMem::Mem(*src))?);
            }
            Op::Store { ty, dst, src } => {
                let dst = self.operand(&RegMem::Mem(*dst))?;
                match (ty, src) {
                    (Scalar::Int, StoreSource::Reg(src)) => put!(buffer, movq_mr, dst, src.number()),
                    (Scalar::Int, StoreSource::Imm(value)) => put!(buffer, movq_mi_sxl, dst, *value),
                    (Scalar::Bool, StoreSource::Reg(src)) => put!(buffer, movb_mr, dst, src.number()),
                    (Scalar::Bool, StoreSource::Imm(value @ 0..=1)) => put!(buffer, movb_mi, dst, *value as u8),
                    (Scalar::Bool, StoreSource::Imm(_)) => return Err(refuse("a bool is 0 or 1")),
                }
            }
            Op::Lea { width, dst, src } => self.lea(buffer, *width, dst.number(), src)?,
            Op::Alu { op, width, dst, src } => self.alu(buffer, *op, *width, dst, src)?,
            Op::Unary { op, width, dst } => {
                let dst = self.changed(*width, dst)?;
                match (op, width) {
                    (UnaryOp::Neg, Width::W64) => put!(buffer, negq_m, dst),
                    (UnaryOp::Neg, Width::W32) => put!(buffer, negl_m, dst),
                    (UnaryOp::Not, Width::W64) => put!(buffer, notq_m, dst),
                    (UnaryOp::Not, Width::W32) => put!(buffer, notl_m, dst),
                }
            }
            Op::Shift { op, width, dst, count } => self.shift(buffer, *op, *width, dst, *count)?,
            Op::Imul { dst, src } => put!(buffer, imulq_rm, dst.number(), self.operand(src)?),
            Op::ImulImm { dst, src, imm } => match i8::try_from(*imm) {
                Ok(imm) => put!(buffer, imulq_rmi_sxb, dst.number(), self.operand(src)?, imm),
                Err(_) => put!(buffer, imulq_rmi_sxl, dst.number(), self.operand(src)?, *imm),
            },
            Op::MulHigh { signed, lo, hi, src } => {
                wants(*lo, PReg::RAX)?;
                wants(*hi, PReg::RDX)?;
                let src = self.operand(src)?;
                if *signed {
                    put!(buffer, imulq_m, Fixed(0u8), Fixed(2u8), src);
                } else {
                    put!(buffer, mulq_m, Fixed(0u8), Fixed(2u8), src);
                }
            }
            Op::SignExtend { hi, lo } => {
                wants(*lo, PReg::RAX)?;
                wants(*hi, PReg::RDX)?;
                put!(buffer, cqto_zo, Fixed(2u8), Fixed(0u8));
            }
            Op::Div { signed, width, lo, hi, src } => {
                wants(*lo, PReg::RAX)?;
                wants(*hi, PReg::RDX)?;
                let src = self.operand(src)?;
                match (signed, width) {
                    (true, Width::W64) => put!(buffer, idivq_m, Fixed(0u8), Fixed(2u8), src, TRAP),
                    (true, Width::W32) => put!(buffer, idivl_m, Fixed(0u8), Fixed(2u8), src, TRAP),
                    (false, Width::W64) => put!(buffer, divq_m, Fixed(0u8), Fixed(2u8), src, TRAP),
                    (false, Width::W32) => put!(buffer, divl_m, Fixed(0u8), Fixed(2u8), src, TRAP),
                }
            }
            Op::Cmp { width, lhs, rhs } => self.cmp(buffer, *width, lhs, rhs)?,
            Op::CmpByte { lhs, imm } => put!(buffer, cmpb_mi, self.operand(&RegMem::Mem(*lhs))?, *imm as u8),
            Op::Test { width, lhs, rhs } => self.test(buffer, *width, lhs, rhs)?,
            Op::Set { cond, dst } => {
                let dst = dst.number();
                conditional!(buffer, cond, (dst); seto_m setno_m setb_m setae_m sete_m setne_m setbe_m seta_m sets_m
                    setns_m setl_m setge_m setle_m setg_m);
            }
            Op::Cmov { cond, dst, src } => {
                let (dst, src) = (dst.number(), self.operand(src)?);
                conditional!(buffer, cond, (dst, src); cmovoq_rm cmovnoq_rm cmovbq_rm cmovaeq_rm cmoveq_rm cmovneq_rm
                    cmovbeq_rm cmovaq_rm cmovsq_rm cmovnsq_rm cmovlq_rm cmovgeq_rm cmovleq_rm cmovgq_rm);
            }
            Op::Push { src } => self.push(buffer, &(*src).into())?,
            Op::Pop { dst } => {
                // An address that rests on rsp counts from where rsp is behind the instruction.
                let after = Context { pushed: self.pushed - 8, ..*self };
                match after.operand(dst)? {
                    GprMem::Gpr(dst) => put!(buffer, popq_o, dst),
                    memory => put!(buffer, popq_m, memory),
                }
            }
            Op::Xchg { a, b } => exchange(buffer, *a, *b),
            Op::Parallel { .. } => return Err(refuse("parallel moves must have become a sequence")),
            Op::Call { .. } | Op::Trap { .. } => return Err(refuse("calls and traps are encoded elsewhere")),
        }
        Ok(())
    }

    fn mov(&self, buffer: &mut Buffer, dst: &RegMem<PReg>, src: &RegMem<PReg>) -> Encoded {
        if dst == src {
            return Ok(());
        }
        match (self.operand(dst)?, self.operand(src)?) {
            (dst, GprMem::Gpr(src)) => put!(buffer, movq_mr, dst, src),
            (GprMem::Gpr(dst), src) => put!(buffer, movq_rm, dst, src),
            (GprMem::Mem(_), GprMem::Mem(_)) => return Err(refuse("a move has two operands in memory")),
        }
        Ok(())
    }

    fn lea(&self, buffer: &mut Buffer, width: Width, dst: u8, src: &Address<PReg>) -> Encoded {
        let src = match self.operand(&RegMem::Mem(*src))? {
            GprMem::Mem(src) => src,
            GprMem::Gpr(_) => return Err(refuse("an address is in memory")),
        };
        match (src, width) {
            (Amode::ImmReg { base, .. }, Width::W64) if src == based(PReg::new(base), 0) => {
                put!(buffer, movq_mr, dst, base)
            }
            (_, Width::W64) => put!(buffer, leaq_rm, dst, src),
            (_, Width::W32) => put!(buffer, leal_rm, dst, src),
        }
        Ok(())
    }

    fn alu(&self, buffer: &mut Buffer, op: AluOp, width: Width, dst: &RegMem<PReg>, src: &RegMemImm<PReg>) -> Encoded {
        let dst = self.changed(width, dst)?;
        let mut src = self.source(src)?;
        let mut op = op;
        // Adding 128 takes a longer form than subtracting -128; only the flags tell them apart.
        if let (AluOp::Add | AluOp::Sub, Source::Imm(128), false) = (op, &src, self.flags_live) {
            op = if op == AluOp::Add { AluOp::Sub } else { AluOp::Add };
            src = Source::Imm(-128);
        }
        match op {
            AluOp::Add => arithmetic!(buffer, width, dst, src; addq_mr addq_rm addq_mi_sxb addq_mi_sxl addq_i_sxl
                addl_mr addl_rm addl_mi_sxb addl_mi addl_i),
            AluOp::Sub => arithmetic!(buffer, width, dst, src; subq_mr subq_rm subq_mi_sxb subq_mi_sxl subq_i_sxl
                subl_mr subl_rm subl_mi_sxb subl_mi subl_i),
            AluOp::And => arithmetic!(buffer, width, dst, src; andq_mr andq_rm andq_mi_sxb andq_mi_sxl andq_i_sxl
                andl_mr andl_rm andl_mi_sxb andl_mi andl_i),
            AluOp::Or => arithmetic!(buffer, width, dst, src; orq_mr orq_rm orq_mi_sxb orq_mi_sxl orq_i_sxl
                orl_mr orl_rm orl_mi_sxb orl_mi orl_i),
            AluOp::Xor => arithmetic!(buffer, width, dst, src; xorq_mr xorq_rm xorq_mi_sxb xorq_mi_sxl xorq_i_sxl
                xorl_mr xorl_rm xorl_mi_sxb xorl_mi xorl_i),
        }
        Ok(())
    }

    fn shift(&self, buffer: &mut Buffer, op: ShiftOp, width: Width, dst: &RegMem<PReg>, count: Count<PReg>) -> Encoded {
        let dst = self.changed(width, dst)?;
        match count {
            Count::Imm(0..=63) => {}
            Count::Imm(_) => return Err(refuse("a shift count is below 64")),
            Count::Cl(reg) => wants(reg, PReg::RCX)?,
        }
        match op {
            ShiftOp::Shl => shift!(buffer, width, dst, count; shlq_mc shlq_mi shlq_m1 shll_mc shll_mi shll_m1),
            ShiftOp::Shr => shift!(buffer, width, dst, count; shrq_mc shrq_mi shrq_m1 shrl_mc shrl_mi shrl_m1),
            ShiftOp::Sar => shift!(buffer, width, dst, count; sarq_mc sarq_mi sarq_m1 sarl_mc sarl_mi sarl_m1),
            ShiftOp::Rol => shift!(buffer, width, dst, count; rolq_mc rolq_mi rolq_m1 roll_mc roll_mi roll_m1),
            ShiftOp::Ror => shift!(buffer, width, dst, count; rorq_mc rorq_mi rorq_m1 rorl_mc rorl_mi rorl_m1),
        }
        Ok(())
    }

    fn cmp(&self, buffer: &mut Buffer, width: Width, lhs: &RegMem<PReg>, rhs: &RegMemImm<PReg>) -> Encoded {
        let (lhs, rhs) = (self.operand(lhs)?, self.source(rhs)?);
        if let (GprMem::Gpr(reg), Source::Imm(0)) = (&lhs, &rhs) {
            // The flags are the same, and it is a byte shorter.
            match width {
                Width::W64 => put!(buffer, testq_mr, *reg, *reg),
                Width::W32 => put!(buffer, testl_mr, *reg, *reg),
            }
            return Ok(());
        }
        arithmetic!(buffer, width, lhs, rhs; cmpq_mr cmpq_rm cmpq_mi_sxb cmpq_mi cmpq_i
            cmpl_mr cmpl_rm cmpl_mi_sxb cmpl_mi cmpl_i);
        Ok(())
    }

    fn test(&self, buffer: &mut Buffer, width: Width, lhs: &RegMem<PReg>, rhs: &RegMemImm<PReg>) -> Encoded {
        let (lhs, rhs) = (self.operand(lhs)?, self.source(rhs)?);
        match (width, lhs, rhs) {
            // `test` is symmetric, and has a form for memory on the left only.
            (Width::W64, lhs, Source::Operand(GprMem::Gpr(rhs))) => put!(buffer, testq_mr, lhs, rhs),
            (Width::W32, lhs, Source::Operand(GprMem::Gpr(rhs))) => put!(buffer, testl_mr, lhs, rhs),
            (Width::W64, GprMem::Gpr(lhs), Source::Operand(rhs)) => put!(buffer, testq_mr, rhs, lhs),
            (Width::W32, GprMem::Gpr(lhs), Source::Operand(rhs)) => put!(buffer, testl_mr, rhs, lhs),
            (_, GprMem::Mem(_), Source::Operand(GprMem::Mem(_))) => {
                return Err(refuse("an instruction has two operands in memory"));
            }
            // All flags are the same for a byte, as long as the mask leaves its sign alone.
            (_, lhs, Source::Imm(mask @ 0..=127)) => put!(buffer, testb_mi, lhs, mask as u8),
            (Width::W64, GprMem::Gpr(0), Source::Imm(mask)) => put!(buffer, testq_i, Fixed(0u8), mask),
            (Width::W32, GprMem::Gpr(0), Source::Imm(mask)) => put!(buffer, testl_i, Fixed(0u8), mask),
            (Width::W64, lhs, Source::Imm(mask)) => put!(buffer, testq_mi, lhs, mask),
            (Width::W32, lhs, Source::Imm(mask)) => put!(buffer, testl_mi, lhs, mask),
        }
        Ok(())
    }
}

/// The assembler has no exchange of two registers: REX.W 87 /r.
fn exchange(buffer: &mut Buffer, a: PReg, b: PReg) {
    let (a, b) = (a.number(), b.number());
    buffer.bytes.extend_from_slice(&[0x48 | (b >> 3) << 2 | a >> 3, 0x87, 0xC0 | (b & 7) << 3 | a & 7]);
}

fn wants(found: PReg, wanted: PReg) -> Encoded {
    if found == wanted { Ok(()) } else { Err(Internal::new(found, format!("the instruction works on {wanted} only"))) }
}
