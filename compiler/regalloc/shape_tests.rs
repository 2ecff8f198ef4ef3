//! Shapes with a known best answer: what must be in registers, what must not be stored, what must not be joined.

use super::facts::CopyVerdict;
use super::rewrite::Fate;
use super::*;
use crate::execution::Limits;
use crate::support::span::{Positions, Span};
use crate::x64::runtime::RuntimeFn;
use crate::x64::{
    Address, AluOp, Block, BlockData, Callee, Cond, Frame, Inst, Op, Program, RegMem, RegMemImm, Slot, Terminator,
    VRegData, Width, interpret, print, verify,
};
use cranelift_entity::packed_option::PackedOption;
use cranelift_entity::{EntityRef, PrimaryMap};
use smallvec::smallvec;

/// Builds the body of a program.
struct Builder {
    function: Function<VReg>,
    at: Block,
}

impl Builder {
    fn new() -> Builder {
        let function = Function {
            name: "main".to_string(),
            symbol: "atlas_entry".to_string(),
            incoming: 0,
            layout: Vec::new(),
            blocks: PrimaryMap::new(),
            vregs: PrimaryMap::new(),
            frame: Frame::default(),
        };
        let mut builder = Builder { function, at: Block::new(0) };
        builder.block(0);
        builder
    }

    /// A new block at the end, which is then added to.
    fn block(&mut self, loop_depth: u32) -> Block {
        let data = BlockData { insts: Vec::new(), term: Terminator::Unreachable, term_span: Span::NONE, loop_depth };
        self.at = self.function.blocks.push(data);
        self.function.layout.push(self.at);
        self.at
    }

    fn vreg(&mut self) -> VReg {
        self.function.vregs.push(VRegData { pinned: None, value: PackedOption::default() })
    }

    fn pinned(&mut self, reg: PReg) -> VReg {
        self.function.vregs.push(VRegData { pinned: Some(reg), value: PackedOption::default() })
    }

    fn op(&mut self, op: Op<VReg>) {
        self.function.blocks[self.at].insts.push(Inst { op, span: Span::NONE, origin: PackedOption::default() });
    }

    fn end(&mut self, term: Terminator<VReg>) {
        self.function.blocks[self.at].term = term;
    }

    fn imm(&mut self, value: i64) -> VReg {
        let dst = self.vreg();
        self.op(Op::Imm { dst: RegMem::Reg(dst), value });
        dst
    }

    /// A value that no constant stands for: the input's next number.
    fn read(&mut self) -> VReg {
        let (line, column) = (self.pinned(PReg::RDI), self.pinned(PReg::RSI));
        let moves = vec![(RegMem::Reg(line), RegMemImm::Imm(1)), (RegMem::Reg(column), RegMemImm::Imm(1))];
        self.op(Op::Parallel { moves });
        let result = self.pinned(PReg::RAX);
        self.call(RuntimeFn::Read, smallvec![line, column], Some(result));
        let dst = self.vreg();
        self.copy(dst, result);
        dst
    }

    fn call(&mut self, callee: RuntimeFn, args: smallvec::SmallVec<[VReg; 6]>, result: Option<VReg>) {
        self.op(Op::Call { callee: Callee::Runtime(callee), args, stack_args: 0, result });
    }

    fn copy(&mut self, dst: VReg, src: VReg) {
        self.op(Op::Mov { dst: RegMem::Reg(dst), src: RegMem::Reg(src) });
    }

    fn alu(&mut self, op: AluOp, dst: VReg, src: VReg) {
        self.op(Op::Alu { op, width: Width::W64, dst: RegMem::Reg(dst), src: RegMemImm::Reg(src) });
    }

    fn alu_imm(&mut self, op: AluOp, dst: VReg, value: i64) {
        self.op(Op::Alu { op, width: Width::W64, dst: RegMem::Reg(dst), src: RegMemImm::Imm(value) });
    }

