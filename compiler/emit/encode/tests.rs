//! Every form is encoded with every register and read back by a decoder that shares nothing with the encoder; the
//! expected texts are written here by hand.

use super::*;
use crate::emit::disassemble::{Decoded, decode};
use crate::semantics::Scalar;
use cranelift_entity::PrimaryMap;
use smallvec::smallvec;

const REGISTERS: [PReg; 15] = [
    PReg::RAX,
    PReg::RCX,
    PReg::RDX,
    PReg::RBX,
    PReg::RBP,
    PReg::RSI,
    PReg::RDI,
    PReg::R8,
    PReg::R9,
    PReg::R10,
    PReg::R11,
    PReg::R12,
    PReg::R13,
    PReg::R14,
    PReg::R15,
];

const BYTE_NAMES: [&str; 16] =
    ["al", "cl", "dl", "bl", "spl", "bpl", "sil", "dil", "r8b", "r9b", "r10b", "r11b", "r12b", "r13b", "r14b", "r15b"];

fn byte(reg: PReg) -> &'static str {
    BYTE_NAMES[reg.number() as usize]
}

fn function(blocks: Vec<(Vec<Op<PReg>>, Terminator<PReg>)>) -> Function<PReg> {
    let mut result = Function {
        name: "f".to_string(),
        symbol: "atl_f".to_string(),
        incoming: 0,
        layout: Vec::new(),
        blocks: PrimaryMap::new(),
        vregs: PrimaryMap::new(),
        frame: Frame::default(),
    };
    for (ops, term) in blocks {
        let insts = ops.into_iter().map(|op| Inst { op, span: Span::NONE, origin: None.into() }).collect();
        let data = BlockData { insts, term, term_span: Span::NONE, loop_depth: 0 };
        let block = result.blocks.push(data);
        result.layout.push(block);
    }
    result
}

const RETURN: Terminator<PReg> = Terminator::Return { value: None };

fn encoded(function: &Function<PReg>) -> FunctionCode {
    encode(function, &Positions::unknown()).expect("the function can be encoded")
}

/// The instructions of one op, with four spill slots and two outgoing ones.
fn instructions(op: Op<PReg>, flags_live: bool) -> Result<Vec<String>, Internal> {
    let mut empty = function(vec![(vec![], RETURN)]);
    empty.frame = Frame { spill_slots: 40, outgoing: 2, ..Frame::default() };
    empty.incoming = 3;
    let layout = Layout::of(&empty)?;
    let mut buffer = Buffer::default();
    Context { layout: &layout, framed: true, pushed: 0, flags_live }.encode(&mut buffer, &op)?;
    Ok(decode(&buffer.finish()?.bytes).into_iter().map(|decoded| decoded.text).collect())
}

#[track_caller]
fn check(op: Op<PReg>, expected: &str) {
    assert_eq!(instructions(op.clone(), true).expect("it can be encoded"), [expected], "{op:?}");
}

fn reg(reg: PReg) -> RegMem<PReg> {
    RegMem::Reg(reg)
}

fn src(reg: PReg) -> RegMemImm<PReg> {
    RegMemImm::Reg(reg)
}

/// Addresses of every base, index, factor and size of displacement, with their texts.
fn addresses() -> Vec<(Address<PReg>, String)> {
    let mut result = Vec::new();
    let disps = [0, 1, -1, 127, 128, -128, -129, i32::MAX, i32::MIN];
    let text = |disp: i32| match disp {
        0 => String::new(),
        disp if disp < 0 => format!("-{}", disp.unsigned_abs()),
        disp => format!("+{disp}"),
    };
    for base in REGISTERS {
        for disp in disps {
            result.push((Address::base(base, disp), format!("[{base}{}]", text(disp))));
        }
        for index in REGISTERS {
            for scale in [1u8, 2, 4, 8] {
                for disp in [0, 127, -129] {
                    // `[rbp+rax]` is the same place as `[rax+rbp]`, and shorter.
                    let swapped = scale == 1 && disp == 0 && matches!(base, PReg::RBP | PReg::R13);
                    let (first, second) = if swapped { (index, base) } else { (base, index) };
                    let factor = if scale == 1 { String::new() } else { format!("*{scale}") };
                    let address = Address { base: Some(base), index: Some((index, scale)), disp };
                    result.push((address, format!("[{first}+{second}{factor}{}]", text(disp))));
                }
            }
        }
    }
    result
}

