//! Tests of the checker: it accepts what the allocator makes, and refuses what was broken on purpose. A mutant that it
//! accepts must be right: it shows the same when it is run.

use super::*;
use crate::execution::Limits;
use crate::regalloc::{self, FEWEST_REGISTERS, Options};
use crate::support::random::Random;
use crate::x64::interpret;
use crate::x64::random::{Shape, generate};
use crate::x64::verify;
use cranelift_entity::PrimaryMap;

fn ways() -> Vec<Options> {
    let few = |count| Options::with_registers(count).expect("a count that works");
    vec![
        Options::default(),
        few(FEWEST_REGISTERS),
        few(7),
        Options { spill_all: true, ..Options::default() },
        Options { spill_all: true, ..few(FEWEST_REGISTERS) },
    ]
}

fn allocate(program: &Program<VReg>, options: &Options) -> Program<PReg> {
    let mut functions = PrimaryMap::new();
    for function in program.functions.values() {
        functions.push(regalloc::run(function, options).expect("random code can be allocated").0);
    }
    Program {
        functions,
        entry: program.entry,
        strings: program.strings.clone(),
        source_name: program.source_name.clone(),
        positions: program.positions.clone(),
    }
}

#[test]
fn accepts_what_the_allocator_makes() {
    for seed in 0..25 {
        for shape in [Shape::default(), Shape::tiny(), Shape::pressure()] {
            let program = generate(seed, &shape);
            for options in ways() {
                let allocated = allocate(&program, &options);
                for (id, function) in program.functions.iter() {
                    check(function, &allocated.functions[id])
                        .unwrap_or_else(|error| panic!("seed {seed}, {shape:?}, {options:?}: {error}"));
                }
            }
        }
    }
}

/// Breaks one thing in the function, if it can.
fn mutate(original: &Function<VReg>, function: &mut Function<PReg>, random: &mut Random) -> Option<&'static str> {
    let reached = Checker::new(original, function).reverse_postorder();
    let block = random.pick(&reached);
    // On entry, argument registers that the function has no arguments for hold nothing, which only a run can tell.
    let outside = if block == function.layout[0] { RegSet::of(&ARGUMENTS) } else { RegSet::EMPTY };
    let registers: Vec<PReg> = RegSet::ALLOCATABLE.iter().filter(|register| !outside.contains(*register)).collect();
    let slots = function.frame.spill_slots;
    let data = &mut function.blocks[block];
    if data.insts.is_empty() {
        return None;
    }
    let at = random.below(data.insts.len());
    let other = |random: &mut Random, place: RegMem<PReg>| match place {
        RegMem::Slot(Slot::Spill(number)) if slots > 1 => {
            Some(RegMem::Slot(Slot::Spill((number + 1 + random.below(slots as usize - 1) as u32) % slots)))
        }
        RegMem::Reg(_) => Some(RegMem::Reg(random.pick(&registers))),
        RegMem::Slot(_) | RegMem::Mem(_) => None,
    };
    match random.below(7) {
        // A move that is missing, as a reload, a store, a copy on an edge or a step of a parallel move.
        0 | 1 => {
            is_move(&data.insts[at].op).then_some(())?;
            data.insts.remove(at);
            Some("a move is missing")
        }
        // A move from or to the wrong place: a stale slot, a clobbered register.
        2 => {
            let Op::Mov { src, .. } = &mut data.insts[at].op else { return None };
            *src = other(random, *src)?;
            Some("a move from another place")
        }
        3 => {
            let Op::Mov { dst, .. } = &mut data.insts[at].op else { return None };
            *dst = other(random, *dst)?;
            Some("a move to another place")
        }
        // A temporary that was taken without looking.
        4 => {
            let span = data.insts[at].span;
            let op = Op::Imm { dst: RegMem::Reg(random.pick(&registers)), value: 0x5EED };
            data.insts.insert(at, Inst { op, span, origin: None.into() });
            Some("a clobbered register")
        }
        // Two moves in the wrong order.
        5 => {
            (at + 1 < data.insts.len()).then_some(())?;
            (is_move(&data.insts[at].op) && is_move(&data.insts[at + 1].op)).then_some(())?;
            data.insts.swap(at, at + 1);
            Some("moves exchanged")
        }
        // Two registers exchanged in one instruction.
        _ => {
            let (a, b) = (random.pick(&registers), random.pick(&registers));
            let op = data.insts[at].op.map(|register, _, _| {
                RegMem::Reg(if register == a {
                    b
                } else if register == b {
                    a
                } else {
                    register
                })
            });
            data.insts[at].op = op;
            Some("registers exchanged")
        }
    }
}

