//! Says whether a function in machine code keeps the rules that printing, interpreting, allocating and encoding rely on;
//! for virtual and for physical registers.
//!
//! Each block is walked once. The walk checks the shape of every instruction (memory operands, immediates, fixed
//! registers), follows which of the flags are defined, which virtual register each pinned physical one holds, and how
//! much is on the stack, and notes which locations (registers and slots) the block reads before it writes them, and what
//! it leaves in those that it touches. Then, for each location by itself, the reads are followed backwards over the
//! blocks that do not touch it, until a write answers them: exploring paths by variable (Andrew Appel and Jens Palsberg,
//! Modern Compiler Implementation in Java, 2002, chapter 19; Florian Brandner et al., Computing Liveness Sets for
//! SSA-Form Programs, 2011). Coming to the function's entry, or to a call that clobbers the location, is the error
//! "may be read before it is written".
//!
//! Example: `b0: jne b2; mov v1, 1 … b2: mov v2, v1` is refused, because the way b0 → b2 leaves v1 unwritten.
//!
//! **in**: nothing. **out**: if `Ok`,
//! - `layout` names existing blocks once each; edges stay in it; the entry has no predecessors;
//! - an instruction has at most one operand in memory (`Parallel` and `Trap` as many as they like, `Parallel` only slots);
//!   immediates fit; scales are 1, 2, 4 or 8; slots exist; destinations of a `Parallel` are distinct;
//! - operands that the machine fixes are the right registers: rcx, rax, rdx, those of arguments and results; rsp is none;
//! - a pinned virtual register holds its value wherever it is read, from within the block (in the entry block, argument
//!   registers hold something from the start);
//! - on every path, every register and slot is written before it is read, and not clobbered by a call between;
//! - flags are read only where they are defined since the block's start;
//! - code over virtual registers has no `push`, `pop`, `xchg` and no spill slots; code over physical ones no `Parallel`,
//!   saves the callee-saved registers that it writes, and pops within a block what it pushes there.
//!
//! Cost: linear in instructions, plus, for each location, the blocks over which it is live.

use super::registers::{ARGUMENTS, PReg, RESULT, Reg, RegSet, VReg};
use super::shape::{Shape, condition_of, is_clearing};
use super::types::*;
use crate::support::internal::Internal;
use cranelift_entity::{EntityRef, EntitySet, SecondaryMap};
use smallvec::SmallVec;
use std::fmt::Display;

/// Checks every function of a program, and that calls fit their callees.
pub fn verify_program<R: Reg>(program: &Program<R>) -> Result<(), Internal> {
    if program.functions.get(program.entry).is_none() {
        return Err(Internal::new(program.entry, "the program's body does not exist"));
    }
    for function in program.functions.values() {
        verify(function).map_err(|error| error.in_function(&function.name))?;
        for block in &function.layout {
            let data = &function.blocks[*block];
            for (index, inst) in data.insts.iter().enumerate() {
                check_references(program, &inst.op)
                    .map_err(|message| Internal::new(place(*block, index), message).in_function(&function.name))?;
            }
            if let Terminator::TailCall { callee, .. } = &data.term {
                let stack_args = program.functions.get(*callee).map(|callee| callee.incoming);
                if stack_args != Some(0) {
                    return Err(Internal::new(block, format!("the tail call of {callee} does not fit its callee"))
                        .in_function(&function.name));
                }
            }
        }
    }
    Ok(())
}

fn check_references<R: Reg>(program: &Program<R>, op: &Op<R>) -> Result<(), String> {
    match op {
        Op::Call { callee: Callee::Function(callee), args, stack_args, .. } => match program.functions.get(*callee) {
            None => Err(format!("the callee {callee} does not exist")),
            Some(function) if function.incoming != *stack_args => {
                Err(format!("{} takes {} stack arguments and gets {stack_args}", function.name, function.incoming))
            }
            Some(_) if *stack_args > 0 && args.len() != ARGUMENTS.len() => {
                Err("a call uses the stack before all argument registers are used".to_string())
            }
            Some(_) => Ok(()),
        },
        Op::StrAddress { string, .. } if program.strings.get(*string).is_none() => {
            Err(format!("the string {string} does not exist"))
        }
        Op::StrAddress { .. }
        | Op::Call { callee: Callee::Runtime(_), .. }
        | Op::Mov { .. }
        | Op::Imm { .. }
        | Op::Parallel { .. }
        | Op::Load { .. }
        | Op::Store { .. }
        | Op::Lea { .. }
        | Op::Alu { .. }
        | Op::Unary { .. }
        | Op::Shift { .. }
        | Op::Imul { .. }
        | Op::ImulImm { .. }
        | Op::MulHigh { .. }
        | Op::SignExtend { .. }
        | Op::Div { .. }
        | Op::Cmp { .. }
        | Op::CmpByte { .. }
        | Op::Test { .. }
        | Op::Set { .. }
        | Op::Cmov { .. }
        | Op::Trap { .. }
        | Op::Push { .. }
        | Op::Pop { .. }
        | Op::Xchg { .. } => Ok(()),
    }
}

