//! Runs machine code, over virtual and over physical registers, on a simulated machine that is stricter than the real one.
//!
//! What the real machine leaves to chance is an error here: reading a register, slot or flag that holds nothing (after a
//! call, all caller-saved registers hold nothing; on entry, all but the arguments), touching memory outside a living array,
//! writing an array's length, writing a callee-saved register that the frame does not save, a division that would fault,
//! a bool other than 0 and 1, freeing out of order. So a run tells more than its output: it judges selection and allocation
//! alike. Calls of the runtime are done by meaning, on the [`Machine`] that all interpreters share.
//!
//! Virtual registers are as many as the function has; pinned ones share one simulated file of 16, where each register
//! remembers who wrote it. Flags are followed one by one. Instructions have their exact meaning at 64 and 32 bits (Intel,
//! Software Developer's Manual, volume 2), where the real one leaves a flag undefined it is undefined here.
//!
//! ```text
//! mov rax, 7          rax holds 7
//! call atl_f          rax, rcx, rdx, rsi, rdi and r8 to r11 hold nothing
//! add rbx, rax        error: "rax is read and holds nothing"
//! ```
//!
//! **in**: code that `verify` accepts; other code gives errors at worst. **out**: what the run shows, and how many
//! instructions of which kind it took. Cost: constant a step, but for a binary search where an array is touched and for
//! the registers of a function that is called. It uses no host recursion.

use super::arithmetic::{Flags, add, bits, divide, logic, shift, truncate};
use super::registers::{ARGUMENTS, PReg, RESULT, Reg, RegSet};
use super::runtime::RuntimeFn;
use super::types::*;
pub use super::watch::{Counts, Run, Watch};
use crate::execution::{End, Limits, Machine, Stop};
use crate::semantics::{Scalar, Trap};
use crate::support::internal::Internal;
use crate::support::span::Span;
use cranelift_entity::{EntityRef, PrimaryMap, SecondaryMap, packed_option::PackedOption};
use smallvec::SmallVec;

/// Runs the program. An error is a fault of the code, never of the Atlas program that it was made from.
pub fn run<R: Reg>(program: &Program<R>, input: &[u8], limits: Limits) -> Result<Run, Internal> {
    run_watched(program, input, limits, &mut ())
}

/// As [`run`], while somebody watches.
pub fn run_watched<R: Reg, W: Watch>(
    program: &Program<R>,
    input: &[u8],
    limits: Limits,
    watch: &mut W,
) -> Result<Run, Internal> {
    let mut cpu = Cpu::new(program, input, limits, watch);
    let end = cpu.run().map_err(|message| {
        let frame = cpu.frames.last();
        let entity = frame.map_or(String::new(), |frame| format!("{}, instruction {}", frame.block, frame.index));
        let function = frame.map_or("", |frame| frame.function.name.as_str());
        Internal::new(entity, message).in_function(function)
    })?;
    Ok(Run { counts: cpu.counts, outcome: cpu.machine.finish(end) })
}

/// A register of the file: its value, and the number of the virtual register that wrote it.
#[derive(Clone, Copy)]
struct Held {
    value: u64,
    writer: u32,
}

/// The writer of arguments and results: any virtual register that is pinned there may read it.
const CONVENTION: u32 = u32::MAX;

/// A call in progress.
struct Activation<'a, R: Reg> {
    id: FuncId,
    function: &'a Function<R>,
    block: Block,
    /// The next instruction; the terminator behind the last.
    index: usize,
    /// Virtual registers, by number.
    virtuals: Vec<Option<u64>>,
    spills: Vec<Option<u64>>,
    incoming: Vec<Option<u64>>,
    outgoing: Vec<Option<u64>>,
    pushed: Vec<u64>,
    /// What the caller has in the callee-saved registers.
    saved: [Option<Held>; 16],
    /// Where the caller wants the result.
    result: Option<R>,
}

/// One array's memory: its length in the first 8 bytes, then its elements.
struct Array {
    /// The address of the length.
    start: u64,
    bytes: Vec<u8>,
    element: Scalar,
    live: bool,
}

impl Array {
    /// Bytes from the length to the end of the last element, also when the array has ended.
    fn size(&self) -> u64 {
        let length = u64::from_le_bytes(self.bytes[..8].try_into().expect("every array keeps its length"));
        8 + length * self.element.size()
    }
}