#[test]
fn refuses_mutants_that_are_wrong() {
    let mut random = Random::new(7);
    // For each kind of mutant: how many were refused, how many were harmless.
    let mut counts: std::collections::BTreeMap<&str, (u32, u32)> = std::collections::BTreeMap::new();
    for seed in 0..25 {
        for shape in [Shape::default(), Shape::pressure()] {
            let program = generate(seed, &shape);
            let expected = interpret::run(&program, b"", Limits::default()).expect("random code runs").outcome;
            for options in ways() {
                let right = allocate(&program, &options);
                for _ in 0..16 {
                    let mut wrong = right.clone();
                    let id = FuncId::new(random.below(program.functions.len()));
                    let function = &mut wrong.functions[id];
                    let Some(how) = mutate(&program.functions[id], function, &mut random) else { continue };
                    if *function == right.functions[id] || verify::verify(function).is_err() {
                        continue;
                    }
                    let count = counts.entry(how).or_default();
                    if check(&program.functions[id], &wrong.functions[id]).is_err() {
                        count.0 += 1;
                        continue;
                    }
                    count.1 += 1;
                    let shown = interpret::run(&wrong, b"", Limits::default())
                        .unwrap_or_else(|error| panic!("seed {seed}, {options:?}: accepted {how}: {error}"));
                    assert_eq!(shown.outcome, expected, "seed {seed}, {options:?}: accepted {how}");
                }
            }
        }
    }
    // Writing to a register that nothing needs is harmless, so not all are refused; but of each kind, many are.
    assert!(counts.len() == 6 && counts.values().all(|(refused, _)| *refused >= 10), "{counts:?}");
    assert!(counts["a move is missing"].0 > counts["a move is missing"].1, "{counts:?}");
}

/// Code for the tests below: blocks of instructions.
fn code<R>(pins: &[Option<PReg>], blocks: Vec<(Vec<Op<R>>, Terminator<R>)>) -> Function<R> {
    let span = crate::support::span::Span::NONE;
    let mut function = Function {
        name: "f".to_string(),
        symbol: "f".to_string(),
        incoming: 1,
        layout: Vec::new(),
        blocks: PrimaryMap::new(),
        vregs: PrimaryMap::new(),
        frame: Frame { spill_slots: 2, outgoing: 1, saved: RegSet::CALLEE_SAVED, calls: true },
    };
    for pinned in pins {
        function.vregs.push(VRegData { pinned: *pinned, value: None.into() });
    }
    for (ops, term) in blocks {
        let insts = ops.into_iter().map(|op| Inst { op, span, origin: None.into() }).collect();
        let block = function.blocks.push(BlockData { insts, term, term_span: span, loop_depth: 0 });
        function.layout.push(block);
    }
    function
}

fn v(number: usize) -> VReg {
    VReg::new(number)
}

fn imm<R>(dst: R, value: i64) -> Op<R> {
    Op::Imm { dst: RegMem::Reg(dst), value }
}

fn mov<R>(dst: R, src: R) -> Op<R> {
    Op::Mov { dst: RegMem::Reg(dst), src: RegMem::Reg(src) }
}

fn add<R>(dst: R, src: R) -> Op<R> {
    Op::Alu { op: AluOp::Add, width: Width::W64, dst: RegMem::Reg(dst), src: RegMemImm::Reg(src) }
}

fn spill(src: PReg, number: u32) -> Op<PReg> {
    Op::Mov { dst: RegMem::Slot(Slot::Spill(number)), src: RegMem::Reg(src) }
}

fn reload(dst: PReg, number: u32) -> Op<PReg> {
    Op::Mov { dst: RegMem::Reg(dst), src: RegMem::Slot(Slot::Spill(number)) }
}

#[track_caller]
fn refused(original: &Function<VReg>, allocated: &Function<PReg>, part: &str) {
    let error = check(original, allocated).expect_err("this must be refused");
    assert!(error.message.contains(part), "{error}");
}

use PReg as P;

fn ret<R>(value: R) -> Terminator<R> {
    Terminator::Return { value: Some(value) }
}

