//! Makes random machine code over virtual registers, for tests of allocation: the same seed and shape give the same
//! program.
//!
//! A function has a pool of virtual registers that are written on entry and then read and written at random in a random
//! graph, so that live ranges are long, have holes and cross loops of every shape; constants and addresses of strings that
//! are written once and read far away; registers that live within one block; pinned registers around shifts, divisions,
//! multiplications and calls; parallel moves with cycles; flags that live across flag-keeping instructions. At its end it
//! prints or returns a mixture of the whole pool: a value that got lost changes what the program shows.
//!
//! Runs end as those of [`graph::random`](crate::graph::random) do, and touch arrays only within bounds.
//!
//! **in**: nothing. **out**: code that the verifier accepts. Cost: linear.

use super::registers::{ARGUMENTS, PReg, RESULT, VReg};
use super::runtime::RuntimeFn;
use super::types::*;
use crate::graph::random::{self, Graph};
use crate::semantics::Scalar;
use crate::support::random::Random;
use crate::support::span::{Position, Positions, Span};
use cranelift_entity::{EntityRef, PrimaryMap};
use smallvec::SmallVec;

/// What kind of program to make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Functions besides the body, at most.
    pub functions: usize,
    /// Blocks of a function besides its entry and exit, at most; at least 1.
    pub blocks: usize,
    /// Groups of a few instructions in a block, at most.
    pub groups: usize,
    /// Virtual registers of a function's pool, at most; at least 2.
    pub pool: usize,
    /// What the body's count starts from.
    pub fuel: i64,
    /// Run-time errors where chance wants them.
    pub traps: bool,
}

impl Default for Shape {
    fn default() -> Shape {
        Shape { functions: 2, blocks: 10, groups: 5, pool: 10, fuel: 20, traps: false }
    }
}

impl Shape {
    /// Far more values than registers.
    pub fn pressure() -> Shape {
        Shape { blocks: 8, groups: 8, pool: 40, ..Shape::default() }
    }

    /// Programs that fit on a screen.
    pub fn tiny() -> Shape {
        Shape { functions: 1, blocks: 3, groups: 3, pool: 4, fuel: 5, traps: false }
    }
}

/// Elements of every array.
const LENGTH: i64 = 8;

/// What callers need to know of a function: its parameters (the first is the count, the second an array or an int).
struct Signature {
    params: usize,
    array: bool,
    result: bool,
}

/// The program that the choices (a seed, usually) and the shape decide.
pub fn generate(choices: impl Into<Random>, shape: &Shape) -> Program<VReg> {
    let mut random = choices.into();
    let mut signatures = vec![Signature { params: 0, array: false, result: false }];
    for _ in 0..random.below(shape.functions + 1) {
        signatures.push(Signature {
            params: random.between(2, 9),
            array: random.chance(50),
            result: random.chance(70),
        });
    }
    let mut strings = PrimaryMap::new();
    for text in ["", "a", "two words"] {
        strings.push(text.to_string());
    }
    let mut spans = 0;
    let mut functions = PrimaryMap::new();
    for number in 0..signatures.len() {
        let graph = random::draw(&mut random, shape.blocks);
        let mut maker = Maker {
            random: &mut random,
            shape,
            signatures: &signatures,
            strings: &strings,
            spans: &mut spans,
            number,
            graph,
            vregs: PrimaryMap::new(),
            insts: Vec::new(),
            fuel: VReg::new(0),
            pool: Vec::new(),
            constants: Vec::new(),
            addresses: Vec::new(),
            own: Vec::new(),
            pointers: Vec::new(),
        };
        functions.push(maker.run());
    }
    let positions = Positions::of_pairs((0..spans).map(|start| (start, position(start))).collect());
    Program { functions, entry: FuncId::new(0), strings, source_name: "random.atl".to_string(), positions }
}

/// The position of the span that starts at the offset.
fn position(start: u32) -> Position {
    Position { line: start / 8 + 1, column: start % 8 * 5 + 1 }
}