/// Where strings are, and where arrays begin; far apart, so that none is taken for the other.
const STRINGS: u64 = 0x0040_0000;
const ARRAYS: u64 = 0x7000_0000_0000;
/// Bytes between arrays that belong to none.
const GAP: u64 = 64;

struct Cpu<'a, R: Reg, W> {
    program: &'a Program<R>,
    watch: &'a mut W,
    machine: Machine<'a>,
    counts: Counts,
    frames: Vec<Activation<'a, R>>,
    file: [Option<Held>; 16],
    flags: Flags,
    /// Is the result of a call being taken?
    returning: bool,
    /// By address.
    arrays: Vec<Array>,
    /// Indices of the arrays that live, in the order of their making.
    living: Vec<usize>,
    /// The address of each string.
    strings: PrimaryMap<StrId, u64>,
    /// The block that follows each block in its function's layout; filled when the function is first called.
    next: SecondaryMap<FuncId, Option<Vec<PackedOption<Block>>>>,
}

/// What an instruction leads to besides going on.
enum Flow {
    On,
    End(End),
}

type Fault = String;

impl<'a, R: Reg, W: Watch> Cpu<'a, R, W> {
    fn new(program: &'a Program<R>, input: &'a [u8], limits: Limits, watch: &'a mut W) -> Cpu<'a, R, W> {
        let mut strings = PrimaryMap::new();
        let mut address = STRINGS;
        for string in program.strings.values() {
            strings.push(address);
            address += string.len() as u64 + 16;
        }
        Cpu {
            program,
            watch,
            machine: Machine::new(input, limits),
            counts: Counts::default(),
            frames: Vec::new(),
            file: [None; 16],
            flags: Flags::default(),
            returning: false,
            arrays: Vec::new(),
            living: Vec::new(),
            strings,
            next: SecondaryMap::new(),
        }
    }

    fn run(&mut self) -> Result<End, Fault> {
        self.push_frame(self.program.entry, &[], Vec::new(), None)?;
        loop {
            if let Err(stop) = self.machine.step() {
                return Ok(stop.at(Span::NONE));
            }
            let frame = self.frames.last_mut().expect("the loop ends with the last frame");
            let data = &frame.function.blocks[frame.block];
            let flow = if let Some(inst) = data.insts.get(frame.index) {
                let flow = self.instruction(inst)?;
                // A call has pushed a frame, but the place to go on from is its caller's.
                match flow {
                    Flow::On if !matches!(inst.op, Op::Call { callee: Callee::Function(_), .. }) => self.advance(),
                    Flow::On | Flow::End(_) => {}
                }
                flow
            } else {
                self.terminator(&data.term)?
            };
            match flow {
                Flow::End(end) => return Ok(end),
                Flow::On if self.frames.is_empty() => return Ok(End::Normal),
                Flow::On => {}
            }
        }
    }

    fn advance(&mut self) {
        self.frames.last_mut().expect("an instruction belongs to a frame").index += 1;
    }

    fn frame(&mut self) -> &mut Activation<'a, R> {
        self.frames.last_mut().expect("code runs in a frame")
    }

    // ---- registers, slots, operands ----

    fn read_reg(&mut self, reg: R) -> Result<u64, Fault> {
        let frame = self.frames.last().expect("code runs in a frame");
        let held = match reg.fixed(&frame.function.vregs) {
            Some(register) => {
                let held = self.file[register.number() as usize];
                let own =
                    |held: &Held| R::PHYSICAL || held.writer == CONVENTION || held.writer == reg.dense_index() as u32;
                held.filter(own).map(|held| held.value)
            }
            None => frame.virtuals[reg.dense_index()],
        };
        held.ok_or_else(|| format!("{reg} is read and holds nothing"))
    }

    fn write_reg(&mut self, reg: R, value: u64) -> Result<(), Fault> {
        let frame = self.frames.last_mut().expect("code runs in a frame");
        match reg.fixed(&frame.function.vregs) {
            Some(PReg::RSP) => return Err("the stack pointer is written".to_string()),
            Some(register) => {
                let kept = RegSet::CALLEE_SAVED.contains(register) && !frame.function.frame.saved.contains(register);
                if R::PHYSICAL && kept {
                    return Err(format!("{register} is written and not saved"));
                }
                self.file[register.number() as usize] = Some(Held { value, writer: reg.dense_index() as u32 });
            }
            None => frame.virtuals[reg.dense_index()] = Some(value),
        }
        self.tell(value);
        Ok(())
    }

