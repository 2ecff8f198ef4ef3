//! Tests of the verifier: each rule with code that keeps it and code that breaks it.

use super::*;
use crate::x64::runtime::RuntimeFn;
use smallvec::smallvec;

fn op<R>(op: Op<R>) -> Inst<R> {
    Inst { op, span: crate::support::span::Span::NONE, origin: None.into() }
}

fn function<R>(pins: &[Option<PReg>], blocks: Vec<(Vec<Op<R>>, Terminator<R>)>) -> Function<R> {
    let mut function = Function {
        name: "f".to_string(),
        symbol: "f".to_string(),
        incoming: 0,
        layout: Vec::new(),
        blocks: cranelift_entity::PrimaryMap::new(),
        vregs: cranelift_entity::PrimaryMap::new(),
        frame: Frame::default(),
    };
    for pinned in pins {
        function.vregs.push(VRegData { pinned: *pinned, value: None.into() });
    }
    for (ops, term) in blocks {
        let block = function.blocks.push(BlockData {
            insts: ops.into_iter().map(op).collect(),
            term,
            term_span: crate::support::span::Span::NONE,
            loop_depth: 0,
        });
        function.layout.push(block);
    }
    function
}

fn v(number: usize) -> VReg {
    VReg::new(number)
}

fn b(number: usize) -> Block {
    Block::new(number)
}

fn imm<R>(dst: R) -> Op<R> {
    Op::Imm { dst: RegMem::Reg(dst), value: 1 }
}

fn mov<R>(dst: R, src: R) -> Op<R> {
    Op::Mov { dst: RegMem::Reg(dst), src: RegMem::Reg(src) }
}

fn cmp<R>(lhs: R) -> Op<R> {
    Op::Cmp { width: Width::W64, lhs: RegMem::Reg(lhs), rhs: RegMemImm::Imm(3) }
}

fn branch<R>(cond: Cond, then: usize, els: usize) -> Terminator<R> {
    Terminator::Branch { cond, then: b(then), els: b(els) }
}

#[track_caller]
fn refused<R: Reg>(function: &Function<R>, part: &str) {
    let error = verify(function).expect_err("this must be refused");
    assert!(error.message.contains(part), "{error}");
}

const RET: Terminator<VReg> = Terminator::Return { value: None };

#[test]
fn a_read_that_one_path_does_not_write() {
    // b0 goes to b1, which writes v1, and to b2, which reads it; b1 goes to b2.
    let diamond = |ops: Vec<Op<VReg>>| {
        function(
            &[None; 3],
            vec![(ops, branch(Cond::E, 1, 2)), (vec![imm(v(1))], Terminator::Jump(b(2))), (vec![mov(v(2), v(1))], RET)],
        )
    };
    refused(&diamond(vec![imm(v(0)), cmp(v(0))]), "v1 may be read before it is written");
    assert_eq!(verify(&diamond(vec![imm(v(0)), imm(v(1)), cmp(v(0))])), Ok(()));
}

#[test]
fn a_loop_carries_a_register_around() {
    let body = |first: Op<VReg>| {
        function(
            &[None; 2],
            vec![
                (vec![first], Terminator::Jump(b(1))),
                (vec![cmp(v(0)), mov(v(1), v(0))], branch(Cond::L, 1, 2)),
                (vec![], RET),
            ],
        )
    };
    assert_eq!(verify(&body(imm(v(0)))), Ok(()));
    refused(&body(imm(v(1))), "v0 may be read before it is written");
}

#[test]
fn unreachable_blocks_may_read_anything() {
    let code = function(&[None; 2], vec![(vec![], RET), (vec![mov(v(0), v(1))], RET)]);
    assert_eq!(verify(&code), Ok(()));
}

#[test]
fn flags_must_be_set_in_the_block_and_kept() {
    let code = |ops: Vec<Op<VReg>>, cond| function(&[None; 2], vec![(ops, branch(cond, 1, 1)), (vec![], RET)]);
    refused(&code(vec![imm(v(0))], Cond::E), "reads flags");
    assert_eq!(verify(&code(vec![imm(v(0)), cmp(v(0)), imm(v(1))], Cond::LE)), Ok(()));
    let imul = Op::Imul { dst: v(0), src: RegMem::Reg(v(0)) };
    refused(&code(vec![imm(v(0)), cmp(v(0)), imul], Cond::E), "reads flags");
    let shift = Op::Shift { op: ShiftOp::Shl, width: Width::W64, dst: RegMem::Reg(v(0)), count: Count::Imm(3) };
    assert_eq!(verify(&code(vec![imm(v(0)), shift.clone()], Cond::E)), Ok(()));
    refused(&code(vec![imm(v(0)), shift], Cond::L), "reads flags");
}