#[test]
fn addresses_with_every_register() {
    for (address, text) in addresses() {
        check(Op::Load { ty: Scalar::Int, dst: PReg::R9, src: address }, &format!("mov r9, {text}"));
        check(Op::Load { ty: Scalar::Bool, dst: PReg::RDI, src: address }, &format!("movzx edi, byte ptr {text}"));
        let store = StoreSource::Reg(PReg::RSI);
        check(Op::Store { ty: Scalar::Bool, dst: address, src: store }, &format!("mov {text}, sil"));
        check(Op::CmpByte { lhs: address, imm: 0 }, &format!("cmp byte ptr {text}, 0"));
        if address.index.is_some() || address.disp != 0 {
            check(Op::Lea { width: Width::W64, dst: PReg::RAX, src: address }, &format!("lea rax, {text}"));
        }
    }
    for reg in REGISTERS {
        let doubled = Address { base: None, index: Some((reg, 2)), disp: 5 };
        check(Op::Lea { width: Width::W32, dst: PReg::RAX, src: doubled }, &format!("lea eax, [{reg}+{reg}+5]"));
        check(Op::Lea { width: Width::W64, dst: PReg::RAX, src: Address::base(reg, 0) }, &format!("mov rax, {reg}"));
    }
}

#[test]
fn two_registers() {
    use Width::{W32, W64};
    for a in REGISTERS {
        for b in REGISTERS {
            if a != b {
                check(Op::Mov { dst: reg(a), src: reg(b) }, &format!("mov {a}, {b}"));
            }
            for (op, name) in
                [(AluOp::Add, "add"), (AluOp::Sub, "sub"), (AluOp::And, "and"), (AluOp::Or, "or"), (AluOp::Xor, "xor")]
            {
                check(Op::Alu { op, width: W64, dst: reg(a), src: src(b) }, &format!("{name} {a}, {b}"));
                let narrow = format!("{name} {}, {}", a.name_32(), b.name_32());
                check(Op::Alu { op, width: W32, dst: reg(a), src: src(b) }, &narrow);
            }
            check(Op::Cmp { width: W64, lhs: reg(a), rhs: src(b) }, &format!("cmp {a}, {b}"));
            check(Op::Test { width: W64, lhs: reg(a), rhs: src(b) }, &format!("test {a}, {b}"));
            let narrow = format!("{}, {}", a.name_32(), b.name_32());
            check(Op::Cmp { width: W32, lhs: reg(a), rhs: src(b) }, &format!("cmp {narrow}"));
            check(Op::Test { width: W32, lhs: reg(a), rhs: src(b) }, &format!("test {narrow}"));
            check(Op::Imul { dst: a, src: reg(b) }, &format!("imul {a}, {b}"));
            check(Op::ImulImm { dst: a, src: reg(b), imm: -128 }, &format!("imul {a}, {b}, -128"));
            check(Op::ImulImm { dst: a, src: reg(b), imm: 128 }, &format!("imul {a}, {b}, 128"));
            let exchanged = instructions(Op::Xchg { a, b }, true).expect("any registers can be exchanged");
            let either = [format!("xchg {a}, {b}"), format!("xchg {b}, {a}")];
            assert!(exchanged.len() == 1 && either.contains(&exchanged[0]), "{exchanged:?}");
            for cond in Cond::ALL {
                check(Op::Cmov { cond, dst: a, src: reg(b) }, &format!("cmov{} {a}, {b}", cond.name()));
            }
        }
    }
}