    /// Tells what an instruction has written. The result of a call is written behind it, where the index is already the next
    /// instruction's, and is not told.
    fn tell(&mut self, value: u64) {
        if !self.returning {
            let frame = self.frames.last().expect("code runs in a frame");
            self.watch.wrote(frame.id, frame.block, frame.index, value);
        }
    }

    fn slot(&mut self, slot: Slot) -> Result<&mut Option<u64>, Fault> {
        let frame = self.frames.last_mut().expect("code runs in a frame");
        let (slots, number) = match slot {
            Slot::Spill(number) => (&mut frame.spills, number),
            Slot::Incoming(number) => (&mut frame.incoming, number),
            Slot::Outgoing(number) => {
                // Selection has not counted these slots yet.
                if !R::PHYSICAL && frame.outgoing.len() <= number as usize {
                    frame.outgoing.resize(number as usize + 1, None);
                }
                (&mut frame.outgoing, number)
            }
        };
        slots.get_mut(number as usize).ok_or_else(|| format!("{slot:?} does not exist"))
    }

    fn read_slot(&mut self, slot: Slot) -> Result<u64, Fault> {
        if matches!(slot, Slot::Spill(_)) {
            self.counts.reloads += 1;
        }
        (*self.slot(slot)?).ok_or_else(|| format!("{slot:?} is read and holds nothing"))
    }

    fn write_slot(&mut self, slot: Slot, value: u64) -> Result<(), Fault> {
        if matches!(slot, Slot::Spill(_)) {
            self.counts.spills += 1;
        }
        *self.slot(slot)? = Some(value);
        self.tell(value);
        Ok(())
    }

    fn effective(&mut self, address: &Address<R>) -> Result<u64, Fault> {
        let mut sum = address.disp as i64 as u64;
        if let Some(base) = address.base {
            sum = sum.wrapping_add(self.read_reg(base)?);
        }
        if let Some((index, scale)) = address.index {
            sum = sum.wrapping_add(self.read_reg(index)?.wrapping_mul(u64::from(scale)));
        }
        Ok(sum)
    }

    /// Reads an operand; at 32 bits its low half.
    fn read(&mut self, operand: &RegMem<R>, width: Width) -> Result<u64, Fault> {
        Ok(match operand {
            RegMem::Reg(reg) => truncate(self.read_reg(*reg)?, width),
            RegMem::Slot(slot) => truncate(self.read_slot(*slot)?, width),
            RegMem::Mem(address) => {
                let address = self.effective(address)?;
                let bytes = if width == Width::W64 { 8 } else { 4 };
                self.load(address, bytes)?
            }
        })
    }

    fn read_imm(&mut self, operand: &RegMemImm<R>, width: Width) -> Result<u64, Fault> {
        match operand {
            RegMemImm::Reg(reg) => self.read(&RegMem::Reg(*reg), width),
            RegMemImm::Slot(slot) => self.read(&RegMem::Slot(*slot), width),
            RegMemImm::Mem(address) => self.read(&RegMem::Mem(*address), width),
            RegMemImm::Imm(value) => Ok(truncate(*value as u64, width)),
        }
    }

    /// Writes an operand. At 32 bits a register's upper half becomes zero; memory would keep it, so that is refused.
    fn write(&mut self, operand: &RegMem<R>, value: u64, width: Width) -> Result<(), Fault> {
        match operand {
            RegMem::Reg(reg) => self.write_reg(*reg, truncate(value, width)),
            RegMem::Slot(_) | RegMem::Mem(_) if width == Width::W32 => {
                Err("a 32-bit operation writes memory".to_string())
            }
            RegMem::Slot(slot) => self.write_slot(*slot, value),
            RegMem::Mem(address) => {
                let address = self.effective(address)?;
                self.store(address, 8, value)
            }
        }
    }

    // ---- memory ----

    /// The array that the bytes belong to, and where in it they are.
    fn locate(&self, address: u64, bytes: usize) -> Result<(usize, usize), Fault> {
        let after = self.arrays.partition_point(|array| array.start <= address);
        let found = after.checked_sub(1).map(|index| (index, (address - self.arrays[index].start) as usize));
        match found {
            Some((index, offset)) if !self.arrays[index].live && (offset as u64) < self.arrays[index].size() => {
                Err(format!("memory at {address:#x} belongs to an array that has ended"))
            }
            Some((index, offset)) if offset + bytes <= self.arrays[index].bytes.len() => Ok((index, offset)),
            Some(_) | None => Err(format!("memory at {address:#x} belongs to no array")),
        }
    }