/// Checks one function.
pub fn verify<R: Reg>(function: &Function<R>) -> Result<(), Internal> {
    check_graph(function)?;
    let reachable = reachable_blocks(function);
    let mut walk = Walk::new(function);
    for block in &function.layout {
        walk.block(*block)?;
    }
    walk.check_paths(&reachable)
}

/// A place within a function, for errors: `b3, instruction 2` (from 0).
fn place(block: Block, index: usize) -> String {
    format!("{block}, instruction {index}")
}

fn check_graph<R: Reg>(function: &Function<R>) -> Result<(), Internal> {
    if RegSet::CALLEE_SAVED.intersection(function.frame.saved) != function.frame.saved {
        return Err(Internal::new("", "the frame saves a register that is not callee-saved"));
    }
    let Some(entry) = function.layout.first().copied() else {
        return Err(Internal::new("", "a function has no blocks"));
    };
    let mut seen: EntitySet<Block> = EntitySet::new();
    for block in &function.layout {
        if function.blocks.get(*block).is_none() {
            return Err(Internal::new(block, "a block of the layout does not exist"));
        }
        if !seen.insert(*block) {
            return Err(Internal::new(block, "a block stands in the layout twice"));
        }
    }
    for block in &function.layout {
        for target in function.blocks[*block].term.successors() {
            if !seen.contains(target) {
                return Err(Internal::new(block, format!("an edge leads to {target}, which is not in the layout")));
            }
            if target == entry {
                return Err(Internal::new(block, "an edge leads to the entry block"));
            }
        }
    }
    Ok(())
}

fn reachable_blocks<R: Reg>(function: &Function<R>) -> EntitySet<Block> {
    let mut reachable = EntitySet::new();
    let mut work = vec![function.layout[0]];
    reachable.insert(function.layout[0]);
    while let Some(block) = work.pop() {
        for target in function.blocks[block].term.successors() {
            if reachable.insert(target) {
                work.push(target);
            }
        }
    }
    reachable
}

/// What a block has done so far to a location.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Written,
    /// A call has clobbered it.
    Clobbered,
}

/// What a pinned physical register holds, in code over virtual registers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Holder {
    /// Nothing that may be read.
    Nobody,
    /// An argument of the function, which any register pinned here may read.
    Argument,
    Register(VReg),
}

/// A set of flags.
type Flags = u8;
const CF: Flags = 1;
const ZF: Flags = 2;
const SF: Flags = 4;
const OF: Flags = 8;
const ALL_FLAGS: Flags = CF | ZF | SF | OF;

/// The flags that a condition reads.
fn needs(cond: Cond) -> Flags {
    match cond {
        Cond::O | Cond::NO => OF,
        Cond::B | Cond::AE => CF,
        Cond::E | Cond::NE => ZF,
        Cond::BE | Cond::A => CF | ZF,
        Cond::S | Cond::NS => SF,
        Cond::L | Cond::GE => SF | OF,
        Cond::LE | Cond::G => ZF | SF | OF,
    }
}

/// The walk over the blocks, and what it has gathered for the paths between them.
struct Walk<'a, R: Reg> {
    function: &'a Function<R>,
    /// Locations are numbered: registers, then spill slots, then outgoing slots.
    registers: usize,
    /// What the current block has done to each location, if its stamp says that it is about this block.
    state: Vec<(u32, State)>,
    stamp: u32,
    /// Locations that the current block has touched.
    touched: Vec<usize>,
    /// `(location, block, instruction)`: read before the block writes it.
    exposed: Vec<(usize, Block, usize)>,
    /// `(location, block, state)`: what the block leaves.
    left: Vec<(usize, Block, State)>,
    holders: [Holder; 16],
    flags: Flags,
    depth: u32,
}