#[test]
fn one_register() {
    use Width::{W32, W64};
    for a in REGISTERS {
        for cond in Cond::ALL {
            check(Op::Set { cond, dst: a }, &format!("set{} {}", cond.name(), byte(a)));
        }
        check(Op::Push { src: reg(a) }, &format!("push {a}"));
        check(Op::Pop { dst: reg(a) }, &format!("pop {a}"));
        for (op, name) in [(UnaryOp::Neg, "neg"), (UnaryOp::Not, "not")] {
            check(Op::Unary { op, width: W64, dst: reg(a) }, &format!("{name} {a}"));
            check(Op::Unary { op, width: W32, dst: reg(a) }, &format!("{name} {}", a.name_32()));
        }
        let shifts = [
            (ShiftOp::Shl, "shl"),
            (ShiftOp::Shr, "shr"),
            (ShiftOp::Sar, "sar"),
            (ShiftOp::Rol, "rol"),
            (ShiftOp::Ror, "ror"),
        ];
        for (op, name) in shifts {
            for (width, text) in [(W64, a.name()), (W32, a.name_32())] {
                let shift = |count| Op::Shift { op, width, dst: reg(a), count };
                check(shift(Count::Imm(1)), &format!("{name} {text}, 1"));
                check(shift(Count::Imm(31)), &format!("{name} {text}, 31"));
                check(shift(Count::Cl(PReg::RCX)), &format!("{name} {text}, cl"));
            }
        }
        let pair = |signed, width| Op::Div { signed, width, lo: PReg::RAX, hi: PReg::RDX, src: reg(a) };
        check(pair(true, W64), &format!("idiv {a}"));
        check(pair(false, W64), &format!("div {a}"));
        check(pair(true, W32), &format!("idiv {}", a.name_32()));
        check(pair(false, W32), &format!("div {}", a.name_32()));
        let product = |signed| Op::MulHigh { signed, lo: PReg::RAX, hi: PReg::RDX, src: reg(a) };
        check(product(true), &format!("imul {a}"));
        check(product(false), &format!("mul {a}"));
        check(
            Op::Store { ty: Scalar::Bool, dst: Address::base(PReg::RBX, 0), src: StoreSource::Reg(a) },
            &format!("mov [rbx], {}", byte(a)),
        );
    }
    check(Op::SignExtend { hi: PReg::RDX, lo: PReg::RAX }, "cqo");
}

#[test]
fn immediates() {
    use Width::{W32, W64};
    let values = [1, -1, 127, 128, -128, -129, 0x1234_5678, i64::from(i32::MAX), i64::from(i32::MIN)];
    for a in REGISTERS {
        let narrow = a.name_32();
        for value in values {
            let imm = RegMemImm::Imm(value);
            for op in [AluOp::Add, AluOp::Sub, AluOp::And, AluOp::Or, AluOp::Xor] {
                let name = op.name();
                check(Op::Alu { op, width: W64, dst: reg(a), src: imm }, &format!("{name} {a}, {value}"));
                check(Op::Alu { op, width: W32, dst: reg(a), src: imm }, &format!("{name} {narrow}, {value}"));
            }
            check(Op::Cmp { width: W64, lhs: reg(a), rhs: imm }, &format!("cmp {a}, {value}"));
            check(Op::Cmp { width: W32, lhs: reg(a), rhs: imm }, &format!("cmp {narrow}, {value}"));
            let test = |width| Op::Test { width, lhs: reg(a), rhs: imm };
            if (0..=127).contains(&value) {
                check(test(W64), &format!("test {}, {value}", byte(a)));
                check(test(W32), &format!("test {}, {value}", byte(a)));
            } else {
                check(test(W64), &format!("test {a}, {value}"));
                check(test(W32), &format!("test {narrow}, {value}"));
            }
        }
        // A comparison with zero sets the same flags as a test.
        check(Op::Cmp { width: W64, lhs: reg(a), rhs: RegMemImm::Imm(0) }, &format!("test {a}, {a}"));
        check(Op::Cmp { width: W32, lhs: reg(a), rhs: RegMemImm::Imm(0) }, &format!("test {narrow}, {narrow}"));
        let constant = |value| Op::Imm { dst: reg(a), value };
        check(constant(0), &format!("mov {narrow}, 0"));
        assert_eq!(instructions(constant(0), false).unwrap(), [format!("xor {narrow}, {narrow}")]);
        check(constant(1), &format!("mov {narrow}, 1"));
        // A 32-bit move zeroes the upper half; the decoder shows the bits as a signed number.
        check(constant(0xFFFF_FFFF), &format!("mov {narrow}, -1"));
        check(constant(0x8000_0000), &format!("mov {narrow}, -2147483648"));
        check(constant(-1), &format!("mov {a}, -1"));
        check(constant(i64::from(i32::MIN)), &format!("mov {a}, -2147483648"));
        check(constant(0x1_0000_0000), &format!("mov {a}, 4294967296"));
        check(constant(i64::from(i32::MIN) - 1), &format!("mov {a}, -2147483649"));
        check(constant(i64::MAX), &format!("mov {a}, 9223372036854775807"));
        let add = |op| Op::Alu { op, width: W64, dst: reg(a), src: RegMemImm::Imm(128) };
        assert_eq!(instructions(add(AluOp::Add), false).unwrap(), [format!("sub {a}, -128")]);
        assert_eq!(instructions(add(AluOp::Sub), false).unwrap(), [format!("add {a}, -128")]);
    }
}