    fn load(&mut self, address: u64, bytes: usize) -> Result<u64, Fault> {
        self.counts.loads += 1;
        let (index, offset) = self.locate(address, bytes)?;
        let mut value = [0; 8];
        value[..bytes].copy_from_slice(&self.arrays[index].bytes[offset..offset + bytes]);
        Ok(u64::from_le_bytes(value))
    }

    fn store(&mut self, address: u64, bytes: usize, value: u64) -> Result<(), Fault> {
        self.counts.stores += 1;
        let (index, offset) = self.locate(address, bytes)?;
        if offset < 8 {
            return Err("an array's length is written".to_string());
        }
        if self.arrays[index].element == Scalar::Bool && (bytes != 1 || value > 1) {
            return Err(format!("{bytes} bytes with {value} are written to an array of bools"));
        }
        self.arrays[index].bytes[offset..offset + bytes].copy_from_slice(&value.to_le_bytes()[..bytes]);
        Ok(())
    }

    fn allocate(&mut self, element: Scalar, length: i64, init: u64) -> Result<Result<u64, Stop>, Fault> {
        if element == Scalar::Bool {
            as_bool(init)?;
        }
        let count = match self.machine.allocate(element, length) {
            Ok(count) => count,
            Err(stop) => return Ok(Err(stop)),
        };
        let mut bytes = Vec::with_capacity(8 + count * element.size() as usize);
        bytes.extend_from_slice(&(length as u64).to_le_bytes());
        for _ in 0..count {
            bytes.extend_from_slice(&init.to_le_bytes()[..element.size() as usize]);
        }
        // An ended array's bytes are dropped, but its addresses are not used again.
        let start = self.arrays.last().map_or(ARRAYS, |last| (last.start + last.size() + GAP).next_multiple_of(16));
        self.living.push(self.arrays.len());
        self.arrays.push(Array { start, bytes, element, live: true });
        Ok(Ok(start + 8))
    }

    fn free(&mut self, address: u64) -> Result<(), Fault> {
        let Some(index) = self.living.pop().filter(|index| self.arrays[*index].start.wrapping_add(8) == address) else {
            return Err(format!("the array at {address:#x} is freed and is not the last that was made"));
        };
        let array = &mut self.arrays[index];
        self.machine.release(array.element, (array.bytes.len() - 8) / array.element.size() as usize);
        array.live = false;
        array.bytes.truncate(8);
        array.bytes.shrink_to_fit();
        Ok(())
    }

    // ---- instructions ----