/// `v1 = v0 + 0x…; v2 = v1; v1 += v1; return v2` in several allocations.
#[test]
fn coalescing_holds_while_both_names_are_equal() {
    let pins = [None, None, None, Some(P::RAX)];
    let tail = |rest: Vec<Op<VReg>>| {
        let mut ops = vec![imm(v(0), 1), imm(v(1), 2), add(v(1), v(0)), mov(v(2), v(1))];
        ops.extend(rest);
        ops.push(mov(v(3), v(2)));
        code(&pins, vec![(ops, ret(v(3)))])
    };
    let start = vec![imm(P::RCX, 1), imm(P::RAX, 2), add(P::RAX, P::RCX)];
    let one = |rest: Vec<Op<PReg>>| code(&[], vec![([start.clone(), rest].concat(), ret(P::RAX))]);
    // All copies coalesced.
    assert_eq!(check(&tail(vec![]), &one(vec![])), Ok(()));
    // v1 changes while v2 is in the same register.
    let changes = tail(vec![add(v(1), v(1))]);
    refused(&changes, &one(vec![add(P::RAX, P::RAX)]), "v3 is read in rax, which holds v1; v3 is in nothing");
    assert_eq!(check(&changes, &one(vec![mov(P::RDX, P::RAX), add(P::RDX, P::RDX)])), Ok(()));
    assert_eq!(check(&changes, &one(vec![spill(P::RAX, 0), add(P::RAX, P::RAX), reload(P::RAX, 0)])), Ok(()));
    // A stale slot.
    let stale = vec![spill(P::RAX, 0), add(P::RAX, P::RAX), reload(P::RAX, 1)];
    refused(&changes, &one(stale), "v3 is read in rax");
    // Through the stack, and by exchange.
    let pushed = vec![
        Op::Push { src: RegMem::Reg(P::RAX) },
        mov(P::RAX, P::RCX),
        Op::Pop { dst: RegMem::Reg(P::RDX) },
        Op::Xchg { a: P::RAX, b: P::RDX },
    ];
    assert_eq!(check(&tail(vec![]), &one(pushed)), Ok(()));
}

#[test]
fn constants_may_be_made_again_and_calls_clobber() {
    let call = |callee| Op::Call { callee, args: SmallVec::new(), stack_args: 0, result: None };
    let callee = Callee::Function(FuncId::new(0));
    let ret = Terminator::Return { value: None };
    let original = code(&[None, None], vec![(vec![imm(v(0), 7), imm(v(1), 8), call(callee), add(v(1), v(0))], ret)]);
    let one = |ops: Vec<Op<PReg>>| code(&[], vec![(ops, Terminator::Return { value: None })]);
    let call = Op::Call { callee, args: SmallVec::new(), stack_args: 0, result: None };
    let right = vec![call.clone(), imm(P::RBX, 8), imm(P::RCX, 7), add(P::RBX, P::RCX)];
    assert_eq!(check(&original, &one(right)), Ok(()));
    let kept = vec![imm(P::RBX, 8), call.clone(), imm(P::RCX, 7), add(P::RBX, P::RCX)];
    assert_eq!(check(&original, &one(kept)), Ok(()));
    let clobbered = vec![imm(P::RBX, 8), imm(P::RCX, 7), call.clone(), add(P::RBX, P::RCX)];
    refused(&original, &one(clobbered), "v0 is read in rcx, which holds nothing");
    let other = vec![call.clone(), imm(P::RBX, 8), imm(P::RCX, 9), add(P::RBX, P::RCX)];
    refused(&original, &one(other), "v0 is read in rcx");
    refused(&original, &one(vec![call]), "an instruction is missing");
}

