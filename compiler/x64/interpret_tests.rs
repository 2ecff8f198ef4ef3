//! Tests of the interpreter: its arithmetic against the processor that runs the tests, its strictness by programs that
//! break one rule each, and runs of random programs.

use super::*;
use crate::execution::Limit;
use crate::execution::Outcome;
use crate::support::random::Random;
use crate::support::span::Positions;
use crate::x64::VReg;
use crate::x64::random::{Shape, generate};
use smallvec::smallvec;

fn inst<R>(op: Op<R>) -> Inst<R> {
    Inst { op, span: Span::NONE, origin: None.into() }
}

/// A program of one function of blocks.
fn program<R: Reg>(pins: &[Option<PReg>], frame: Frame, blocks: Vec<(Vec<Op<R>>, Terminator<R>)>) -> Program<R> {
    let mut function = Function {
        name: "main".to_string(),
        symbol: "atlas_entry".to_string(),
        incoming: 0,
        layout: Vec::new(),
        blocks: PrimaryMap::new(),
        vregs: PrimaryMap::new(),
        frame,
    };
    for pinned in pins {
        function.vregs.push(VRegData { pinned: *pinned, value: None.into() });
    }
    for (ops, term) in blocks {
        let insts = ops.into_iter().map(inst).collect();
        let block = function.blocks.push(BlockData { insts, term, term_span: Span::NONE, loop_depth: 0 });
        function.layout.push(block);
    }
    let mut functions = PrimaryMap::new();
    let entry = functions.push(function);
    let positions = Positions::unknown();
    Program { functions, entry, strings: PrimaryMap::new(), source_name: "t.atl".to_string(), positions }
}

fn physical(ops: Vec<Op<PReg>>) -> Program<PReg> {
    let frame = Frame { spill_slots: 1, outgoing: 1, saved: RegSet::of(&[PReg::RBX]), calls: true };
    program(&[], frame, vec![(ops, Terminator::Return { value: None })])
}

#[track_caller]
fn refused<R: Reg>(program: &Program<R>, part: &str) {
    let error = run(program, b"", Limits::default()).expect_err("this must be refused");
    assert!(error.message.contains(part), "{error}");
}

fn imm(dst: PReg, value: i64) -> Op<PReg> {
    Op::Imm { dst: RegMem::Reg(dst), value }
}

fn mov(dst: PReg, src: PReg) -> Op<PReg> {
    Op::Mov { dst: RegMem::Reg(dst), src: RegMem::Reg(src) }
}

fn runtime(callee: RuntimeFn, result: bool) -> Op<PReg> {
    let args = ARGUMENTS[..callee.argument_count()].into();
    Op::Call { callee: Callee::Runtime(callee), args, stack_args: 0, result: result.then_some(PReg::RAX) }
}

#[test]
fn prints_and_counts() {
    let code = physical(vec![
        imm(PReg::RDI, -5),
        imm(PReg::RSI, i64::from(b'\n')),
        Op::Mov { dst: RegMem::Slot(Slot::Spill(0)), src: RegMem::Reg(PReg::RDI) },
        runtime(RuntimeFn::PrintInt, false),
        Op::Mov { dst: RegMem::Reg(PReg::RDI), src: RegMem::Slot(Slot::Spill(0)) },
        imm(PReg::RSI, i64::from(b' ')),
        runtime(RuntimeFn::PrintInt, false),
    ]);
    let run = run(&code, b"", Limits::default()).unwrap();
    assert_eq!(run.outcome, Outcome { output: b"-5\n-5 ".to_vec(), end: End::Normal });
    // Seven instructions and the return.
    let counts = Counts { instructions: 8, moves: 2, reloads: 1, spills: 1, calls: 2, ..Counts::default() };
    assert_eq!(run.counts, counts);
}

#[test]
fn what_holds_nothing_may_not_be_read() {
    refused(&physical(vec![mov(PReg::RCX, PReg::RDX)]), "rdx is read and holds nothing");
    let call = runtime(RuntimeFn::Eof, true);
    refused(&physical(vec![imm(PReg::RCX, 1), call.clone(), mov(PReg::RDX, PReg::RCX)]), "rcx is read");
    assert!(run(&physical(vec![imm(PReg::RBX, 1), call, mov(PReg::RDX, PReg::RBX)]), b"", Limits::default()).is_ok());
    refused(&physical(vec![runtime(RuntimeFn::Eof, false), mov(PReg::RDX, PReg::RAX)]), "rax is read");
    refused(&physical(vec![imm(PReg::R12, 1)]), "r12 is written and not saved");
    let reload = Op::Mov { dst: RegMem::Reg(PReg::RAX), src: RegMem::Slot(Slot::Spill(0)) };
    refused(&physical(vec![reload]), "is read and holds nothing");
    let set = Op::Set { cond: Cond::E, dst: PReg::RAX };
    refused(&physical(vec![imm(PReg::RAX, 0), set]), "undefined flag");
}