    fn instruction(&mut self, inst: &'a Inst<R>) -> Result<Flow, Fault> {
        self.counts.instructions += 1;
        match &inst.op {
            Op::Mov { dst, src } => {
                self.counts.moves += 1;
                let value = self.read(src, Width::W64)?;
                self.write(dst, value, Width::W64)?;
            }
            Op::Imm { dst, value } => self.write(dst, *value as u64, Width::W64)?,
            Op::StrAddress { dst, string } => {
                let address = *self.strings.get(*string).ok_or("a string does not exist")?;
                self.write_reg(*dst, address)?;
            }
            Op::Parallel { moves } => {
                self.counts.moves += moves.len() as u64;
                self.counts.instructions += (moves.len() as u64).saturating_sub(1);
                let mut values: SmallVec<[u64; 8]> = SmallVec::new();
                for (_, src) in moves {
                    values.push(self.read_imm(src, Width::W64)?);
                }
                for ((dst, _), value) in moves.iter().zip(values) {
                    self.write(dst, value, Width::W64)?;
                }
            }
            Op::Load { ty, dst, src } => {
                let address = self.effective(src)?;
                let value = self.load(address, ty.size() as usize)?;
                self.write_reg(*dst, value)?;
            }
            Op::Store { ty, dst, src } => {
                let address = self.effective(dst)?;
                let value = match src {
                    StoreSource::Reg(reg) => self.read_reg(*reg)?,
                    StoreSource::Imm(value) => *value as i64 as u64,
                };
                self.store(address, ty.size() as usize, value)?;
            }
            Op::Lea { width, dst, src } => {
                let address = self.effective(src)?;
                self.write_reg(*dst, truncate(address, *width))?;
            }
            Op::Alu { op, width, dst, src } => {
                let clears =
                    matches!(op, AluOp::Xor | AluOp::Sub) && dst.reg().is_some_and(|reg| *src == RegMemImm::Reg(reg));
                let (a, b) = if clears { (0, 0) } else { (self.read(dst, *width)?, self.read_imm(src, *width)?) };
                let (result, flags) = match op {
                    AluOp::Add => add(a, b, bits(*width), false),
                    AluOp::Sub => add(a, b, bits(*width), true),
                    AluOp::And => logic(a & b, *width),
                    AluOp::Or => logic(a | b, *width),
                    AluOp::Xor => logic(a ^ b, *width),
                };
                self.flags = flags;
                self.write(dst, result, *width)?;
            }
            Op::Unary { op, width, dst } => {
                let value = self.read(dst, *width)?;
                let (result, flags) = match op {
                    UnaryOp::Neg => add(0, value, bits(*width), true),
                    UnaryOp::Not => (!value, self.flags),
                };
                self.flags = flags;
                self.write(dst, result, *width)?;
            }
            Op::Shift { op, width, dst, count } => {
                let (by, immediate) = match count {
                    Count::Imm(count) => (u64::from(*count), true),
                    Count::Cl(reg) => (self.read_reg(*reg)?, false),
                };
                let value = self.read(dst, *width)?;
                let (result, flags) = shift(*op, value, by, immediate, *width);
                self.flags = flags;
                self.write(dst, result, *width)?;
            }
            Op::Imul { dst, src } => {
                let (a, b) = (self.read_reg(*dst)?, self.read(src, Width::W64)?);
                self.flags = Flags::default();
                self.write_reg(*dst, a.wrapping_mul(b))?;
            }
            Op::ImulImm { dst, src, imm } => {
                let value = self.read(src, Width::W64)?;
                self.flags = Flags::default();
                self.write_reg(*dst, value.wrapping_mul(*imm as i64 as u64))?;
            }
            Op::MulHigh { signed, lo, hi, src } => {
                let (a, b) = (self.read_reg(*lo)?, self.read(src, Width::W64)?);
                let product = if *signed {
                    (i128::from(a as i64) * i128::from(b as i64)) as u128
                } else {
                    u128::from(a) * u128::from(b)
                };
                self.flags = Flags::default();
                self.write_reg(*lo, product as u64)?;
                self.write_reg(*hi, (product >> 64) as u64)?;
            }
            Op::SignExtend { hi, lo } => {
                let value = self.read_reg(*lo)? as i64;
                self.write_reg(*hi, (value >> 63) as u64)?;
            }
            Op::Div { signed, width, lo, hi, src } => {
                let low = truncate(self.read_reg(*lo)?, *width);
                let high = truncate(self.read_reg(*hi)?, *width);
                let divisor = self.read(src, *width)?;
                let (quotient, remainder) = divide(*signed, *width, high, low, divisor)?;
                self.flags = Flags::default();
                self.write_reg(*lo, truncate(quotient, *width))?;
                self.write_reg(*hi, truncate(remainder, *width))?;
            }
            Op::Cmp { width, lhs, rhs } => {
                let (a, b) = (self.read(lhs, *width)?, self.read_imm(rhs, *width)?);
                self.flags = add(a, b, bits(*width), true).1;
            }
            Op::CmpByte { lhs, imm } => {
                let address = self.effective(lhs)?;
                let value = self.load(address, 1)?;
                self.flags = add(value, *imm as u64, 8, true).1;
            }
            Op::Test { width, lhs, rhs } => {
                let (a, b) = (self.read(lhs, *width)?, self.read_imm(rhs, *width)?);
                self.flags = logic(a & b, *width).1;
            }
            Op::Set { cond, dst } => {
                let old = self.read_reg(*dst)?;
                let bit = self.flags.holds(*cond)?;
                self.write_reg(*dst, old & !0xFF | u64::from(bit))?;
            }
            Op::Cmov { cond, dst, src } => {
                let (old, new) = (self.read_reg(*dst)?, self.read(src, Width::W64)?);
                let value = if self.flags.holds(*cond)? { new } else { old };
                self.write_reg(*dst, value)?;
            }
            Op::Call { callee, args, stack_args, result } => {
                return self.call(*callee, args, *stack_args, *result, inst.span);
            }
            Op::Trap { cond, kind, args } => {
                let happens = match cond {
                    Some(cond) => self.flags.holds(*cond)?,
                    None => true,
                };
                // The arguments are read where the trap stands, so they must hold something whether it happens or not.
                let mut values: SmallVec<[i64; 2]> = SmallVec::new();
                for arg in args {
                    let in_memory = matches!(arg, RegMemImm::Mem(_));
                    if happens || !in_memory {
                        values.push(self.read_imm(arg, Width::W64)? as i64);
                    }
                }
                if happens {
                    let trap = match (kind, values.as_slice()) {
                        (TrapKind::Division, []) => Trap::DivisionByZero,
                        (TrapKind::Assert, []) => Trap::AssertionFailed,
                        (TrapKind::Index, [index, length]) => Trap::IndexOutOfBounds { index: *index, length: *length },
                        (TrapKind::Division | TrapKind::Assert | TrapKind::Index, values) => {
                            return Err(format!("a trap of kind {kind:?} has {} arguments", values.len()));
                        }
                    };
                    return Ok(Flow::End(Stop::Trap(trap).at(inst.span)));
                }
            }
            Op::Push { src } => {
                let value = self.read(src, Width::W64)?;
                self.frame().pushed.push(value);
            }
            Op::Pop { dst } => {
                let value = self.frame().pushed.pop().ok_or("nothing is pushed")?;
                self.write(dst, value, Width::W64)?;
            }
            Op::Xchg { a, b } => {
                let (first, second) = (self.read_reg(*a)?, self.read_reg(*b)?);
                self.write_reg(*a, second)?;
                self.write_reg(*b, first)?;
            }
        }
        Ok(Flow::On)
    }