#[test]
fn pinned_registers() {
    let pins = [Some(PReg::RAX), Some(PReg::RDX), None, Some(PReg::RCX), Some(PReg::RAX), Some(PReg::RDI)];
    let one = |ops: Vec<Op<VReg>>| function(&pins, vec![(ops, RET)]);
    let div = |lo: usize, hi: usize| Op::Div {
        width: Width::W64,
        signed: true,
        lo: v(lo),
        hi: v(hi),
        src: RegMem::Reg(v(2)),
    };
    let extend = Op::SignExtend { hi: v(1), lo: v(0) };
    assert_eq!(verify(&one(vec![imm(v(0)), imm(v(2)), extend, div(0, 1), mov(v(2), v(1))])), Ok(()));
    refused(&one(vec![imm(v(0)), imm(v(1)), imm(v(2)), div(2, 1)]), "the low half");
    let shift = |count: usize| Op::Shift {
        op: ShiftOp::Sar,
        width: Width::W64,
        dst: RegMem::Reg(v(2)),
        count: Count::Cl(v(count)),
    };
    assert_eq!(verify(&one(vec![imm(v(2)), imm(v(3)), shift(3)])), Ok(()));
    refused(&one(vec![imm(v(2)), imm(v(0)), shift(0)]), "a shift's count");
    // v4 is rax too.
    refused(&one(vec![imm(v(0)), imm(v(4)), mov(v(2), v(0))]), "where v4");
    refused(&one(vec![mov(v(2), v(0))]), "before its block writes it");
    // An argument register may be read on entry, but not behind a call.
    let call =
        Op::Call { callee: Callee::Runtime(RuntimeFn::Eof), args: smallvec![], stack_args: 0, result: Some(v(0)) };
    assert_eq!(verify(&one(vec![mov(v(2), v(5)), call.clone(), mov(v(2), v(0))])), Ok(()));
    refused(&one(vec![call, mov(v(2), v(5))]), "before its block writes it");
    // Pinned registers do not live across an edge.
    let two = function(&pins, vec![(vec![imm(v(0))], Terminator::Jump(b(1))), (vec![mov(v(2), v(0))], RET)]);
    refused(&two, "before its block writes it");
}

#[test]
fn parallel_moves() {
    let pins = [None, None, Some(PReg::RDI), Some(PReg::RDI)];
    let one = |moves: Vec<(RegMem<VReg>, RegMemImm<VReg>)>| {
        function(&pins, vec![(vec![imm(v(0)), imm(v(1)), Op::Parallel { moves }], RET)])
    };
    let to = |dst: usize, src: usize| (RegMem::Reg(v(dst)), RegMemImm::Reg(v(src)));
    assert_eq!(verify(&one(vec![to(0, 1), to(1, 0)])), Ok(()));
    refused(&one(vec![to(0, 1), to(0, 0)]), "twice");
    refused(&one(vec![to(2, 1), to(3, 0)]), "rdi twice");
    let wide = (RegMem::Reg(v(0)), RegMemImm::Imm(i64::MAX));
    assert_eq!(verify(&one(vec![wide])), Ok(()));
}