impl<'a, R: Reg> Walk<'a, R> {
    fn new(function: &'a Function<R>) -> Walk<'a, R> {
        let registers = if R::PHYSICAL { 16 } else { function.vregs.len() };
        let outgoing = if R::PHYSICAL { function.frame.outgoing } else { most_outgoing(function) };
        let locations = registers + function.frame.spill_slots as usize + outgoing as usize;
        Walk {
            function,
            registers,
            state: vec![(0, State::Written); locations],
            stamp: 0,
            touched: Vec::new(),
            exposed: Vec::new(),
            left: Vec::new(),
            holders: [Holder::Nobody; 16],
            flags: 0,
            depth: 0,
        }
    }

    fn block(&mut self, block: Block) -> Result<(), Internal> {
        let function = self.function;
        let entry = block == function.layout[0];
        self.stamp += 1;
        self.flags = 0;
        self.depth = 0;
        self.holders = [Holder::Nobody; 16];
        if entry {
            for register in ARGUMENTS {
                self.holders[register.number() as usize] = Holder::Argument;
                if R::PHYSICAL {
                    self.leave(register.number() as usize, State::Written);
                }
            }
        }
        let data = &function.blocks[block];
        for (index, inst) in data.insts.iter().enumerate() {
            self.instruction(block, index, &inst.op).map_err(|message| Internal::new(place(block, index), message))?;
        }
        let end = data.insts.len();
        self.terminator(block, end, &data.term)
            .map_err(|message| Internal::new(format!("{block}, terminator"), message))?;
        for location in std::mem::take(&mut self.touched) {
            self.left.push((location, block, self.state[location].1));
        }
        Ok(())
    }

    fn instruction(&mut self, block: Block, index: usize, op: &Op<R>) -> Result<(), String> {
        self.check_shape(op)?;
        self.check_kind(op)?;
        if let Some(cond) = condition_of(op) {
            self.read_flags(cond)?;
        }
        // Reads come before writes. `xor r, r` and `sub r, r` read nothing, in truth.
        if !is_clearing(op) {
            self.each_read(op, |walk, location| walk.read(block, index, location))?;
        }
        if let Op::Call { stack_args, .. } = op {
            for number in 0..*stack_args {
                self.read(block, index, Location::Slot(Slot::Outgoing(number)))?;
            }
            self.clobber_call();
        }
        self.each_write(op, |walk, location| walk.write(location))?;
        self.flags = match op {
            Op::Alu { .. } | Op::Cmp { .. } | Op::CmpByte { .. } | Op::Test { .. } => ALL_FLAGS,
            Op::Unary { op: UnaryOp::Neg, .. } => ALL_FLAGS,
            Op::Unary { op: UnaryOp::Not, .. } => self.flags,
            // A count of 0 would keep the flags; the overflow flag is defined for a count of 1 alone.
            Op::Shift { op, count, .. } => match (op, count) {
                (ShiftOp::Rol | ShiftOp::Ror, _) | (_, Count::Cl(_) | Count::Imm(0)) => 0,
                (ShiftOp::Shl | ShiftOp::Shr | ShiftOp::Sar, Count::Imm(1)) => ALL_FLAGS,
                (ShiftOp::Shl | ShiftOp::Shr | ShiftOp::Sar, Count::Imm(_)) => CF | ZF | SF,
            },
            Op::Imul { .. } | Op::ImulImm { .. } | Op::MulHigh { .. } | Op::Div { .. } | Op::Call { .. } => 0,
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
            | Op::Xchg { .. } => self.flags,
        };
        Ok(())
    }

    fn terminator(&mut self, block: Block, index: usize, term: &Terminator<R>) -> Result<(), String> {
        if self.depth != 0 {
            return Err(format!("{} pushed values are not popped", self.depth));
        }
        match term {
            Terminator::Branch { cond, .. } => self.read_flags(*cond)?,
            Terminator::Return { value: Some(value) } => self.expect_fixed(*value, RESULT, "a returned value")?,
            Terminator::TailCall { args, .. } => self.check_arguments(args)?,
            Terminator::Jump(_) | Terminator::Return { value: None } | Terminator::Unreachable => {}
        }
        let mut reads: SmallVec<[R; 6]> = SmallVec::new();
        term.for_each_reg(|reg, _, _| reads.push(reg));
        reads.into_iter().try_for_each(|reg| self.read(block, index, Location::Reg(reg)))
    }

    // ---- the shape of an instruction ----

    fn check_shape(&self, op: &Op<R>) -> Result<(), String> {
        let mut registers: SmallVec<[R; 8]> = SmallVec::new();
        op.for_each_reg(|reg, _, _| registers.push(reg));
        for reg in registers {
            if !R::PHYSICAL && reg.dense_index() >= self.registers {
                return Err(format!("{reg} does not exist"));
            }
            if reg.fixed(&self.function.vregs) == Some(PReg::RSP) {
                return Err(format!("{reg} is the stack pointer, which holds no value"));
            }
        }
        let mut shape = Shape::default();
        shape.op(op);
        if !matches!(op, Op::Parallel { .. } | Op::Trap { .. }) && shape.memory > 1 {
            return Err(format!("an instruction has {} operands in memory", shape.memory));
        }
        if let Some(scale) = shape.bad_scale {
            return Err(format!("an index is multiplied by {scale}"));
        }
        if let Some(value) = shape.wide {
            return Err(format!("the immediate {value} does not fit"));
        }
        for slot in shape.slots {
            let (exists, count) = match slot {
                Slot::Spill(number) => (number < self.function.frame.spill_slots, self.function.frame.spill_slots),
                Slot::Incoming(number) => (number < self.function.incoming, self.function.incoming),
                Slot::Outgoing(number) => {
                    (!R::PHYSICAL || number < self.function.frame.outgoing, self.function.frame.outgoing)
                }
            };
            if !exists {
                return Err(format!("{slot:?} does not exist: there are {count}"));
            }
            if !R::PHYSICAL && matches!(slot, Slot::Spill(_)) {
                return Err("code over virtual registers uses a spill slot".to_string());
            }
        }
        Ok(())
    }

    /// The rules that hold for some kinds of instructions only.
    fn check_kind(&mut self, op: &Op<R>) -> Result<(), String> {
        let is_move = match op {
            Op::Mov { .. } | Op::Imm { .. } | Op::StrAddress { .. } => true,
            Op::Push { .. } | Op::Pop { .. } | Op::Xchg { .. } => {
                if !R::PHYSICAL {
                    return Err("push, pop and xchg are the allocator's".to_string());
                }
                true
            }
            Op::Parallel { moves } => {
                if R::PHYSICAL {
                    return Err("a parallel move is left after allocation".to_string());
                }
                return self.check_parallel(moves);
            }
            Op::Alu { width: Width::W32, dst: RegMem::Slot(_) | RegMem::Mem(_), .. }
            | Op::Unary { width: Width::W32, dst: RegMem::Slot(_) | RegMem::Mem(_), .. }
            | Op::Shift { width: Width::W32, dst: RegMem::Slot(_) | RegMem::Mem(_), .. } => {
                return Err("a 32-bit operation writes memory, whose upper half it would keep".to_string());
            }
            Op::Shift { count, width, .. } => {
                match count {
                    Count::Cl(reg) => self.expect_fixed(*reg, PReg::RCX, "a shift's count")?,
                    Count::Imm(count) => {
                        let bits = if *width == Width::W64 { 64 } else { 32 };
                        if *count >= bits {
                            return Err(format!("the shift count {count} is not below {bits}"));
                        }
                    }
                }
                false
            }
            Op::MulHigh { lo, hi, .. } | Op::Div { lo, hi, .. } | Op::SignExtend { hi, lo } => {
                self.expect_fixed(*lo, PReg::RAX, "the low half")?;
                self.expect_fixed(*hi, PReg::RDX, "the high half")?;
                false
            }
            Op::Call { callee, args, stack_args, result } => {
                self.check_arguments(args)?;
                if let Some(result) = result {
                    self.expect_fixed(*result, RESULT, "a call's result")?;
                }
                if let Callee::Runtime(callee) = callee {
                    let fits = args.len() == callee.argument_count() && *stack_args == 0;
                    if !fits || result.is_some() && !callee.has_result() {
                        return Err(format!("the call does not fit {}", callee.symbol()));
                    }
                }
                if R::PHYSICAL && (*stack_args > self.function.frame.outgoing || !self.function.frame.calls) {
                    return Err("the frame does not provide for this call".to_string());
                }
                false
            }
            Op::Trap { kind, args, .. } => {
                let count = match kind {
                    TrapKind::Division | TrapKind::Assert => 0,
                    TrapKind::Index => 2,
                };
                if args.len() != count {
                    return Err(format!("a trap of kind {kind:?} has {} arguments", args.len()));
                }
                false
            }
            Op::Load { .. }
            | Op::Store { .. }
            | Op::Lea { .. }
            | Op::Alu { .. }
            | Op::Unary { .. }
            | Op::Imul { .. }
            | Op::ImulImm { .. }
            | Op::Cmp { .. }
            | Op::CmpByte { .. }
            | Op::Test { .. }
            | Op::Set { .. }
            | Op::Cmov { .. } => false,
        };
        if self.depth > 0 && !is_move {
            return Err("something other than a move stands between a push and its pop".to_string());
        }
        if matches!(op, Op::Push { .. }) {
            self.depth += 1;
        }
        if matches!(op, Op::Pop { .. }) {
            self.depth = self.depth.checked_sub(1).ok_or("a pop has no push in its block")?;
        }
        Ok(())
    }

    fn check_parallel(&self, moves: &[(RegMem<R>, RegMemImm<R>)]) -> Result<(), String> {
        let mut destinations = Vec::with_capacity(moves.len());
        let mut fixed = RegSet::EMPTY;
        for (destination, source) in moves {
            match destination {
                RegMem::Reg(reg) => {
                    if let Some(register) = reg.fixed(&self.function.vregs) {
                        if fixed.contains(register) {
                            return Err(format!("a parallel move writes {register} twice"));
                        }
                        fixed = fixed.with(register);
                    }
                    destinations.push((0, reg.dense_index() as u32));
                }
                RegMem::Slot(Slot::Spill(number)) => destinations.push((1, *number)),
                RegMem::Slot(Slot::Incoming(number)) => destinations.push((2, *number)),
                RegMem::Slot(Slot::Outgoing(number)) => destinations.push((3, *number)),
                RegMem::Mem(_) => return Err("a parallel move writes an array".to_string()),
            }
            match source {
                RegMemImm::Mem(_) => return Err("a parallel move reads an array".to_string()),
                RegMemImm::Reg(_) | RegMemImm::Slot(_) | RegMemImm::Imm(_) => {}
            }
        }
        destinations.sort_unstable();
        match destinations.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(_) => Err("a parallel move writes a destination twice".to_string()),
            None => Ok(()),
        }
    }