    fn terminator(&mut self, term: &'a Terminator<R>) -> Result<Flow, Fault> {
        match term {
            Terminator::Jump(target) => self.go(*target, false)?,
            Terminator::Branch { cond, then, els } => {
                let target = if self.flags.holds(*cond)? { then } else { els };
                let (follows_then, follows_els) = (self.follows(*then), self.follows(*els));
                self.counts.instructions += 1;
                self.counts.branches += 1;
                // `jcc then` and, if `els` does not follow, `jmp els`; or `jncc els` if `then` follows.
                self.go(*target, follows_then || follows_els || target == then)?;
            }
            Terminator::Return { value } => {
                self.counts.instructions += 1;
                let value = value.map(|value| self.read_reg(value)).transpose()?;
                self.leave(value)?;
            }
            Terminator::TailCall { callee, args } => {
                self.counts.instructions += 1;
                self.counts.calls += 1;
                let values = self.arguments(args)?;
                let frame = self.frames.pop().expect("code runs in a frame");
                self.check_stack(&frame)?;
                // The caller finds its registers as it left them: the frame has been taken down.
                self.file = frame.saved;
                self.push_frame(*callee, &values, Vec::new(), frame.result)?;
            }
            Terminator::Unreachable => return Err("control comes to what cannot be reached".to_string()),
        }
        Ok(Flow::On)
    }

    fn follows(&mut self, target: Block) -> bool {
        let frame = self.frames.last().expect("code runs in a frame");
        let layout = &frame.function.layout;
        // The order of emission matters for counting alone.
        let next = self.next[frame.id].get_or_insert_with(|| {
            let most = layout.iter().map(|block| block.index()).max().unwrap_or(0);
            let mut next = vec![None.into(); most + 1];
            for pair in layout.windows(2) {
                next[pair[0].index()] = Some(pair[1]).into();
            }
            next
        });
        next.get(frame.block.index()).is_some_and(|next| next.expand() == Some(target))
    }

    /// Goes to a block; `counted` if the jump that leads there has been counted, or needs none.
    fn go(&mut self, target: Block, counted: bool) -> Result<(), Fault> {
        if !counted && !self.follows(target) {
            self.counts.instructions += 1;
            self.counts.branches += 1;
        }
        // Flags do not live from block to block.
        self.flags = Flags::default();
        let frame = self.frame();
        if !frame.pushed.is_empty() {
            return Err("a block ends while something is pushed".to_string());
        }
        if frame.function.blocks.get(target).is_none() {
            return Err(format!("{target} does not exist"));
        }
        frame.block = target;
        frame.index = 0;
        Ok(())
    }

    // ---- calls ----

    fn arguments(&mut self, args: &[R]) -> Result<SmallVec<[u64; 6]>, Fault> {
        let frame = self.frames.last().expect("code runs in a frame");
        for (arg, register) in args.iter().zip(ARGUMENTS) {
            if arg.fixed(&frame.function.vregs) != Some(register) {
                return Err(format!("an argument is in {arg}, not in {register}"));
            }
        }
        args.iter().map(|arg| self.read_reg(*arg)).collect()
    }