    fn print(&mut self, value: VReg) {
        let (argument, end) = (self.pinned(PReg::RDI), self.pinned(PReg::RSI));
        let moves = vec![(RegMem::Reg(argument), RegMemImm::Reg(value)), (RegMem::Reg(end), RegMemImm::Imm(10))];
        self.op(Op::Parallel { moves });
        self.call(RuntimeFn::PrintInt, smallvec![argument, end], None);
    }

    /// Ends a block with a jump back to itself while the counter, less one, is above zero.
    fn repeat(&mut self, counter: VReg, head: Block) -> Block {
        self.alu_imm(AluOp::Sub, counter, 1);
        let from = self.at;
        let depth = self.function.blocks[head].loop_depth - 1;
        let exit = self.block(depth);
        self.function.blocks[from].term = Terminator::Branch { cond: Cond::G, then: head, els: exit };
        exit
    }

    fn finish(mut self) -> Function<VReg> {
        self.end(Terminator::Return { value: None });
        self.function
    }
}

fn program<R: crate::x64::Reg>(function: Function<R>) -> Program<R> {
    let mut functions = PrimaryMap::new();
    let entry = functions.push(function);
    Program {
        functions,
        entry,
        strings: PrimaryMap::new(),
        source_name: "shape.atl".to_string(),
        positions: Positions::unknown(),
    }
}

/// Allocates, verifies, checks, and compares what both codes show.
fn allocate(function: &Function<VReg>, options: &Options) -> (Function<PReg>, Facts) {
    let (allocated, facts) = run(function, options).unwrap_or_else(|error| panic!("{error}"));
    let (before, after) = (program(function.clone()), program(allocated.clone()));
    let text = format!("{}\n{}", print::print(&before, None), print::print(&after, None));
    verify::verify_program(&before).unwrap_or_else(|error| panic!("{error}\n{text}"));
    verify::verify_program(&after).unwrap_or_else(|error| panic!("{error}\n{text}"));
    checker::check(function, &allocated).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let input = (1..=100).map(|n| format!("{n} ")).collect::<String>();
    let expected = interpret::run(&before, input.as_bytes(), Limits::default()).expect("the shape runs");
    let found = interpret::run(&after, input.as_bytes(), Limits::default());
    let found = found.unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert_eq!(found.outcome, expected.outcome, "{text}");
    (allocated, facts)
}

fn all() -> Options {
    Options::default()
}

fn few() -> Options {
    Options::with_registers(FEWEST_REGISTERS).expect("a count that works")
}

fn spilled() -> Options {
    Options { spill_all: true, ..Options::default() }
}

/// How many operands of the block are spill slots.
fn slots_in(function: &Function<PReg>, block: Block) -> usize {
    let text = |inst: &Inst<PReg>| format!("{:?}", inst.op).matches("Spill(").count();
    function.blocks[block].insts.iter().map(text).sum()
}

fn moves_in(function: &Function<PReg>, block: Block) -> usize {
    let is_move = |inst: &&Inst<PReg>| matches!(inst.op, Op::Mov { .. } | Op::Xchg { .. });
    function.blocks[block].insts.iter().filter(is_move).count()
}

#[test]
fn sixty_values_across_a_loop_leave_the_loop_to_registers() {
    let mut b = Builder::new();
    let base = b.read();
    let values: Vec<VReg> = (0..60)
        .map(|n| {
            let value = b.vreg();
            b.op(Op::Lea { width: Width::W64, dst: value, src: Address::base(base, n * n) });
            value
        })
        .collect();
    let (counter, sum) = (b.imm(50), b.imm(0));
    let from = b.at;
    let head = b.block(1);
    b.function.blocks[from].term = Terminator::Jump(head);
    for value in [values[3], values[17], values[31], values[59]] {
        b.alu(AluOp::Add, sum, value);
    }
    b.repeat(counter, head);
    for value in values {
        b.alu(AluOp::Xor, sum, value);
    }
    b.print(sum);
    let (allocated, facts) = allocate(&b.finish(), &all());
    assert_eq!((slots_in(&allocated, head), moves_in(&allocated, head)), (0, 0), "{}", facts.print_allocation());
}