    fn check_arguments(&self, args: &[R]) -> Result<(), String> {
        if args.len() > ARGUMENTS.len() {
            return Err(format!("a call has {} arguments in registers", args.len()));
        }
        args.iter().zip(ARGUMENTS).try_for_each(|(arg, register)| self.expect_fixed(*arg, register, "an argument"))
    }

    fn expect_fixed(&self, reg: R, register: PReg, what: impl Display) -> Result<(), String> {
        if !R::PHYSICAL && reg.dense_index() >= self.registers {
            return Err(format!("{reg} does not exist"));
        }
        if reg.fixed(&self.function.vregs) == Some(register) {
            return Ok(());
        }
        Err(format!("{what} is in {reg}, not in {register}"))
    }

    // ---- what it reads and writes ----

    fn each_read(
        &mut self,
        op: &Op<R>,
        mut visit: impl FnMut(&mut Self, Location<R>) -> Result<(), String>,
    ) -> Result<(), String> {
        let mut reads: SmallVec<[Location<R>; 8]> = SmallVec::new();
        op.for_each_reg(|reg, role, _| match role {
            Role::Use | Role::Mod => reads.push(Location::Reg(reg)),
            Role::Def => {}
        });
        let mut shape = Shape::default();
        shape.op(op);
        reads.extend(shape.slots_read.iter().map(|slot| Location::Slot(*slot)));
        reads.into_iter().try_for_each(|location| visit(self, location))
    }