    fn call(
        &mut self,
        callee: Callee,
        args: &[R],
        stack_args: u32,
        result: Option<R>,
        span: Span,
    ) -> Result<Flow, Fault> {
        self.counts.calls += 1;
        let values = self.arguments(args)?;
        if !self.frame().pushed.is_empty() {
            return Err("a call while something is pushed".to_string());
        }
        let mut stack = Vec::new();
        for number in 0..stack_args {
            stack.push(Some(self.read_slot(Slot::Outgoing(number))?));
        }
        let outgoing = &mut self.frame().outgoing;
        outgoing.iter_mut().for_each(|slot| *slot = None);
        match callee {
            Callee::Function(callee) => {
                if self.machine.enter().is_err() {
                    return Ok(Flow::End(End::Limit(crate::execution::Limit::Depth)));
                }
                // The caller goes on behind the call.
                self.advance();
                self.push_frame(callee, &values, stack, result)?;
                Ok(Flow::On)
            }
            Callee::Runtime(callee) => {
                let before = self.machine.output.len();
                let answer = self.runtime(callee, &values, span)?;
                if self.machine.output.len() > before {
                    let frame = self.frames.last().expect("code runs in a frame");
                    self.watch.printed(frame.id, frame.block, frame.index, self.machine.output.len());
                }
                self.clobber();
                match answer {
                    Err(stop) => return Ok(Flow::End(stop.at(span))),
                    Ok(Some(value)) => self.file[RESULT.number() as usize] = Some(Held { value, writer: CONVENTION }),
                    Ok(None) => {}
                }
                self.take_result(result)?;
                Ok(Flow::On)
            }
        }
    }

    /// A new frame: the callee sees its arguments and nothing else.
    fn push_frame(
        &mut self,
        callee: FuncId,
        values: &[u64],
        stack: Vec<Option<u64>>,
        result: Option<R>,
    ) -> Result<(), Fault> {
        let function = self.program.functions.get(callee).ok_or_else(|| format!("{callee} does not exist"))?;
        if function.incoming as usize != stack.len() {
            return Err(format!("{} gets {} stack arguments", function.name, stack.len()));
        }
        let saved = self.file;
        self.file = [None; 16];
        for (register, value) in ARGUMENTS.iter().zip(values) {
            self.file[register.number() as usize] = Some(Held { value: *value, writer: CONVENTION });
        }
        self.flags = Flags::default();
        self.frames.push(Activation {
            id: callee,
            function,
            block: function.layout[0],
            index: 0,
            virtuals: if R::PHYSICAL { Vec::new() } else { vec![None; function.vregs.len()] },
            spills: vec![None; function.frame.spill_slots as usize],
            incoming: stack,
            outgoing: vec![None; function.frame.outgoing as usize],
            pushed: Vec::new(),
            saved,
            result,
        });
        Ok(())
    }

    fn check_stack(&self, frame: &Activation<'a, R>) -> Result<(), Fault> {
        if frame.pushed.is_empty() { Ok(()) } else { Err("a function ends while something is pushed".to_string()) }
    }

    /// Ends the call in hand with its result.
    fn leave(&mut self, value: Option<u64>) -> Result<(), Fault> {
        let frame = self.frames.pop().expect("code runs in a frame");
        self.check_stack(&frame)?;
        self.file = frame.saved;
        self.clobber();
        if self.frames.is_empty() {
            return Ok(());
        }
        self.machine.leave();
        if let Some(value) = value {
            self.file[RESULT.number() as usize] = Some(Held { value, writer: CONVENTION });
        }
        self.take_result(frame.result)
    }

    /// Makes the result of a call the register's that wants it; no other may read it.
    fn take_result(&mut self, result: Option<R>) -> Result<(), Fault> {
        let held = self.file[RESULT.number() as usize].take();
        match (result, held) {
            (Some(result), Some(held)) => {
                let frame = self.frames.last().expect("a call returns to a frame");
                if result.fixed(&frame.function.vregs) != Some(RESULT) {
                    return Err(format!("a call's result is in {result}, not in {RESULT}"));
                }
                self.returning = true;
                let written = self.write_reg(result, held.value);
                self.returning = false;
                written
            }
            (Some(_), None) => Err("the callee gives no result".to_string()),
            (None, Some(_) | None) => Ok(()),
        }
    }