#[test]
fn memory_operands() {
    use Width::W64;
    let (address, slot) = (Address { base: Some(PReg::R13), index: Some((PReg::R12, 8)), disp: -8 }, Slot::Spill(3));
    // Two outgoing slots lie below the spill slots.
    for (place, text) in [(RegMem::Mem(address), "[r13+r12*8-8]"), (RegMem::Slot(slot), "[rsp+40]")] {
        let word = format!("qword ptr {text}");
        check(Op::Mov { dst: reg(PReg::R8), src: place }, &format!("mov r8, {text}"));
        check(Op::Mov { dst: place, src: reg(PReg::R8) }, &format!("mov {text}, r8"));
        check(Op::Imm { dst: place, value: -7 }, &format!("mov {word}, -7"));
        let imm = RegMemImm::Imm(300);
        check(
            Op::Alu { op: AluOp::Add, width: W64, dst: reg(PReg::R8), src: place.into() },
            &format!("add r8, {text}"),
        );
        check(Op::Alu { op: AluOp::Sub, width: W64, dst: place, src: src(PReg::R8) }, &format!("sub {text}, r8"));
        check(Op::Alu { op: AluOp::Xor, width: W64, dst: place, src: imm }, &format!("xor {word}, 300"));
        check(Op::Cmp { width: W64, lhs: place, rhs: src(PReg::RAX) }, &format!("cmp {text}, rax"));
        check(Op::Cmp { width: W64, lhs: reg(PReg::RAX), rhs: place.into() }, &format!("cmp rax, {text}"));
        check(Op::Cmp { width: W64, lhs: place, rhs: RegMemImm::Imm(0) }, &format!("cmp {word}, 0"));
        check(Op::Test { width: W64, lhs: place, rhs: src(PReg::RAX) }, &format!("test {text}, rax"));
        check(Op::Test { width: W64, lhs: reg(PReg::RAX), rhs: place.into() }, &format!("test {text}, rax"));
        check(Op::Test { width: W64, lhs: place, rhs: imm }, &format!("test {word}, 300"));
        check(Op::Unary { op: UnaryOp::Neg, width: W64, dst: place }, &format!("neg {word}"));
        let shift = Op::Shift { op: ShiftOp::Sar, width: W64, dst: place, count: Count::Imm(3) };
        check(shift, &format!("sar {word}, 3"));
        check(Op::Imul { dst: PReg::R8, src: place }, &format!("imul r8, {text}"));
        check(Op::ImulImm { dst: PReg::R8, src: place, imm: 300 }, &format!("imul r8, {text}, 300"));
        check(Op::Cmov { cond: Cond::L, dst: PReg::R8, src: place }, &format!("cmovl r8, {text}"));
        check(Op::Push { src: place }, &format!("push {word}"));
    }
    // `pop` takes the address from rsp as it is behind it.
    check(Op::Pop { dst: RegMem::Slot(slot) }, "pop qword ptr [rsp+32]");
    check(Op::Mov { dst: reg(PReg::RAX), src: RegMem::Slot(Slot::Outgoing(1)) }, "mov rax, [rsp+8]");
    // 42 slots, no saved registers, then the return address.
    check(Op::Mov { dst: reg(PReg::RAX), src: RegMem::Slot(Slot::Incoming(2)) }, "mov rax, [rsp+360]");
    let word = Op::Store { ty: Scalar::Int, dst: address, src: StoreSource::Imm(-1) };
    check(word, "mov qword ptr [r13+r12*8-8], -1");
    let byte = Op::Store { ty: Scalar::Bool, dst: address, src: StoreSource::Imm(1) };
    check(byte, "mov byte ptr [r13+r12*8-8], 1");
}