    fn each_write(
        &mut self,
        op: &Op<R>,
        mut visit: impl FnMut(&mut Self, Location<R>) -> Result<(), String>,
    ) -> Result<(), String> {
        let mut writes: SmallVec<[Location<R>; 8]> = SmallVec::new();
        op.for_each_reg(|reg, role, _| match role {
            Role::Def | Role::Mod => writes.push(Location::Reg(reg)),
            Role::Use => {}
        });
        let mut shape = Shape::default();
        shape.op(op);
        writes.extend(shape.slots_written.iter().map(|slot| Location::Slot(*slot)));
        writes.into_iter().try_for_each(|location| visit(self, location))
    }

    /// The location's number; none for pinned virtual registers, which live within their block, and for the caller's
    /// slots, which always hold something.
    fn number(&self, location: Location<R>) -> Option<usize> {
        match location {
            Location::Reg(reg) if !R::PHYSICAL && reg.fixed(&self.function.vregs).is_some() => None,
            Location::Reg(reg) => Some(reg.dense_index()),
            Location::Slot(Slot::Spill(number)) => Some(self.registers + number as usize),
            Location::Slot(Slot::Outgoing(number)) => {
                Some(self.registers + self.function.frame.spill_slots as usize + number as usize)
            }
            Location::Slot(Slot::Incoming(_)) => None,
        }
    }