    /// What a call does to registers and flags.
    fn clobber(&mut self) {
        for register in RegSet::CALLER_SAVED.iter() {
            self.file[register.number() as usize] = None;
        }
        self.flags = Flags::default();
    }

    fn runtime(&mut self, callee: RuntimeFn, args: &[u64], span: Span) -> Result<Result<Option<u64>, Stop>, Fault> {
        let wrong = || format!("{} gets {} arguments", callee.symbol(), args.len());
        let shown = match (callee, args) {
            (RuntimeFn::PrintInt, [value, end]) => self.machine.print_int(*value as i64, as_byte(*end)?),
            (RuntimeFn::PrintBool, [value, end]) => self.machine.print_bool(as_bool(*value)?, as_byte(*end)?),
            (RuntimeFn::PrintStr, [address, bytes, end]) => {
                let text = self.text(*address, *bytes)?;
                self.machine.print_str(text.as_bytes(), as_byte(*end)?)
            }
            (RuntimeFn::ArrayInt | RuntimeFn::ArrayBool, [length, init, line, column]) => {
                self.check_position(*line, *column, span)?;
                let element = if callee == RuntimeFn::ArrayInt { Scalar::Int } else { Scalar::Bool };
                return Ok(self.allocate(element, *length as i64, *init)?.map(Some));
            }
            (RuntimeFn::Free, [address]) => {
                self.free(*address)?;
                Ok(())
            }
            (RuntimeFn::Read, [line, column]) => {
                self.check_position(*line, *column, span)?;
                return Ok(self.machine.input.read().map(|value| Some(value as u64)).map_err(Stop::Trap));
            }
            (RuntimeFn::Eof, []) => return Ok(Ok(Some(u64::from(self.machine.input.eof())))),
            (RuntimeFn::TrapDivision, [line, column]) => {
                self.check_position(*line, *column, span)?;
                Err(Stop::Trap(Trap::DivisionByZero))
            }
            (RuntimeFn::TrapIndex, [index, length, line, column]) => {
                self.check_position(*line, *column, span)?;
                Err(Stop::Trap(Trap::IndexOutOfBounds { index: *index as i64, length: *length as i64 }))
            }
            (RuntimeFn::TrapAssert, [line, column]) => {
                self.check_position(*line, *column, span)?;
                Err(Stop::Trap(Trap::AssertionFailed))
            }
            (
                RuntimeFn::PrintInt
                | RuntimeFn::PrintBool
                | RuntimeFn::PrintStr
                | RuntimeFn::ArrayInt
                | RuntimeFn::ArrayBool
                | RuntimeFn::Free
                | RuntimeFn::Read
                | RuntimeFn::Eof
                | RuntimeFn::TrapDivision
                | RuntimeFn::TrapIndex
                | RuntimeFn::TrapAssert,
                _,
            ) => return Err(wrong()),
        };
        Ok(shown.map(|()| None))
    }

    /// The bytes of a string that a register points to. No bytes are the same everywhere: a line end alone is printed
    /// as an empty string without an address.
    fn text(&self, address: u64, bytes: u64) -> Result<&'a str, Fault> {
        if bytes == 0 {
            return Ok("");
        }
        let program = self.program;
        let after = self.strings.values().as_slice().partition_point(|start| *start <= address);
        let found = after.checked_sub(1).map(StrId::new).map(|id| (self.strings[id], program.strings[id].as_str()));
        match found {
            Some((start, text)) if address == start && bytes == text.len() as u64 => Ok(text),
            Some(_) | None => Err(format!("no string of {bytes} bytes is at {address:#x}")),
        }
    }

    /// The position that the runtime is told must be that of the instruction.
    fn check_position(&self, line: u64, column: u64, span: Span) -> Result<(), Fault> {
        match self.program.positions.position(span) {
            Some(position) if (u64::from(position.line), u64::from(position.column)) != (line, column) => {
                Err(format!("the runtime is told {line}:{column} where the instruction is from {position}"))
            }
            Some(_) | None => Ok(()),
        }
    }
}

fn as_bool(value: u64) -> Result<bool, Fault> {
    match value {
        0 => Ok(false),
        1 => Ok(true),
        other => Err(format!("a bool is {other}")),
    }
}

fn as_byte(value: u64) -> Result<u8, Fault> {
    u8::try_from(value).map_err(|_| format!("a character is {value}"))
}

#[cfg(test)]
#[path = "interpret_tests.rs"]
mod tests;