#[test]
fn values_across_calls_stay_in_callee_saved_registers() {
    let mut b = Builder::new();
    let (x, y) = (b.read(), b.read());
    for _ in 0..3 {
        b.print(x);
        b.print(y);
    }
    let (allocated, _) = allocate(&b.finish(), &all());
    assert_eq!(allocated.frame.saved.len(), 2);
    assert_eq!(allocated.frame.spill_slots, 0);
    assert!(allocated.frame.calls);
}

#[test]
fn one_value_across_one_call_is_not_worth_a_register() {
    let mut b = Builder::new();
    let x = b.read();
    let y = b.read();
    b.alu(AluOp::Add, y, x);
    b.print(y);
    let (allocated, _) = allocate(&b.finish(), &all());
    assert_eq!((allocated.frame.saved.len(), allocated.frame.spill_slots), (0, 1));
}

/// Registers `count` values, and rotates them by `rotate` in each round of a loop.
fn rotation(count: usize, rotate: impl Fn(&mut Builder, &[VReg])) -> (Function<VReg>, Block) {
    let mut b = Builder::new();
    let values: Vec<VReg> = (0..count).map(|_| b.read()).collect();
    let counter = b.imm(7);
    let from = b.at;
    let head = b.block(1);
    b.function.blocks[from].term = Terminator::Jump(head);
    rotate(&mut b, &values);
    b.repeat(counter, head);
    values.iter().for_each(|value| b.print(*value));
    (b.finish(), head)
}

#[test]
fn swaps_and_rotations_take_as_few_moves_as_can_be() {
    for count in 2..6 {
        let (by_copies, head) = rotation(count, |b, values| {
            let temp = b.vreg();
            b.copy(temp, values[0]);
            values.windows(2).for_each(|pair| b.copy(pair[0], pair[1]));
            b.copy(values[values.len() - 1], temp);
        });
        let (allocated, facts) = allocate(&by_copies, &all());
        assert_eq!(slots_in(&allocated, head), 0);
        assert!(moves_in(&allocated, head) <= count + 1, "{}", facts.print_allocation());
        let (at_once, head) = rotation(count, |b, values| {
            let next = values.iter().cycle().skip(1);
            let moves = values.iter().zip(next).map(|(to, from)| (RegMem::Reg(*to), RegMemImm::Reg(*from)));
            let moves = moves.take(values.len()).collect();
            b.op(Op::Parallel { moves });
        });
        let (allocated, _) = allocate(&at_once, &all());
        assert_eq!(slots_in(&allocated, head), 0);
        assert!(moves_in(&allocated, head) <= count + 1);
        for options in [few(), spilled()] {
            allocate(&by_copies, &options);
            allocate(&at_once, &options);
        }
    }
}

/// `c = read; a = copy c; b = copy c; a changes in a loop; b is used behind it`.
#[test]
fn copies_of_one_value_part_where_one_changes() {
    let mut b = Builder::new();
    let c = b.read();
    let (a, kept) = (b.vreg(), b.vreg());
    b.copy(a, c);
    b.copy(kept, c);
    let counter = b.imm(3);
    let from = b.at;
    let head = b.block(1);
    b.function.blocks[from].term = Terminator::Jump(head);
    b.alu_imm(AluOp::Add, a, 1);
    b.repeat(counter, head);
    b.print(a);
    b.print(kept);
    let function = b.finish();
    let (_, facts) = allocate(&function, &all());
    let class = |vreg: VReg| facts.vregs[vreg.index()].class;
    assert_ne!(class(a), class(kept));
    // The first copy joins; the second would bring two values to one place.
    let verdicts: Vec<&CopyVerdict> =
        facts.copies.iter().filter(|copy| copy.src == c).map(|copy| &copy.verdict).collect();
    assert!(matches!(verdicts[0], CopyVerdict::Coalesced(_)));
    let CopyVerdict::Interferes(witness) = verdicts[1] else { panic!("{:?}", verdicts[1]) };
    assert_eq!((witness.dst, witness.src), (kept, a));
    // `a` holds another value than `kept` from the loop's head on, where both are live.
    assert_eq!(witness.at.block, head);
    assert!(witness.dst_use.is_some() && witness.src_use.is_some());
}