#[test]
fn operands() {
    let one = |op: Op<VReg>| function(&[None; 2], vec![(vec![imm(v(0)), imm(v(1)), op], RET)]);
    let memory = Address::base(v(0), 0);
    let add = |dst, src| Op::Alu { op: AluOp::Add, width: Width::W64, dst, src };
    assert_eq!(verify(&one(add(RegMem::Mem(memory), RegMemImm::Reg(v(1))))), Ok(()));
    refused(&one(add(RegMem::Mem(memory), RegMemImm::Mem(memory))), "2 operands in memory");
    refused(&one(add(RegMem::Reg(v(0)), RegMemImm::Imm(1 << 31))), "does not fit");
    assert_eq!(verify(&one(add(RegMem::Reg(v(0)), RegMemImm::Imm(-1 << 31)))), Ok(()));
    assert_eq!(verify(&one(Op::Imm { dst: RegMem::Reg(v(0)), value: i64::MIN })), Ok(()));
    let narrow = Op::Alu { op: AluOp::Add, width: Width::W32, dst: RegMem::Mem(memory), src: RegMemImm::Imm(1) };
    refused(&one(narrow), "32-bit operation writes memory");
    let bad = Address { base: None, index: Some((v(0), 3)), disp: 0 };
    refused(&one(Op::Lea { width: Width::W64, dst: v(1), src: bad }), "multiplied by 3");
    refused(&one(Op::Mov { dst: RegMem::Reg(v(0)), src: RegMem::Slot(Slot::Spill(0)) }), "does not exist");
    refused(&one(Op::Push { src: RegMem::Reg(v(0)) }), "allocator's");
}

#[test]
fn graph() {
    let mut code: Function<VReg> =
        function(&[None], vec![(vec![], Terminator::Jump(b(1))), (vec![], Terminator::Jump(b(0)))]);
    refused(&code, "entry block");
    code.blocks[b(1)].term = Terminator::Jump(b(1));
    assert_eq!(verify(&code), Ok(()));
    code.layout.push(b(1));
    refused(&code, "twice");
    code.layout = vec![b(0)];
    refused(&code, "not in the layout");
}

fn allocated(blocks: Vec<(Vec<Op<PReg>>, Terminator<PReg>)>) -> Function<PReg> {
    let mut code = function(&[], blocks);
    code.frame = Frame { spill_slots: 1, outgoing: 1, saved: RegSet::of(&[PReg::RBX]), calls: true };
    code
}

const DONE: Terminator<PReg> = Terminator::Return { value: None };

fn call(stack_args: u32) -> Op<PReg> {
    Op::Call { callee: Callee::Function(FuncId::new(0)), args: smallvec![], stack_args, result: None }
}

#[test]
fn calls_clobber_physical_registers_across_blocks() {
    let code = |register| {
        allocated(vec![
            (vec![imm(register)], Terminator::Jump(b(1))),
            (vec![call(0)], Terminator::Jump(b(2))),
            (vec![mov(PReg::RAX, register)], DONE),
        ])
    };
    refused(&code(PReg::RCX), "a call in b1 clobbers it");
    assert_eq!(verify(&code(PReg::RBX)), Ok(()));
    refused(&code(PReg::R12), "r12 is written and not saved");
    refused(&code(PReg::RSP), "stack pointer");
}

#[test]
fn slots_are_written_before_they_are_read() {
    let spill = RegMem::Slot(Slot::Spill(0));
    let outgoing = Op::Imm { dst: RegMem::Slot(Slot::Outgoing(0)), value: 1 };
    let read = Op::Mov { dst: RegMem::Reg(PReg::RAX), src: spill };
    let write = Op::Imm { dst: spill, value: 2 };
    assert_eq!(verify(&allocated(vec![(vec![write, call(0), read.clone()], DONE)])), Ok(()));
    refused(&allocated(vec![(vec![read], DONE)]), "spill slot 0 may be read before");
    assert_eq!(verify(&allocated(vec![(vec![outgoing.clone(), call(1)], DONE)])), Ok(()));
    refused(&allocated(vec![(vec![outgoing, call(1), call(1)], DONE)]), "clobbers");
    refused(&allocated(vec![(vec![call(1)], DONE)]), "outgoing slot 0 may be read before");
}

#[test]
fn pushes_and_pops_are_balanced() {
    let push = Op::Push { src: RegMem::Reg(PReg::RDI) };
    let pop = Op::Pop { dst: RegMem::Reg(PReg::RAX) };
    assert_eq!(verify(&allocated(vec![(vec![push.clone(), pop.clone()], DONE)])), Ok(()));
    refused(&allocated(vec![(vec![push.clone()], DONE)]), "not popped");
    refused(&allocated(vec![(vec![pop.clone()], DONE)]), "no push");
    refused(&allocated(vec![(vec![push, call(0), pop], DONE)]), "other than a move");
}