#[test]
fn what_cannot_be_said_is_refused() {
    use Width::{W32, W64};
    let slot = RegMem::Slot(Slot::Spill(0));
    let refused = |op: Op<PReg>| assert!(instructions(op.clone(), false).is_err(), "{op:?}");
    refused(Op::Mov { dst: slot, src: RegMem::Slot(Slot::Spill(1)) });
    refused(Op::Imm { dst: slot, value: 1 << 31 });
    refused(Op::Alu { op: AluOp::Add, width: W64, dst: slot, src: RegMemImm::Slot(Slot::Spill(1)) });
    refused(Op::Alu { op: AluOp::Add, width: W64, dst: reg(PReg::RAX), src: RegMemImm::Imm(1 << 31) });
    refused(Op::Alu { op: AluOp::Add, width: W32, dst: slot, src: RegMemImm::Imm(1) });
    refused(Op::Cmp { width: W64, lhs: slot, rhs: RegMemImm::Slot(Slot::Spill(1)) });
    refused(Op::Test { width: W64, lhs: slot, rhs: RegMemImm::Slot(Slot::Spill(1)) });
    refused(Op::Mov { dst: slot, src: RegMem::Slot(Slot::Spill(40)) });
    refused(Op::Mov { dst: reg(PReg::RAX), src: RegMem::Slot(Slot::Incoming(3)) });
    refused(Op::Mov { dst: reg(PReg::RAX), src: RegMem::Slot(Slot::Outgoing(2)) });
    refused(Op::Shift { op: ShiftOp::Shl, width: W64, dst: reg(PReg::RAX), count: Count::Cl(PReg::RDX) });
    refused(Op::Shift { op: ShiftOp::Shl, width: W64, dst: reg(PReg::RAX), count: Count::Imm(64) });
    refused(Op::SignExtend { hi: PReg::RAX, lo: PReg::RDX });
    refused(Op::Div { signed: true, width: W64, lo: PReg::RAX, hi: PReg::RCX, src: reg(PReg::RBX) });
    refused(Op::Parallel { moves: vec![] });
    let by_rsp = Address { base: Some(PReg::RAX), index: Some((PReg::RSP, 1)), disp: 0 };
    refused(Op::Load { ty: Scalar::Int, dst: PReg::RAX, src: by_rsp });
    let by_three = Address { base: Some(PReg::RAX), index: Some((PReg::RCX, 3)), disp: 0 };
    refused(Op::Load { ty: Scalar::Int, dst: PReg::RAX, src: by_three });
    let missing = function(vec![(vec![], Terminator::Return { value: Some(PReg::RCX) })]);
    assert!(encode(&missing, &Positions::unknown()).is_err());
    let unbalanced = function(vec![(vec![Op::Push { src: reg(PReg::RAX) }], RETURN)]);
    assert!(encode(&unbalanced, &Positions::unknown()).is_err());
}