#[test]
fn memory_has_borders() {
    let with_array = |rest: Vec<Op<PReg>>| {
        let mut ops = vec![imm(PReg::RDI, 2), imm(PReg::RSI, 7), imm(PReg::RDX, 1), imm(PReg::RCX, 1)];
        ops.push(runtime(RuntimeFn::ArrayInt, true));
        ops.extend(rest);
        physical(ops)
    };
    let load = |disp| Op::Load { ty: Scalar::Int, dst: PReg::RDX, src: Address::base(PReg::RAX, disp) };
    for disp in [-8, 0, 8] {
        assert!(run(&with_array(vec![load(disp)]), b"", Limits::default()).is_ok());
    }
    for disp in [-16, 9, 16] {
        refused(&with_array(vec![load(disp)]), "belongs to no array");
    }
    let store = Op::Store { ty: Scalar::Int, dst: Address::base(PReg::RAX, -8), src: StoreSource::Imm(3) };
    refused(&with_array(vec![store]), "length is written");
    let free = vec![mov(PReg::RBX, PReg::RAX), mov(PReg::RDI, PReg::RAX), runtime(RuntimeFn::Free, false)];
    let load = Op::Load { ty: Scalar::Int, dst: PReg::RDX, src: Address::base(PReg::RBX, 0) };
    refused(&with_array([free.clone(), vec![load]].concat()), "has ended");
    let again = vec![mov(PReg::RDI, PReg::RBX), runtime(RuntimeFn::Free, false)];
    refused(&with_array([free, again].concat()), "not the last");
}

#[test]
fn divisions_that_fault_are_errors() {
    let div = |signed, width| Op::Div { signed, width, lo: PReg::RAX, hi: PReg::RDX, src: RegMem::Reg(PReg::RCX) };
    let code =
        |high, low, by, op: Op<PReg>| physical(vec![imm(PReg::RDX, high), imm(PReg::RAX, low), imm(PReg::RCX, by), op]);
    refused(&code(0, 1, 0, div(true, Width::W64)), "by zero");
    refused(&code(-1, i64::MIN, -1, div(true, Width::W64)), "does not fit");
    refused(&code(1, 0, 1, div(false, Width::W64)), "does not fit");
    assert!(run(&code(-1, i64::MIN, 1, div(true, Width::W64)), b"", Limits::default()).is_ok());
}

#[test]
fn a_pinned_register_is_its_writers() {
    let v = VReg::new;
    let write = |dst: usize| Op::Imm { dst: RegMem::Reg(v(dst)), value: 1 };
    let read = |src: usize| Op::Mov { dst: RegMem::Reg(v(0)), src: RegMem::Reg(v(src)) };
    let pins = [None, Some(PReg::RAX), Some(PReg::RAX)];
    let code = |ops| program(&pins, Frame::default(), vec![(ops, Terminator::Return { value: None })]);
    assert!(run(&code(vec![write(1), read(1)]), b"", Limits::default()).is_ok());
    refused(&code(vec![write(1), write(2), read(1)]), "v1 is read and holds nothing");
}

#[test]
fn traps_read_and_end() {
    let trap = Op::Trap {
        cond: Some(Cond::AE),
        kind: TrapKind::Index,
        args: smallvec![RegMemImm::Reg(PReg::RAX), RegMemImm::Imm(5)],
    };
    let compare = |value| Op::Cmp { width: Width::W64, lhs: RegMem::Reg(PReg::RAX), rhs: RegMemImm::Imm(value) };
    let outcome = run(&physical(vec![imm(PReg::RAX, -1), compare(5), trap.clone()]), b"", Limits::default()).unwrap();
    assert_eq!(outcome.outcome.end, End::Trap(Trap::IndexOutOfBounds { index: -1, length: 5 }, Span::NONE));
    let outcome = run(&physical(vec![imm(PReg::RAX, 4), compare(5), trap]), b"", Limits::default()).unwrap();
    assert_eq!(outcome.outcome.end, End::Normal);
}

#[test]
fn endless_recursion_and_loops_reach_limits() {
    let call =
        Op::Call { callee: Callee::Function(FuncId::new(0)), args: SmallVec::new(), stack_args: 0, result: None };
    let code = physical(vec![call]);
    let limits = Limits { depth: 1000, ..Limits::default() };
    assert_eq!(run(&code, b"", limits).unwrap().outcome.end, End::Limit(Limit::Depth));
    let tail = Terminator::TailCall { callee: FuncId::new(0), args: SmallVec::new() };
    let code = program::<PReg>(&[], Frame::default(), vec![(vec![], tail)]);
    let limits = Limits { steps: 1000, ..Limits::default() };
    assert_eq!(run(&code, b"", limits).unwrap().outcome.end, End::Limit(Limit::Steps));
}