/// Copies that are never assigned again share one register with their source, though all are live at once.
#[test]
fn copies_that_hold_one_value_share_a_register() {
    let mut b = Builder::new();
    let x = b.read();
    let (y, z) = (b.vreg(), b.vreg());
    b.copy(y, x);
    b.copy(z, y);
    for value in [x, y, z, x, y, z] {
        b.print(value);
    }
    let (allocated, facts) = allocate(&b.finish(), &all());
    assert!(facts.copies.iter().filter(|copy| copy.pair.is_none()).skip(1).all(|copy| copy.fate == Fate::Coalesced));
    assert_eq!(allocated.frame.saved.len(), 1);
}

/// `t = a - x` with `x` dead behind it and `a` still live: `t` may have neither's register but by a move.
#[test]
fn the_right_operand_of_a_subtraction_is_not_its_target() {
    for options in [all(), few(), spilled()] {
        let mut b = Builder::new();
        let (a, x) = (b.read(), b.read());
        let (t, u) = (b.vreg(), b.vreg());
        b.copy(t, a);
        b.alu(AluOp::Sub, t, x);
        b.copy(u, t);
        b.print(u);
        b.print(a);
        allocate(&b.finish(), &options);
    }
}

#[test]
fn one_reload_serves_both_operands() {
    let mut b = Builder::new();
    let x = b.read();
    b.op(Op::Imul { dst: x, src: RegMem::Reg(x) });
    b.print(x);
    let (allocated, _) = allocate(&b.finish(), &spilled());
    let insts = &allocated.blocks[Block::new(0)].insts;
    let at = insts.iter().position(|inst| matches!(inst.op, Op::Imul { .. })).expect("it is still there");
    let Op::Imul { dst, src } = insts[at].op.clone() else { unreachable!() };
    assert_eq!(src, RegMem::Reg(dst));
    let is_reload = |inst: &&Inst<PReg>| matches!(inst.op, Op::Mov { src: RegMem::Slot(Slot::Spill(_)), .. });
    assert_eq!(insts[..at].iter().filter(is_reload).count(), 1);
}

/// Only one arm of a diamond needs memory, by a call; behind the join and in a loop the value is used again.
#[test]
fn a_slot_is_written_on_every_way_to_a_reload() {
    for (options, loops) in [(all(), 0), (all(), 1), (few(), 0), (few(), 1), (spilled(), 1)] {
        let mut b = Builder::new();
        let values: Vec<VReg> = (0..12).map(|_| b.read()).collect();
        let counter = b.imm(4);
        let from = b.at;
        let head = b.block(loops);
        b.function.blocks[from].term = Terminator::Jump(head);
        b.op(Op::Cmp { width: Width::W64, lhs: RegMem::Reg(counter), rhs: RegMemImm::Imm(2) });
        let arm = b.block(loops);
        b.print(values[0]);
        b.alu_imm(AluOp::Add, values[1], 5);
        let other = b.block(loops);
        for pair in values.windows(2) {
            b.alu(AluOp::Add, pair[0], pair[1]);
        }
        let join = b.block(loops);
        b.function.blocks[head].term = Terminator::Branch { cond: Cond::E, then: arm, els: other };
        b.function.blocks[arm].term = Terminator::Jump(join);
        b.function.blocks[other].term = Terminator::Jump(join);
        b.alu(AluOp::Xor, values[2], values[1]);
        if loops > 0 {
            b.repeat(counter, head);
        }
        values.iter().for_each(|value| b.print(*value));
        let function = b.finish();
        allocate(&function, &options);
    }
}

/// A value that is used in a hot loop and lives across a call only where it is cold.
#[test]
fn a_call_in_a_cold_arm_does_not_drive_hot_values_to_memory() {
    let mut b = Builder::new();
    let values: Vec<VReg> = (0..9).map(|_| b.read()).collect();
    let (counter, sum) = (b.imm(30), b.imm(0));
    let from = b.at;
    let head = b.block(1);
    b.function.blocks[from].term = Terminator::Jump(head);
    for value in &values {
        b.alu(AluOp::Add, sum, *value);
    }
    b.repeat(counter, head);
    b.print(sum);
    values.iter().for_each(|value| b.print(*value));
    let (allocated, facts) = allocate(&b.finish(), &all());
    assert_eq!((slots_in(&allocated, head), moves_in(&allocated, head)), (0, 0), "{}", facts.print_allocation());
}