/// Instructions of exactly so many bytes, from 2 up: `not eax` takes two, `not rax` three.
fn filler(bytes: usize) -> Vec<Op<PReg>> {
    let not = |width| Op::Unary { op: UnaryOp::Not, width, dst: reg(PReg::RAX) };
    let threes = bytes % 2;
    let mut ops = vec![not(Width::W32); (bytes - 3 * threes) / 2];
    ops.extend(vec![not(Width::W64); threes]);
    ops
}

fn jumps(code: &FunctionCode) -> Vec<Decoded> {
    decode(&code.bytes).into_iter().filter(|decoded| decoded.target.is_some()).collect()
}

fn block(number: usize) -> Block {
    Block::new(number)
}

#[test]
fn short_jumps_where_they_reach() {
    for distance in 100..140 {
        // Forwards over `distance` bytes, then backwards over as many and the jump itself.
        let forward = function(vec![
            (vec![], Terminator::Branch { cond: Cond::E, then: block(2), els: block(1) }),
            (filler(distance), Terminator::Unreachable),
            (vec![], RETURN),
        ]);
        let code = encoded(&forward);
        let found = jumps(&code);
        // `ud2` takes two bytes more.
        let size = if distance + 2 <= 127 { 2 } else { 6 };
        assert_eq!((found[0].size, found[0].target), (size, code.blocks[2].map(u64::from)), "{distance} forwards");
        assert_eq!(decode(&code.bytes).last().map(|last| last.offset), found[0].target);
        let backward = function(vec![
            (vec![], Terminator::Jump(block(1))),
            (filler(distance), Terminator::Branch { cond: Cond::NE, then: block(1), els: block(2) }),
            (vec![], RETURN),
        ]);
        let code = encoded(&backward);
        let found = jumps(&code);
        let size = if distance + 2 <= 128 { 2 } else { 6 };
        assert_eq!((found[0].size, found[0].target), (size, Some(0)), "{distance} backwards");
    }
}

#[test]
fn jumps_that_push_each_other_apart_settle() {
    // Each block jumps over the next ones, so that every jump that grows makes others grow.
    for count in [10, 200, 3000] {
        for reach in [3, 30, 60, 64] {
            let blocks = (0..count)
                .map(|number| {
                    let far = block((number + reach).min(count));
                    (filler(2), Terminator::Branch { cond: Cond::L, then: far, els: block(number + 1) })
                })
                .chain([(vec![], RETURN)]);
            let code = encoded(&function(blocks.collect()));
            let starts: Vec<u64> = code.blocks.iter().map(|start| u64::from(start.expect("it is laid out"))).collect();
            // A branch whose both ways lead to the next block is no jump.
            let found = jumps(&code);
            for jump in &found {
                let target = jump.target.expect("it is a jump");
                assert!(starts.binary_search(&target).is_ok(), "{jump:?}");
                let distance = target as i64 - (jump.offset as i64 + jump.size as i64);
                assert_eq!(jump.size == 2, (-128..=127).contains(&distance), "{jump:?}");
            }
            assert!(found.len() >= count - 1);
        }
    }
}