#[test]
fn random_programs_run_to_their_end() {
    let (mut ended, mut trapped) = (0, 0);
    for seed in 0..400 {
        for shape in [Shape::default(), Shape::pressure(), Shape { traps: true, ..Shape::default() }] {
            let code = generate(seed, &shape);
            let limits = Limits { steps: 1_000_000, ..Limits::default() };
            let run = run(&code, b"1 2 3", limits).unwrap_or_else(|error| panic!("seed {seed}, {shape:?}: {error}"));
            match run.outcome.end {
                End::Normal => ended += 1,
                End::Trap(..) => trapped += 1,
                End::Limit(_) => {}
            }
            assert!(shape.traps || !matches!(run.outcome.end, End::Trap(..)));
        }
    }
    assert!(ended > 700 && trapped > 50 && ended + trapped > 1190, "{ended} ended, {trapped} trapped");
}

/// The processor as the judge of arithmetic.
#[cfg(target_arch = "x86_64")]
mod processor {
    use super::*;
    use std::arch::asm;

    /// Runs `op a, b` and gives the result and the flags.
    macro_rules! binary {
        ($text:literal, $a:expr, $b:expr) => {{
            let (mut result, flags): (u64, u64) = ($a, 0);
            let mut flags = flags;
            // Safe: registers only, and the stack is back where it was.
            unsafe { asm!(concat!($text), "pushfq", "pop {f}", a = inout(reg) result, b = in(reg) $b, f = inout(reg) flags) };
            (result, flags)
        }};
    }

    /// As above, for a shift by cl.
    macro_rules! shift {
        ($text:literal, $a:expr, $b:expr) => {{
            let mut result: u64 = $a;
            let flags: u64;
            // Safe: registers only, and the stack is back where it was.
            unsafe { asm!($text, "pushfq", "pop {f}", a = inout(reg) result, in("rcx") $b, f = out(reg) flags) };
            (result, flags)
        }};
    }

    fn operand(random: &mut Random) -> u64 {
        random.integer() as u64
    }

    fn real_flags(bits: u64) -> [bool; 4] {
        [bits & 1, bits >> 6 & 1, bits >> 7 & 1, bits >> 11 & 1].map(|bit| bit == 1)
    }

    /// Runs one instruction on rax and rdx; gives rax and the flags.
    fn simulated(op: Op<PReg>, a: u64, b: u64) -> (u64, [Option<bool>; 4]) {
        let code = physical(vec![]);
        let mut watch = ();
        let mut cpu = Cpu::new(&code, b"", Limits::default(), &mut watch);
        cpu.push_frame(code.entry, &[], Vec::new(), None).unwrap();
        cpu.write_reg(PReg::RAX, a).unwrap();
        cpu.write_reg(PReg::RDX, b).unwrap();
        cpu.write_reg(PReg::RCX, b).unwrap();
        let code: &'static Inst<PReg> = Box::leak(Box::new(inst(op)));
        cpu.instruction(code).unwrap();
        let Flags { carry, zero, sign, overflow } = cpu.flags;
        (cpu.read_reg(PReg::RAX).unwrap(), [carry, zero, sign, overflow])
    }

    #[track_caller]
    fn agree(name: &str, a: u64, b: u64, (result, flags): (u64, [Option<bool>; 4]), real: (u64, u64)) {
        assert_eq!(result, real.0, "{name} of {a:#x}, {b:#x}");
        for (ours, real) in flags.into_iter().zip(real_flags(real.1)) {
            assert!(
                ours.is_none_or(|ours| ours == real),
                "flags of {name} of {a:#x}, {b:#x}: {flags:?}, really {real}"
            );
        }
    }