    fn read(&mut self, block: Block, index: usize, location: Location<R>) -> Result<(), String> {
        if let Some(number) = self.number(location) {
            let (stamp, state) = self.state[number];
            if stamp != self.stamp {
                self.exposed.push((number, block, index));
            } else if state == State::Clobbered {
                return Err(format!("{location} is read behind a call that clobbers it"));
            }
        } else if let Location::Reg(reg) = location {
            let register = reg.fixed(&self.function.vregs).expect("only pinned registers have no number");
            let own = VReg::new(reg.dense_index());
            match self.holders[register.number() as usize] {
                Holder::Argument => {}
                Holder::Register(holder) if holder == own => {}
                Holder::Register(holder) => {
                    return Err(format!("{reg} is read where {holder}, also pinned to {register}, is"));
                }
                Holder::Nobody => {
                    return Err(format!("{reg}, pinned to {register}, is read before its block writes it"));
                }
            }
        }
        Ok(())
    }

    fn write(&mut self, location: Location<R>) -> Result<(), String> {
        if let Some(number) = self.number(location) {
            self.leave(number, State::Written);
        }
        if let Location::Reg(reg) = location
            && let Some(register) = reg.fixed(&self.function.vregs)
        {
            if !R::PHYSICAL {
                self.holders[register.number() as usize] = Holder::Register(VReg::new(reg.dense_index()));
            } else if RegSet::CALLEE_SAVED.contains(register) && !self.function.frame.saved.contains(register) {
                return Err(format!("{register} is written and not saved"));
            }
        }
        Ok(())
    }

    fn clobber_call(&mut self) {
        for register in RegSet::CALLER_SAVED.iter() {
            let number = register.number() as usize;
            self.holders[number] = Holder::Nobody;
            if R::PHYSICAL {
                self.leave(number, State::Clobbered);
            }
        }
        // A callee owns the slots of its arguments.
        let first = self.registers + self.function.frame.spill_slots as usize;
        for number in first..self.state.len() {
            if self.state[number].0 == self.stamp {
                self.leave(number, State::Clobbered);
            }
        }
    }

    fn leave(&mut self, location: usize, state: State) {
        if self.state[location].0 != self.stamp {
            self.touched.push(location);
        }
        self.state[location] = (self.stamp, state);
    }

    fn read_flags(&self, cond: Cond) -> Result<(), String> {
        let missing = needs(cond) & !self.flags;
        if missing == 0 {
            return Ok(());
        }
        Err(format!("the condition {} reads flags that are not defined here", cond.name()))
    }

    // ---- paths between blocks ----