#[test]
fn frames() {
    let texts = |function: &Function<PReg>| -> Vec<String> {
        decode(&encoded(function).bytes).into_iter().map(|decoded| decoded.text).collect()
    };
    let call =
        Op::Call { callee: Callee::Runtime(runtime::RuntimeFn::Eof), args: smallvec![], stack_args: 0, result: None };
    let mut one = function(vec![(vec![call.clone()], RETURN)]);
    // At the call rsp is 8 below a multiple of 16 without the padding.
    assert_eq!(texts(&one)[0], "sub rsp, 8");
    assert_eq!(texts(&one)[2..], ["add rsp, 8", "ret"]);
    one.frame.saved = RegSet::of(&[PReg::RBX]);
    let found = texts(&one);
    assert_eq!((found[0].as_str(), &found[2..]), ("push rbx", ["pop rbx".to_string(), "ret".to_string()].as_slice()));
    one.frame.saved = RegSet::of(&[PReg::RBX, PReg::R12]);
    one.frame.spill_slots = 2;
    let found = texts(&one);
    assert_eq!(found[..3], ["push rbx", "push r12", "sub rsp, 24"]);
    assert_eq!(found[4..], ["add rsp, 24", "pop r12", "pop rbx", "ret"]);
    // A frame of 128 bytes has a shorter form; one without calls needs no padding.
    let mut leaf =
        function(vec![(vec![Op::Push { src: RegMem::Slot(Slot::Spill(0)) }, Op::Pop { dst: reg(PReg::RAX) }], RETURN)]);
    leaf.frame.spill_slots = 16;
    let used = ["push qword ptr [rsp]", "pop rax"];
    assert_eq!(texts(&leaf), [&["add rsp, -128"], &used[..], &["sub rsp, -128", "ret"]].concat());
    leaf.frame.spill_slots = 1;
    assert_eq!(texts(&leaf), [&["sub rsp, 8"], &used[..], &["add rsp, 8", "ret"]].concat());
    // Slots that nothing uses need no frame.
    let mut unused = function(vec![(vec![], RETURN)]);
    unused.frame.spill_slots = 1;
    assert_eq!(texts(&unused), ["ret"]);
    // Each page is touched.
    leaf.frame.spill_slots = 1300;
    let expected = [
        "sub rsp, 4096",
        "test [rsp], esp",
        "sub rsp, 4096",
        "test [rsp], esp",
        "sub rsp, 2208",
        "push qword ptr [rsp]",
        "pop rax",
        "add rsp, 10400",
        "ret",
    ];
    assert_eq!(texts(&leaf), expected);
}

#[test]
fn traps_share_what_they_do() {
    let trap = |cond, args: &[RegMemImm<PReg>]| Op::Trap { cond, kind: TrapKind::Index, args: args.into() };
    let length = RegMemImm::Mem(Address::base(PReg::RDI, -8));
    let ops = vec![
        trap(Some(Cond::AE), &[src(PReg::RSI), length]),
        trap(Some(Cond::AE), &[src(PReg::RSI), length]),
        trap(Some(Cond::BE), &[RegMemImm::Imm(7), src(PReg::RDI)]),
        trap(Some(Cond::B), &[src(PReg::RDI), src(PReg::RSI)]),
        trap(Some(Cond::A), &[RegMemImm::Imm(1 << 40), src(PReg::R9)]),
        Op::Trap { cond: None, kind: TrapKind::Assert, args: smallvec![] },
    ];
    let code = encoded(&function(vec![(ops, RETURN)]));
    let all = decode(&code.bytes);
    let targets: Vec<u64> = all.iter().filter_map(|decoded| decoded.target).collect();
    assert_eq!(targets.len(), 6);
    assert_eq!(targets[0], targets[1]);
    let stub = |target: u64, count: usize| -> Vec<&str> {
        all.iter()
            .skip_while(|decoded| decoded.offset != target)
            .take(count)
            .map(|decoded| decoded.text.as_str())
            .collect()
    };
    // Without positions, lines and columns are zeros.
    let expected = ["push qword ptr [rdi-8]", "push rsi", "pop rdi", "pop rsi", "xor edx, edx", "xor ecx, ecx"];
    assert_eq!(stub(targets[0], 6), expected);
    assert_eq!(stub(targets[2], 4), ["push rdi", "push 7", "pop rdi", "pop rsi"]);
    assert_eq!(stub(targets[3], 2), ["xor edx, edx", "xor ecx, ecx"]);
    assert_eq!(stub(targets[4], 2), ["mov rsi, r9", "mov rdi, 1099511627776"]);
    assert_eq!(stub(targets[5], 2), ["xor edi, edi", "xor esi, esi"]);
    let called: Vec<Target> = code.relocs.iter().map(|reloc| reloc.target).collect();
    let index = Target::Runtime(runtime::RuntimeFn::TrapIndex);
    assert_eq!(called, [index, index, index, index, Target::Runtime(runtime::RuntimeFn::TrapAssert)]);
}