    #[test]
    fn two_operands() {
        let mut random = Random::new(1);
        for _ in 0..2000 {
            let (a, b) = (operand(&mut random), operand(&mut random));
            let alu = |op, width| Op::Alu { op, width, dst: RegMem::Reg(PReg::RAX), src: RegMemImm::Reg(PReg::RDX) };
            let cases = [
                (AluOp::Add, binary!("add {a}, {b}", a, b), binary!("add {a:e}, {b:e}", a, b)),
                (AluOp::Sub, binary!("sub {a}, {b}", a, b), binary!("sub {a:e}, {b:e}", a, b)),
                (AluOp::And, binary!("and {a}, {b}", a, b), binary!("and {a:e}, {b:e}", a, b)),
                (AluOp::Or, binary!("or {a}, {b}", a, b), binary!("or {a:e}, {b:e}", a, b)),
                (AluOp::Xor, binary!("xor {a}, {b}", a, b), binary!("xor {a:e}, {b:e}", a, b)),
            ];
            for (op, wide, narrow) in cases {
                for (width, real) in [(Width::W64, wide), (Width::W32, narrow)] {
                    let ours = simulated(alu(op, width), a, b);
                    assert!(ours.1.iter().all(|flag| flag.is_some()));
                    agree(op.name(), a, b, ours, real);
                }
            }
            let neg = |width| Op::Unary { op: UnaryOp::Neg, width, dst: RegMem::Reg(PReg::RAX) };
            agree("neg", a, 0, simulated(neg(Width::W64), a, 0), binary!("neg {a} /* {b} */", a, b));
            agree("neg", a, 0, simulated(neg(Width::W32), a, 0), binary!("neg {a:e} /* {b} */", a, b));
            let imul = Op::Imul { dst: PReg::RAX, src: RegMem::Reg(PReg::RDX) };
            agree("imul", a, b, simulated(imul, a, b), binary!("imul {a}, {b}", a, b));
        }
    }

    #[test]
    fn shifts() {
        let mut random = Random::new(2);
        for round in 0..2000 {
            let a = operand(&mut random);
            let b = if round % 2 == 0 { 1 } else { random.bits() };
            let cases = [
                (ShiftOp::Shl, shift!("shl {a}, cl", a, b), shift!("shl {a:e}, cl", a, b)),
                (ShiftOp::Shr, shift!("shr {a}, cl", a, b), shift!("shr {a:e}, cl", a, b)),
                (ShiftOp::Sar, shift!("sar {a}, cl", a, b), shift!("sar {a:e}, cl", a, b)),
                (ShiftOp::Rol, shift!("rol {a}, cl", a, b), shift!("rol {a:e}, cl", a, b)),
                (ShiftOp::Ror, shift!("ror {a}, cl", a, b), shift!("ror {a:e}, cl", a, b)),
            ];
            for (op, wide, narrow) in cases {
                for (width, real) in [(Width::W64, wide), (Width::W32, narrow)] {
                    let shift = |count| Op::Shift { op, width, dst: RegMem::Reg(PReg::RAX), count };
                    let ours = simulated(shift(Count::Cl(PReg::RCX)), a, b);
                    assert_eq!(ours.1, [None; 4]);
                    agree(op.name(), a, b, ours, real);
                    let count = (b & if width == Width::W64 { 63 } else { 31 }) as u8;
                    if count > 0 {
                        agree(op.name(), a, b, simulated(shift(Count::Imm(count)), a, b), real);
                    }
                }
            }
        }
    }

    #[test]
    fn divisions() {
        let mut random = Random::new(3);
        let mut fitting = 0;
        for _ in 0..4000 {
            let (low, by) = (operand(&mut random), operand(&mut random));
            let high = if random.chance(50) { ((low as i64) >> 63) as u64 } else { random.below(3) as u64 };
            // Whether it fits is decided by wide arithmetic, since the processor would stop the test.
            if let Ok((quotient, remainder)) = divide(false, Width::W64, high, low, by) {
                let (mut q, mut r) = (low, high);
                unsafe { asm!("div {b}", b = in(reg) by, inout("rax") q, inout("rdx") r) };
                assert_eq!((quotient, remainder), (q, r));
                fitting += 1;
            }
            if let Ok((quotient, remainder)) = divide(true, Width::W64, high, low, by) {
                let (mut q, mut r) = (low, high);
                unsafe { asm!("idiv {b}", b = in(reg) by, inout("rax") q, inout("rdx") r) };
                assert_eq!((quotient, remainder), (q, r));
                fitting += 1;
            }
            let (high, low, by) = (high & 0xFFFF_FFFF, low & 0xFFFF_FFFF, by & 0xFFFF_FFFF);
            if let Ok((quotient, remainder)) = divide(false, Width::W32, high, low, by) {
                let (mut q, mut r) = (low, high);
                unsafe { asm!("div {b:e}", b = in(reg) by, inout("rax") q, inout("rdx") r) };
                assert_eq!((quotient, remainder), (q, r));
                fitting += 1;
            }
            if let Ok((quotient, remainder)) = divide(true, Width::W32, high, low, by) {
                let (mut q, mut r) = (low, high);
                unsafe { asm!("idiv {b:e}", b = in(reg) by, inout("rax") q, inout("rdx") r) };
                assert_eq!((quotient & 0xFFFF_FFFF, remainder & 0xFFFF_FFFF), (q, r));
                fitting += 1;
            }
        }
        assert!(fitting > 4000, "{fitting}");
    }
}