/// A loop that swaps two values: `b1: parallel v0 = v1, v1 = v0`, with the swap done on the back edge.
#[test]
fn loops_and_edges() {
    let cmp = |lhs| Op::Cmp { width: Width::W64, lhs, rhs: RegMemImm::Imm(3) };
    let b = Block::new;
    let branch = |then, els| (b(then), b(els));
    let swap = vec![(RegMem::Reg(v(0)), RegMemImm::Reg(v(1))), (RegMem::Reg(v(1)), RegMemImm::Reg(v(0)))];
    let (then, els) = branch(2, 3);
    let original = code(
        &[None, None],
        vec![
            (vec![imm(v(0), 1), imm(v(1), 2)], Terminator::Jump(b(1))),
            (vec![cmp(RegMem::Reg(v(0)))], Terminator::Branch { cond: Cond::E, then, els }),
            (vec![Op::Parallel { moves: swap }], Terminator::Jump(b(1))),
            (vec![add(v(0), v(1))], Terminator::Return { value: None }),
        ],
    );
    let cmp = |lhs| Op::Cmp { width: Width::W64, lhs, rhs: RegMemImm::Imm(3) };
    let with_edge = |edge: Vec<Op<PReg>>, target: usize| {
        code(
            &[],
            vec![
                (vec![imm(P::RAX, 1), imm(P::RCX, 2)], Terminator::Jump(b(1))),
                (vec![cmp(RegMem::Reg(P::RAX))], Terminator::Branch { cond: Cond::E, then: b(2), els: b(3) }),
                (vec![], Terminator::Jump(b(4))),
                (vec![add(P::RAX, P::RCX)], Terminator::Return { value: None }),
                (edge, Terminator::Jump(b(target))),
            ],
        )
    };
    assert_eq!(check(&original, &with_edge(vec![Op::Xchg { a: P::RAX, b: P::RCX }], 1)), Ok(()));
    let rescued = vec![mov(P::RDX, P::RAX), mov(P::RAX, P::RCX), mov(P::RCX, P::RDX)];
    assert_eq!(check(&original, &with_edge(rescued, 1)), Ok(()));
    // A naive order loses one value; a wrong move and a missing one are found when the loop comes round.
    refused(&original, &with_edge(vec![mov(P::RAX, P::RCX), mov(P::RCX, P::RAX)], 1), "is read in");
    refused(&original, &with_edge(vec![], 1), "is read in");
    refused(&original, &with_edge(vec![mov(P::RAX, P::RDX)], 1), "is read in");
    refused(&original, &with_edge(vec![Op::Xchg { a: P::RAX, b: P::RCX }], 3), "its edges led to");
    refused(&original, &with_edge(vec![add(P::RAX, P::RCX)], 1), "no move");
}

#[test]
fn the_callers_slot_is_a_home() {
    let slot = |number| RegMem::Slot(Slot::Incoming(number));
    let load = Op::Mov { dst: RegMem::Reg(v(0)), src: slot(0) };
    let pins = [None, Some(P::RAX)];
    let original = code(&pins, vec![(vec![load, mov(v(1), v(0))], ret(v(1)))]);
    let load = Op::Mov { dst: RegMem::Reg(P::RAX), src: RegMem::Slot(Slot::Incoming(0)) };
    assert_eq!(check(&original, &code(&[], vec![(vec![load.clone()], ret(P::RAX))])), Ok(()));
    let over = Op::Imm { dst: RegMem::Slot(Slot::Incoming(0)), value: 3 };
    let wrong = code(&[], vec![(vec![over, load], ret(P::RAX))]);
    refused(&original, &wrong, "v1 is read in rax");
    let other = code(&[], vec![(vec![], ret(P::RDI))]);
    refused(&original, &other, "v1 must be in rax");
}

/// A long function with loops is checked in time that grows with its length, not with its square.
#[test]
fn a_long_chain_of_loops() {
    let count = 20_000;
    let b = Block::new;
    let mut before = vec![(vec![imm(v(0), 1), imm(v(1), 2)], Terminator::Jump(b(1)))];
    let mut after = vec![(vec![imm(P::RAX, 1), imm(P::RCX, 2)], Terminator::Jump(b(1)))];
    for number in 1..count {
        let cmp = Op::Cmp { width: Width::W64, lhs: RegMem::Reg(v(0)), rhs: RegMemImm::Reg(v(1)) };
        let ends = Terminator::Branch { cond: Cond::L, then: b(number), els: b(number + 1) };
        before.push((vec![add(v(0), v(1)), cmp], ends));
        let cmp = Op::Cmp { width: Width::W64, lhs: RegMem::Reg(P::RAX), rhs: RegMemImm::Reg(P::RCX) };
        let ends = Terminator::Branch { cond: Cond::L, then: b(number), els: b(number + 1) };
        after.push((vec![add(P::RAX, P::RCX), cmp], ends));
    }
    before.push((vec![], Terminator::Return { value: None }));
    after.push((vec![], Terminator::Return { value: None }));
    let start = std::time::Instant::now();
    assert_eq!(check(&code(&[None, None], before), &code(&[], after)), Ok(()));
    assert!(start.elapsed().as_secs() < 5, "{:?}", start.elapsed());
}