#[test]
fn listings_name_what_they_show() {
    let (function, _) = rotation(2, |b, values| {
        let temp = b.vreg();
        b.copy(temp, values[0]);
        b.copy(values[0], values[1]);
        b.copy(values[1], temp);
    });
    let (_, facts) = allocate(&function, &all());
    let ranges = facts.print_live_ranges().to_string();
    assert!(ranges.contains("v0 in rdi: [b0:0+..b0:1 #"), "{ranges}");
    let allocation = facts.print_allocation().to_string();
    assert!(allocation.contains("are both live at"), "{allocation}");
    assert!(allocation.contains("wishes for rax"), "{allocation}");
}

#[test]
fn counts_of_registers_are_checked() {
    assert!(Options::with_registers(FEWEST_REGISTERS - 1).unwrap_err().contains("between 4 and 15"));
    assert!(Options::with_registers(16).is_err());
    let mut b = Builder::new();
    let x = b.imm(1);
    b.print(x);
    let options = Options { registers: RegSet::of(&[PReg::RAX]), spill_all: false };
    assert!(run(&b.finish(), &options).is_err());
}

/// A value that crosses many blocks, and blocks with short-lived values: `size` of each in all.
fn large(blocks: usize, per_block: usize) -> Function<VReg> {
    let mut b = Builder::new();
    let base = b.read();
    let long: Vec<VReg> = (0..30)
        .map(|n| {
            let value = b.vreg();
            b.op(Op::Lea { width: Width::W64, dst: value, src: Address::base(base, n) });
            value
        })
        .collect();
    let mut seed = 7usize;
    let mut pick = |below: usize| {
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (seed >> 33) % below
    };
    for _ in 0..blocks {
        let mut recent = vec![long[pick(30)]];
        for _ in 0..per_block {
            let value = b.vreg();
            b.copy(value, recent[recent.len() - 1 - pick(recent.len().min(12))]);
            b.alu(AluOp::Add, value, long[pick(30)]);
            recent.push(value);
        }
        b.alu(AluOp::Xor, long[pick(30)], recent[recent.len() - 1]);
        b.op(Op::Cmp { width: Width::W64, lhs: RegMem::Reg(long[0]), rhs: RegMemImm::Imm(3) });
        let from = b.at;
        let (then, join) = (b.block(0), b.block(0));
        b.function.blocks[from].term = Terminator::Branch { cond: Cond::E, then, els: join };
        b.function.blocks[then].term = Terminator::Jump(join);
    }
    long.iter().for_each(|value| b.print(*value));
    b.finish()
}

fn seconds(function: &Function<VReg>, options: &Options) -> f64 {
    let start = std::time::Instant::now();
    run(function, options).unwrap_or_else(|error| panic!("{error}"));
    start.elapsed().as_secs_f64()
}

#[test]
#[ignore = "measures; meaningful in release builds only"]
fn measure_scale() {
    for (blocks, per_block) in [(1, 10_000), (1, 40_000), (1, 160_000), (1, 500_000)] {
        let function = large(blocks, per_block);
        let (all, few, memory) =
            (seconds(&function, &all()), seconds(&function, &few()), seconds(&function, &spilled()));
        eprintln!("{blocks} blocks of {per_block}: {all:.3} s, few registers {few:.3} s, spill all {memory:.3} s");
    }
    for blocks in [1_000, 4_000, 16_000, 50_000] {
        let function = large(blocks, 3);
        let (all, few, memory) =
            (seconds(&function, &all()), seconds(&function, &few()), seconds(&function, &spilled()));
        eprintln!("{blocks} blocks of 3: {all:.3} s, few registers {few:.3} s, spill all {memory:.3} s");
    }
}