struct Maker<'a> {
    random: &'a mut Random,
    shape: &'a Shape,
    signatures: &'a [Signature],
    strings: &'a PrimaryMap<StrId, String>,
    spans: &'a mut u32,
    number: usize,
    graph: Graph,
    vregs: PrimaryMap<VReg, VRegData>,
    /// The instructions of the block in hand.
    insts: Vec<Inst<VReg>>,
    fuel: VReg,
    /// Registers that any instruction may read and write.
    pool: Vec<VReg>,
    /// Registers that hold a constant and are not written again.
    constants: Vec<VReg>,
    /// Registers that hold the address of a string and are not written again.
    addresses: Vec<(VReg, StrId)>,
    /// The arrays that the function makes, and frees at its end.
    own: Vec<VReg>,
    /// Registers that hold the address of any array of ints with [`LENGTH`] elements.
    pointers: Vec<VReg>,
}

impl Maker<'_> {
    fn run(&mut self) -> Function<VReg> {
        let mut blocks = PrimaryMap::new();
        let count = self.graph.targets.len();
        self.registers();
        for block in 0..count {
            if block == 0 {
                self.entry();
            }
            if self.graph.headers[block] {
                self.emit(alu(AluOp::Sub, Width::W64, self.fuel, RegMemImm::Imm(1)));
            }
            for _ in 0..self.random.below(self.shape.groups + 1) {
                self.group(block);
            }
            let term = self.terminator(block);
            blocks.push(BlockData {
                insts: std::mem::take(&mut self.insts),
                term,
                term_span: Span::NONE,
                loop_depth: self.random.below(3) as u32,
            });
        }
        // The order of emission is the selector's choice, so nothing may count on it.
        let mut layout: Vec<Block> = blocks.keys().collect();
        if self.random.chance(30) {
            self.random.shuffle(&mut layout[1..]);
        }
        let signature = &self.signatures[self.number];
        let body = self.number == 0;
        Function {
            name: if body { "main".to_string() } else { format!("f{}", self.number) },
            symbol: if body { super::runtime::ENTRY_SYMBOL.to_string() } else { format!("atl_f{}", self.number) },
            incoming: signature.params.saturating_sub(6) as u32,
            layout,
            blocks,
            vregs: std::mem::take(&mut self.vregs),
            frame: Frame::default(),
        }
    }

    fn registers(&mut self) {
        self.fuel = self.vreg(None);
        for _ in 0..self.random.between(2, self.shape.pool.max(2)) {
            let vreg = self.vreg(None);
            self.pool.push(vreg);
        }
        self.random.shuffle(&mut self.pool);
    }

    fn vreg(&mut self, pinned: Option<PReg>) -> VReg {
        self.vregs.push(VRegData { pinned, value: None.into() })
    }

    fn emit(&mut self, op: Op<VReg>) -> Span {
        let span = Span { start: *self.spans, end: *self.spans + 1 };
        *self.spans += 1;
        self.insts.push(Inst { op, span, origin: None.into() });
        span
    }

    /// Brings parameters into registers and gives all others a first value.
    fn entry(&mut self) {
        let signatures = self.signatures;
        let signature = &signatures[self.number];
        let mut moves = Vec::new();
        for index in 0..signature.params {
            let destination = match index {
                0 => self.fuel,
                1 if signature.array => {
                    let pointer = self.vreg(None);
                    self.pointers.push(pointer);
                    pointer
                }
                _ => self.pool.get(index).copied().unwrap_or(self.fuel),
            };
            if index > 0 && destination == self.fuel {
                continue;
            }
            let source = match ARGUMENTS.get(index) {
                Some(register) => RegMemImm::Reg(self.vreg(Some(*register))),
                None => RegMemImm::Slot(Slot::Incoming(index as u32 - 6)),
            };
            moves.push((RegMem::Reg(destination), source));
        }
        let written: Vec<RegMem<VReg>> = moves.iter().map(|(destination, _)| *destination).collect();
        if !moves.is_empty() {
            self.emit(Op::Parallel { moves });
        }
        if signature.params == 0 {
            let fuel = self.shape.fuel;
            self.emit(Op::Imm { dst: RegMem::Reg(self.fuel), value: fuel });
        }
        for vreg in self.pool.clone() {
            if !written.contains(&RegMem::Reg(vreg)) {
                let value = self.random.integer();
                self.emit(Op::Imm { dst: RegMem::Reg(vreg), value });
            }
        }
        for _ in 0..self.random.below(4) {
            let constant = self.vreg(None);
            let value = self.random.integer();
            self.emit(Op::Imm { dst: RegMem::Reg(constant), value });
            self.constants.push(constant);
        }
        for _ in 0..self.random.below(3) {
            let address = self.vreg(None);
            let string = StrId::new(self.random.below(self.strings.len()));
            self.emit(Op::StrAddress { dst: address, string });
            self.addresses.push((address, string));
        }
        for _ in 0..self.random.between(1, 2) {
            let init = self.read_imm();
            let (line, column) = self.next_position();
            let array = self.vreg(None);
            let args = [RegMemImm::Imm(LENGTH), init, RegMemImm::Imm(line), RegMemImm::Imm(column)];
            self.call(Callee::Runtime(RuntimeFn::ArrayInt), &args, Some(array));
            self.own.push(array);
            self.pointers.push(array);
        }
        // An alias that comes and goes.
        let alias = self.vreg(None);
        let array = self.pointer();
        self.emit(mov(alias, array));
        self.pointers.push(alias);
    }

    /// The position of the instruction that comes behind the next parallel move.
    fn next_position(&self) -> (i64, i64) {
        let position = position(*self.spans + 1);
        (i64::from(position.line), i64::from(position.column))
    }

    // ---- operands ----

    /// A register that may be written.
    fn write(&mut self) -> VReg {
        self.random.pick(&self.pool)
    }

    /// A register that may be read.
    fn read(&mut self) -> VReg {
        if !self.constants.is_empty() && self.random.chance(15) {
            return self.random.pick(&self.constants);
        }
        self.random.pick(&self.pool)
    }

    fn read_imm(&mut self) -> RegMemImm<VReg> {
        if self.random.chance(25) { RegMemImm::Imm(self.random.integer()) } else { RegMemImm::Reg(self.read()) }
    }

    /// A register or an immediate that fits an instruction.
    fn read_short(&mut self) -> RegMemImm<VReg> {
        match self.read_imm() {
            RegMemImm::Imm(value) => RegMemImm::Imm(i64::from(value as i32)),
            other => other,
        }
    }

    fn pointer(&mut self) -> VReg {
        self.random.pick(&self.pointers)
    }

    /// The address of an element, or of the length.
    fn address(&mut self) -> Address<VReg> {
        let base = self.pointer();
        match self.random.below(3) {
            0 => Address::base(base, self.random.below(LENGTH as usize) as i32 * 8),
            1 => Address::base(base, -8 + self.random.below(LENGTH as usize) as i32 * 8),
            _ => {
                let index = self.vreg(None);
                let from = self.read();
                self.emit(mov(index, from));
                let first = self.random.below(2) as i64;
                let width = self.width();
                self.emit(alu(AluOp::And, width, index, RegMemImm::Imm(LENGTH / 2 - 1)));
                Address { base: Some(base), index: Some((index, 8)), disp: (first * 8) as i32 }
            }
        }
    }

    /// The address of an element that may be written: not that of the length.
    fn place(&mut self) -> Address<VReg> {
        let mut address = self.address();
        if address.index.is_none() && address.disp < 0 {
            address.disp = 0;
        }
        address
    }

    fn width(&mut self) -> Width {
        if self.random.chance(75) { Width::W64 } else { Width::W32 }
    }

    fn source(&mut self) -> RegMem<VReg> {
        if self.random.chance(20) { RegMem::Mem(self.address()) } else { RegMem::Reg(self.read()) }
    }

    // ---- groups of instructions ----

    fn group(&mut self, block: usize) {
        match self.random.below(100) {
            0..=24 => self.arithmetic(),
            25..=32 => {
                let (dst, src) = (self.write(), self.read());
                self.emit(mov(dst, src));
            }
            33..=36 => {
                let (dst, value) = (self.write(), self.random.integer());
                self.emit(Op::Imm { dst: RegMem::Reg(dst), value });
            }
            37..=46 => self.parallel(),
            47..=53 => self.memory(),
            54..=59 => self.shift(),
            60..=64 => self.division(),
            65..=68 => self.multiplication(),
            69..=76 => self.flags(),
            77..=80 => self.trap(),
            81..=86 => self.print(),
            87..=95 => self.call_function(block),
            _ => self.local_web(),
        }
    }

    fn arithmetic(&mut self) {
        let dst = self.write();
        let op = match self.random.below(8) {
            0..=3 => {
                let op = self.random.pick(&[AluOp::Add, AluOp::Sub, AluOp::And, AluOp::Or, AluOp::Xor]);
                let src = match self.random.below(5) {
                    0 => RegMemImm::Mem(self.address()),
                    _ => self.read_short(),
                };
                alu(op, self.width(), dst, src)
            }
            4 => {
                let op = self.random.pick(&[UnaryOp::Neg, UnaryOp::Not]);
                Op::Unary { op, width: self.width(), dst: RegMem::Reg(dst) }
            }
            5 => Op::Imul { dst, src: self.source() },
            6 => Op::ImulImm { dst, src: self.source(), imm: self.random.integer() as i32 },
            _ => {
                let base = self.random.chance(70).then(|| self.read());
                let index =
                    (base.is_none() || self.random.chance(70)).then(|| (self.read(), self.random.pick(&[1, 2, 4, 8])));
                let disp = self.random.integer() as i32;
                Op::Lea { width: self.width(), dst, src: Address { base, index, disp } }
            }
        };
        self.emit(op);
    }

    /// A parallel move among the pool: a permutation with immediates thrown in, or one source for many.
    fn parallel(&mut self) {
        let count = self.random.between(1, self.pool.len().min(12));
        let mut destinations = self.pool.clone();
        self.random.shuffle(&mut destinations);
        destinations.truncate(count);
        let mut sources = destinations.clone();
        self.random.shuffle(&mut sources);
        let fan_out = self.random.chance(30);
        let moves = destinations
            .into_iter()
            .zip(sources)
            .map(|(dst, src)| {
                let src = match self.random.below(10) {
                    0 => RegMemImm::Imm(self.random.integer()),
                    1..=4 if fan_out => RegMemImm::Reg(self.read()),
                    _ => RegMemImm::Reg(src),
                };
                (RegMem::Reg(dst), src)
            })
            .collect();
        self.emit(Op::Parallel { moves });
    }

    fn memory(&mut self) {
        let op = match self.random.below(6) {
            0 | 1 => Op::Load { ty: Scalar::Int, dst: self.write(), src: self.address() },
            2 => {
                let src = if self.random.chance(30) {
                    StoreSource::Imm(self.random.integer() as i32)
                } else {
                    StoreSource::Reg(self.read())
                };
                Op::Store { ty: Scalar::Int, dst: self.place(), src }
            }
            3 => {
                let op = self.random.pick(&[AluOp::Add, AluOp::Sub, AluOp::And, AluOp::Or, AluOp::Xor]);
                let src = self.read_short();
                Op::Alu { op, width: Width::W64, dst: RegMem::Mem(self.place()), src }
            }
            4 => {
                // Another array behind the alias.
                let alias = *self.pointers.last().expect("every function has an alias");
                let array = self.pointer();
                mov(alias, array)
            }
            _ => {
                let op = self.random.pick(&[UnaryOp::Neg, UnaryOp::Not]);
                Op::Unary { op, width: Width::W64, dst: RegMem::Mem(self.place()) }
            }
        };
        self.emit(op);
    }

    fn shift(&mut self) {
        let op = self.random.pick(&[ShiftOp::Shl, ShiftOp::Shr, ShiftOp::Sar, ShiftOp::Rol, ShiftOp::Ror]);
        let dst = RegMem::Reg(self.write());
        let width = self.width();
        if self.random.chance(40) {
            let count = Count::Imm(self.random.below(32) as u8);
            self.emit(Op::Shift { op, width, dst, count });
        } else {
            let count = self.vreg(Some(PReg::RCX));
            let from = self.read();
            self.emit(mov(count, from));
            self.emit(Op::Shift { op, width, dst, count: Count::Cl(count) });
        }
    }

    fn division(&mut self) {
        let divisor = self.vreg(None);
        let from = self.read();
        self.emit(mov(divisor, from));
        // From 1 to 255: neither zero, nor -1 which overflows for the least number.
        self.emit(alu(AluOp::And, Width::W64, divisor, RegMemImm::Imm(255)));
        self.emit(alu(AluOp::Or, Width::W64, divisor, RegMemImm::Imm(1)));
        let (lo, hi) = (self.vreg(Some(PReg::RAX)), self.vreg(Some(PReg::RDX)));
        let from = self.read();
        self.emit(mov(lo, from));
        let signed = self.random.chance(60);
        let width = if signed { Width::W64 } else { self.width() };
        if signed {
            self.emit(Op::SignExtend { hi, lo });
        } else {
            self.emit(Op::Imm { dst: RegMem::Reg(hi), value: 0 });
        }
        self.emit(Op::Div { signed, width, lo, hi, src: RegMem::Reg(divisor) });
        self.take_halves(lo, hi);
    }

    /// Moves one or both of rax and rdx into the pool.
    fn take_halves(&mut self, lo: VReg, hi: VReg) {
        let (first, second) = (self.write(), self.write());
        match self.random.below(4) {
            0 => self.emit(mov(first, lo)),
            1 => self.emit(mov(first, hi)),
            2 if first != second => {
                let moves = vec![(RegMem::Reg(first), RegMemImm::Reg(hi)), (RegMem::Reg(second), RegMemImm::Reg(lo))];
                self.emit(Op::Parallel { moves })
            }
            _ => {
                self.emit(mov(first, lo));
                self.emit(mov(second, hi))
            }
        };
    }

    fn multiplication(&mut self) {
        let (lo, hi) = (self.vreg(Some(PReg::RAX)), self.vreg(Some(PReg::RDX)));
        let from = self.read();
        self.emit(mov(lo, from));
        let src = self.source();
        let signed = self.random.chance(50);
        self.emit(Op::MulHigh { signed, lo, hi, src });
        self.take_halves(lo, hi);
    }

    /// Sets the flags; any condition may be read then.
    fn compare(&mut self) {
        let width = self.width();
        let op = match self.random.below(6) {
            0..=2 => {
                let (lhs, rhs) = match self.random.below(4) {
                    0 => (self.source(), self.read_short_in_register()),
                    1 => (RegMem::Reg(self.read()), RegMemImm::from(self.source())),
                    _ => (RegMem::Reg(self.read()), self.read_short()),
                };
                Op::Cmp { width, lhs, rhs }
            }
            3 => Op::Test { width, lhs: RegMem::Reg(self.read()), rhs: self.read_short() },
            4 => Op::CmpByte { lhs: self.address(), imm: self.random.integer() as i8 },
            _ => alu(AluOp::Sub, width, self.write(), self.read_short()),
        };
        self.emit(op);
    }

    fn read_short_in_register(&mut self) -> RegMemImm<VReg> {
        RegMemImm::Reg(self.read())
    }

    fn flags(&mut self) {
        let truth = self.vreg(None);
        // `set` writes one byte, so the rest is cleared before.
        self.emit(Op::Imm { dst: RegMem::Reg(truth), value: 0 });
        self.compare();
        for _ in 0..self.random.below(3) {
            let op = match self.random.below(3) {
                0 => mov(self.write(), self.read()),
                1 => Op::Imm { dst: RegMem::Reg(self.write()), value: self.random.integer() },
                _ => Op::Unary { op: UnaryOp::Not, width: Width::W64, dst: RegMem::Reg(self.write()) },
            };
            self.emit(op);
        }
        let cond = self.random.pick(&Cond::ALL);
        if self.random.chance(50) {
            self.emit(Op::Set { cond, dst: truth });
            let dst = self.write();
            self.emit(alu(AluOp::Add, Width::W64, dst, RegMemImm::Reg(truth)));
        } else {
            let op = Op::Cmov { cond, dst: self.write(), src: self.source_in_register() };
            self.emit(op);
        }
    }

    fn source_in_register(&mut self) -> RegMem<VReg> {
        RegMem::Reg(self.read())
    }

    fn trap(&mut self) {
        let kind = self.random.pick(&TrapKind::ALL);
        let args: SmallVec<[RegMemImm<VReg>; 2]> = match kind {
            TrapKind::Division | TrapKind::Assert => SmallVec::new(),
            TrapKind::Index => SmallVec::from_slice(&[self.read_imm(), self.read_imm()]),
        };
        if self.shape.traps {
            self.compare();
            let cond = self.random.pick(&Cond::ALL);
            self.emit(Op::Trap { cond: Some(cond), kind, args });
        } else {
            // Nothing is unequal to itself.
            let same = self.read();
            self.emit(Op::Cmp { width: Width::W64, lhs: RegMem::Reg(same), rhs: RegMemImm::Reg(same) });
            self.emit(Op::Trap { cond: Some(Cond::NE), kind, args });
        }
    }

    fn print(&mut self) {
        let end = RegMemImm::Imm(i64::from(self.random.pick(b" \n")));
        match self.random.below(4) {
            0 => {
                let truth = self.vreg(None);
                let from = self.read();
                self.emit(mov(truth, from));
                self.emit(alu(AluOp::And, Width::W32, truth, RegMemImm::Imm(1)));
                self.call(Callee::Runtime(RuntimeFn::PrintBool), &[RegMemImm::Reg(truth), end], None);
            }
            1 if !self.addresses.is_empty() => {
                let (address, string) = self.random.pick(&self.addresses);
                let bytes = RegMemImm::Imm(self.strings[string].len() as i64);
                self.call(Callee::Runtime(RuntimeFn::PrintStr), &[RegMemImm::Reg(address), bytes, end], None);
            }
            _ => {
                let value = self.read_imm();
                self.call(Callee::Runtime(RuntimeFn::PrintInt), &[value, end], None);
            }
        }
    }

    fn call_function(&mut self, block: usize) {
        let outer = block == 0 && self.number > 0 || block == self.graph.exit();
        if self.signatures.len() < 2 || outer {
            return self.arithmetic();
        }
        let number = self.random.between(1, self.signatures.len() - 1);
        let args = self.arguments_for(number);
        let result = self.signatures[number].result && self.random.chance(90);
        let result = result.then(|| self.write());
        self.call(Callee::Function(FuncId::new(number)), &args, result);
    }

    /// Arguments for a call: less than half of the count, an array, any values.
    fn arguments_for(&mut self, number: usize) -> Vec<RegMemImm<VReg>> {
        let half = self.vreg(None);
        self.emit(Op::Lea { width: Width::W64, dst: half, src: Address::base(self.fuel, -1) });
        let count = Count::Imm(1);
        self.emit(Op::Shift { op: ShiftOp::Sar, width: Width::W64, dst: RegMem::Reg(half), count });
        let mut args = vec![RegMemImm::Reg(half)];
        for index in 1..self.signatures[number].params {
            let array = index == 1 && self.signatures[number].array;
            args.push(if array { RegMemImm::Reg(self.pointer()) } else { self.read_imm() });
        }
        args
    }

    /// A call with its arguments brought into place, and its result taken away.
    fn call(&mut self, callee: Callee, args: &[RegMemImm<VReg>], result: Option<VReg>) {
        let mut moves = Vec::new();
        let mut registers = SmallVec::new();
        for (index, source) in args.iter().enumerate() {
            let destination = match ARGUMENTS.get(index) {
                Some(register) => {
                    let pinned = self.vreg(Some(*register));
                    registers.push(pinned);
                    RegMem::Reg(pinned)
                }
                None => RegMem::Slot(Slot::Outgoing(index as u32 - 6)),
            };
            moves.push((destination, *source));
        }
        self.emit(Op::Parallel { moves });
        let stack_args = args.len().saturating_sub(6) as u32;
        let pinned = result.map(|_| self.vreg(Some(RESULT)));
        self.emit(Op::Call { callee, args: registers, stack_args, result: pinned });
        if let (Some(result), Some(pinned)) = (result, pinned) {
            self.emit(mov(result, pinned));
        }
    }

    /// Registers that live within the block only, all at once.
    fn local_web(&mut self) {
        let count = self.random.between(2, 20);
        let locals: Vec<VReg> = (0..count).map(|_| self.vreg(None)).collect();
        for local in &locals {
            let from = self.read();
            self.emit(mov(*local, from));
            let src = self.read_short();
            self.emit(alu(AluOp::Add, Width::W64, *local, src));
        }
        for local in locals {
            let dst = self.write();
            self.emit(alu(AluOp::Xor, Width::W64, dst, RegMemImm::Reg(local)));
        }
    }

    // ---- ends of blocks ----

    fn terminator(&mut self, block: usize) -> Terminator<VReg> {
        let targets: Vec<Block> = self.graph.targets[block].iter().map(|target| Block::new(*target)).collect();
        match targets.as_slice() {
            [] => self.leave(block),
            [target] => Terminator::Jump(*target),
            [then, els] => {
                let mut cond = Cond::G;
                if block == 0 || self.graph.headers[block] {
                    let lhs = RegMem::Reg(self.fuel);
                    self.emit(Op::Cmp { width: Width::W64, lhs, rhs: RegMemImm::Imm(0) });
                } else {
                    self.compare();
                    cond = self.random.pick(&Cond::ALL);
                }
                if self.random.chance(30) {
                    let (dst, src) = (self.write(), self.read());
                    self.emit(mov(dst, src));
                }
                Terminator::Branch { cond, then: *then, els: *els }
            }
            more => panic!("a block has {} targets", more.len()),
        }
    }

    /// Shows the pool, frees the arrays and returns.
    fn leave(&mut self, block: usize) -> Terminator<VReg> {
        let sum = self.vreg(None);
        self.emit(Op::Imm { dst: RegMem::Reg(sum), value: 17 });
        for vreg in self.pool.clone().into_iter().chain(self.constants.clone()) {
            self.emit(Op::ImulImm { dst: sum, src: RegMem::Reg(sum), imm: 31 });
            self.emit(alu(AluOp::Xor, Width::W64, sum, RegMemImm::Reg(vreg)));
        }
        for array in self.own.clone().into_iter().rev() {
            for element in 0..LENGTH {
                let place = Address::base(array, element as i32 * 8);
                self.emit(alu(AluOp::Add, Width::W64, sum, RegMemImm::Mem(place)));
            }
            self.call(Callee::Runtime(RuntimeFn::Free), &[RegMemImm::Reg(array)], None);
        }
        let signatures = self.signatures;
        let signature = &signatures[self.number];
        if self.number == 0 || !signature.result {
            let end = RegMemImm::Imm(i64::from(b'\n'));
            self.call(Callee::Runtime(RuntimeFn::PrintInt), &[RegMemImm::Reg(sum), end], None);
            return Terminator::Return { value: None };
        }
        // A tail call, where one fits: from an inner block, without stack arguments, with a result and without arrays.
        if block != self.graph.exit() && self.random.chance(50) {
            let fits = |callee: &Signature| callee.result && !callee.array && callee.params <= 6;
            let fitting: Vec<usize> = (1..signatures.len()).filter(|number| fits(&signatures[*number])).collect();
            if !fitting.is_empty() {
                let number = self.random.pick(&fitting);
                let args = self.arguments_for(number);
                let registers: SmallVec<[VReg; 6]> =
                    (0..args.len()).map(|index| self.vreg(Some(ARGUMENTS[index]))).collect();
                let moves = registers.iter().zip(args).map(|(register, arg)| (RegMem::Reg(*register), arg)).collect();
                self.emit(Op::Parallel { moves });
                return Terminator::TailCall { callee: FuncId::new(number), args: registers };
            }
        }
        let result = self.vreg(Some(RESULT));
        self.emit(mov(result, sum));
        Terminator::Return { value: Some(result) }
    }
}

fn mov(dst: VReg, src: VReg) -> Op<VReg> {
    Op::Mov { dst: RegMem::Reg(dst), src: RegMem::Reg(src) }
}

fn alu(op: AluOp, width: Width, dst: VReg, src: RegMemImm<VReg>) -> Op<VReg> {
    Op::Alu { op, width, dst: RegMem::Reg(dst), src }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::x64::verify::verify_program;

    #[test]
    fn the_verifier_accepts_what_it_makes() {
        for seed in 0..300u64 {
            for shape in [Shape::default(), Shape::pressure(), Shape::tiny(), Shape { traps: true, ..Shape::default() }]
            {
                let program = generate(seed, &shape);
                assert_eq!(program, generate(seed, &shape));
                verify_program(&program).unwrap_or_else(|error| panic!("seed {seed}, {shape:?}: {error}"));
            }
        }
    }
}