    fn check_paths(self, reachable: &EntitySet<Block>) -> Result<(), Internal> {
        let function = self.function;
        let locations = self.state.len();
        let exposed = by_location(locations, self.exposed.iter().map(|(location, ..)| *location));
        let left = by_location(locations, self.left.iter().map(|(location, ..)| *location));
        let mut predecessors: SecondaryMap<Block, SmallVec<[Block; 2]>> = SecondaryMap::new();
        for block in &function.layout {
            if reachable.contains(*block) {
                for target in function.blocks[*block].term.successors() {
                    predecessors[target].push(*block);
                }
            }
        }
        // Stamps per block: which location it was last visited for, and what it leaves in that location.
        let mut visited: SecondaryMap<Block, usize> = SecondaryMap::new();
        let mut leaves: SecondaryMap<Block, Option<(usize, State)>> = SecondaryMap::new();
        for location in 0..locations {
            for index in left.of(location) {
                let (_, block, state) = self.left[index];
                leaves[block] = Some((location, state));
            }
            for index in exposed.of(location) {
                let (_, read_in, inst) = self.exposed[index];
                if !reachable.contains(read_in) || visited[read_in] == location + 1 {
                    continue;
                }
                visited[read_in] = location + 1;
                let mut work = vec![read_in];
                while let Some(block) = work.pop() {
                    let fault = |why: String| {
                        let name = self.name(location);
                        Internal::new(place(read_in, inst), format!("{name} may be read before it is written: {why}"))
                    };
                    if block == function.layout[0] {
                        return Err(fault("a path from the entry does not write it".to_string()));
                    }
                    for predecessor in &predecessors[block] {
                        match leaves[*predecessor] {
                            Some((about, State::Written)) if about == location => {}
                            Some((about, State::Clobbered)) if about == location => {
                                return Err(fault(format!("a call in {predecessor} clobbers it")));
                            }
                            Some(_) | None => {
                                if visited[*predecessor] != location + 1 {
                                    visited[*predecessor] = location + 1;
                                    work.push(*predecessor);
                                }
                            }
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// The location's name, for errors.
    fn name(&self, location: usize) -> String {
        let spills = self.function.frame.spill_slots as usize;
        if location < self.registers {
            if R::PHYSICAL { PReg::new(location as u8).to_string() } else { VReg::new(location).to_string() }
        } else if location < self.registers + spills {
            format!("spill slot {}", location - self.registers)
        } else {
            format!("outgoing slot {}", location - self.registers - spills)
        }
    }
}

/// The number of outgoing slots that code over virtual registers writes or needs.
fn most_outgoing<R: Reg>(function: &Function<R>) -> u32 {
    let mut most = 0;
    for block in &function.layout {
        for inst in &function.blocks[*block].insts {
            if let Op::Call { stack_args, .. } = &inst.op {
                most = most.max(*stack_args);
            }
            let mut shape = Shape::default();
            shape.op(&inst.op);
            for slot in shape.slots {
                match slot {
                    Slot::Outgoing(number) => most = most.max(number + 1),
                    Slot::Spill(_) | Slot::Incoming(_) => {}
                }
            }
        }
    }
    most
}

/// Indices of a list of things grouped by location.
struct ByLocation {
    starts: Vec<usize>,
    indices: Vec<usize>,
}

fn by_location(locations: usize, of: impl Iterator<Item = usize> + Clone) -> ByLocation {
    let mut starts = vec![0; locations + 1];
    of.clone().for_each(|location| starts[location + 1] += 1);
    for location in 0..locations {
        starts[location + 1] += starts[location];
    }
    let mut next = starts.clone();
    let mut indices = vec![0; starts[locations]];
    for (index, location) in of.enumerate() {
        indices[next[location]] = index;
        next[location] += 1;
    }
    ByLocation { starts, indices }
}

impl ByLocation {
    fn of(&self, location: usize) -> impl Iterator<Item = usize> + '_ {
        self.indices[self.starts[location]..self.starts[location + 1]].iter().copied()
    }
}

/// A register or a slot.
#[derive(Clone, Copy)]
enum Location<R> {
    Reg(R),
    Slot(Slot),
}

impl<R: Display> Display for Location<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Location::Reg(reg) => write!(f, "{reg}"),
            Location::Slot(Slot::Spill(number)) => write!(f, "spill slot {number}"),
            Location::Slot(Slot::Incoming(number)) => write!(f, "incoming slot {number}"),
            Location::Slot(Slot::Outgoing(number)) => write!(f, "outgoing slot {number}"),
        }
    }
}

#[cfg(test)]
#[path = "verify_tests.rs"]
mod tests;
