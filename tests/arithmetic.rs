//! Arithmetic of selected, allocated and encoded code against `semantics`: every operation with every interesting constant
//! on either side, and with variables, run on the processor itself.

use atlc::emit::code::{FunctionCode, RelocKind};
use atlc::emit::encode;
use atlc::ir;
use atlc::ir::{Block, Form, Operand, Role, Type};
use atlc::semantics::{BinaryOp, CompareOp, Scalar, UnaryOp};
use atlc::support::span::{Positions, Span};
use atlc::x64::{PReg, RegSet, verify};
use atlc::{isel, regalloc};
use std::arch::global_asm;

// Calls `code(a, b)` with every callee-saved register holding a pattern, and checks them afterwards. A trap comes to
// `atlc_test_trap` by a jump, from any depth of the stack. Gives the result in rax, and in rdx 0, or 1 for a trap, or 2 if
// a register was not given back.
global_asm!(
    ".local atlc_test_stack",
    ".comm atlc_test_stack, 8, 8",
    ".globl atlc_test_call",
    "atlc_test_call:",
    "push rbx",
    "push rbp",
    "push r12",
    "push r13",
    "push r14",
    "push r15",
    "sub rsp, 8",
    "mov [rip + atlc_test_stack], rsp",
    "mov rax, rdi",
    "mov rdi, rsi",
    "mov rsi, rdx",
    "mov rbx, 0x1111",
    "mov rbp, 0x2222",
    "mov r12, 0x3333",
    "mov r13, 0x4444",
    "mov r14, 0x5555",
    "mov r15, 0x6666",
    "call rax",
    "mov edx, 2",
    "cmp rbx, 0x1111",
    "jne 2f",
    "cmp rbp, 0x2222",
    "jne 2f",
    "cmp r12, 0x3333",
    "jne 2f",
    "cmp r13, 0x4444",
    "jne 2f",
    "cmp r14, 0x5555",
    "jne 2f",
    "cmp r15, 0x6666",
    "jne 2f",
    "cmp rsp, [rip + atlc_test_stack]",
    "jne 2f",
    "xor edx, edx",
    "2:",
    "mov rsp, [rip + atlc_test_stack]",
    "3:",
    "add rsp, 8",
    "pop r15",
    "pop r14",
    "pop r13",
    "pop r12",
    "pop rbp",
    "pop rbx",
    "ret",
    ".globl atlc_test_trap",
    "atlc_test_trap:",
    "mov edx, 1",
    "mov rsp, [rip + atlc_test_stack]",
    "jmp 3b",
);

#[repr(C)]
struct Answer {
    result: i64,
    state: u64,
}

unsafe extern "C" {
    fn atlc_test_call(code: *const u8, a: i64, b: i64) -> Answer;
    fn atlc_test_trap();
}

/// One thread at a time may be between `atlc_test_call` and its return.
static STACK: std::sync::Mutex<()> = std::sync::Mutex::new(());

/// Executable memory that holds some functions.
struct Memory {
    start: *mut u8,
    size: usize,
    used: usize,
}

impl Memory {
    fn new(size: usize) -> Memory {
        let protection = libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let start = unsafe { libc::mmap(std::ptr::null_mut(), size, protection, flags, -1, 0) };
        assert_ne!(start, libc::MAP_FAILED, "the system gives executable memory");
        let mut memory = Memory { start: start.cast(), size, used: 0 };
        // jmp [rip+0], then the address: where every trap goes.
        let mut bytes = vec![0xFF, 0x25, 0, 0, 0, 0];
        bytes.extend((atlc_test_trap as *const () as u64).to_le_bytes());
        memory.put(&bytes);
        memory
    }

    fn put(&mut self, bytes: &[u8]) -> *const u8 {
        assert!(self.used + bytes.len() <= self.size);
        let at = unsafe { self.start.add(self.used) };
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), at, bytes.len()) };
        self.used += bytes.len().next_multiple_of(16);
        at
    }

    /// Links a function whose only references are to the runtime's traps.
    fn link(&mut self, code: &FunctionCode) -> *const u8 {
        let mut bytes = code.bytes.clone();
        for reloc in &code.relocs {
            assert_eq!(reloc.kind, RelocKind::Branch);
            let at = reloc.offset as usize;
            let distance = -((self.used + at) as i64) + i64::from(reloc.addend);
            bytes[at..at + 4].copy_from_slice(&(distance as i32).to_le_bytes());
        }
        self.put(&bytes)
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        unsafe { libc::munmap(self.start.cast(), self.size) };
    }
}

/// `fn f(a: int, b: int) -> int { return body }`, with an empty body for the program.
fn program(ty: Scalar, build: impl FnOnce(&mut ir::Function, Block, [Operand; 2])) -> ir::Program {
    let mut functions = cranelift_entity::PrimaryMap::new();
    let mut main = ir::Function::new("main", Form::Sequenced);
    let entry = main.make_block(Role::Entry);
    main.layout.push(entry);
    main.blocks[entry].term = ir::Terminator::Return(None);
    let mut function = ir::Function::new("f", Form::Sequenced);
    let ints = [function.make_value(Type::Scalar(ty), None), function.make_value(Type::Scalar(ty), None)];
    function.params = ints.to_vec();
    function.result = Some(Scalar::Int);
    let entry_of_f = function.make_block(Role::Entry);
    function.layout.push(entry_of_f);
    build(&mut function, entry_of_f, ints.map(Operand::Value));
    let entry = functions.push(main);
    functions.push(function);
    ir::Program { functions, entry, strings: Default::default(), positions: Positions::unknown() }
}

fn append(function: &mut ir::Function, block: Block, op: ir::Op, ty: Type) -> Operand {
    let value = function.make_value(ty, None);
    let inst = function.make_inst(op, Some(value), Span::NONE);
    function.blocks[block].insts.push(inst);
    Operand::Value(value)
}

fn give_back(function: &mut ir::Function, block: Block, value: Operand) {
    function.blocks[block].term = ir::Terminator::Return(Some(value));
}

/// What the function `f` of a program gives for two ints; `None` for a trap.
struct Native {
    memory: Memory,
    entries: Vec<*const u8>,
}

impl Native {
    fn new(program: &ir::Program) -> Native {
        let id = program.functions.keys().next_back().expect("the program has functions");
        let selected = isel::select(program, id);
        verify::verify(&selected).unwrap_or_else(|error| panic!("{error}"));
        let few = [PReg::RAX, PReg::RCX, PReg::RDX, PReg::RBX, PReg::RSI, PReg::RDI];
        let everything = regalloc::Options::default();
        let options = [
            everything,
            regalloc::Options { spill_all: true, ..everything },
            regalloc::Options { registers: RegSet::of(&few), ..everything },
        ];
        let mut memory = Memory::new(1 << 14);
        let mut entries = Vec::new();
        for options in options {
            let (allocated, _) = regalloc::run(&selected, &options).unwrap_or_else(|error| panic!("{error}"));
            let code = encode::encode(&allocated, &Positions::unknown()).unwrap_or_else(|error| panic!("{error}"));
            entries.push(memory.link(&code));
        }
        Native { memory, entries }
    }

    #[track_caller]
    fn check(&self, a: i64, b: i64, expected: Option<i64>, what: &dyn Fn() -> String) {
        assert!(self.memory.used > 0);
        let _guard = STACK.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        for (number, entry) in self.entries.iter().enumerate() {
            let answer = unsafe { atlc_test_call(*entry, a, b) };
            assert_ne!(answer.state, 2, "{}: a register of the caller is lost", what());
            let found = (answer.state == 0).then_some(answer.result);
            assert_eq!(found, expected, "{} with a = {a}, b = {b}, allocation {number}", what());
        }
    }
}

/// Values at which arithmetic turns: around 0, powers of two, and both ends; then a spread of others.
fn values() -> Vec<i64> {
    let mut result = vec![0, i64::MAX, i64::MIN, 10, 100, 1_000_000_007, 6_364_136_223_846_793_005];
    for exponent in [0, 1, 2, 3, 7, 8, 15, 16, 31, 32, 33, 62] {
        for around in -1..=1 {
            result.push((1i64 << exponent) + around);
            result.push(-(1i64 << exponent) + around);
        }
    }
    result.extend([i64::MIN + 1, i64::MAX - 1, 3, -3, 5, -5, 6, 7, -7, 9, 11, 12, 25, 125, 625, -1000]);
    let mut state = 0x9E37_79B9_7F4A_7C15u64;
    for shift in 0..24 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        result.push((state >> (shift * 2)) as i64);
    }
    result.sort_unstable();
    result.dedup();
    result
}

fn binary(op: BinaryOp, args: [Operand; 2]) -> ir::Op {
    ir::Op::Binary { op, ty: Scalar::Int, args }
}

#[test]
fn operations_on_two_variables() {
    for op in BinaryOp::ALL {
        let native = Native::new(&program(Scalar::Int, |function, block, args| {
            let result = append(function, block, binary(op, args), Type::INT);
            give_back(function, block, result);
        }));
        for a in values() {
            for b in values() {
                native.check(a, b, op.eval(a, b), &|| format!("a {} b", op.symbol()));
            }
        }
    }
}

#[test]
fn operations_with_a_constant() {
    for op in BinaryOp::ALL {
        for constant in values() {
            let right = Native::new(&program(Scalar::Int, |function, block, [a, _]| {
                let result = append(function, block, binary(op, [a, Operand::Int(constant)]), Type::INT);
                give_back(function, block, result);
            }));
            let left = Native::new(&program(Scalar::Int, |function, block, [a, _]| {
                let result = append(function, block, binary(op, [Operand::Int(constant), a]), Type::INT);
                give_back(function, block, result);
            }));
            for a in values() {
                right.check(a, 0, op.eval(a, constant), &|| format!("a {} {constant}", op.symbol()));
                left.check(a, 0, op.eval(constant, a), &|| format!("{constant} {} a", op.symbol()));
            }
        }
    }
}

#[test]
fn quotients_near_multiples() {
    // Where the rounding of a reciprocal would show: just below, at and above multiples of the divisor.
    let divisors = (2..200).chain((8..63).flat_map(|k| [(1i64 << k) - 1, (1 << k) + 1, (1 << k) + 3]));
    for divisor in divisors.flat_map(|divisor| [divisor, -divisor]) {
        let natives = [BinaryOp::Div, BinaryOp::Rem].map(|op| {
            let native = Native::new(&program(Scalar::Int, |function, block, [a, _]| {
                let result = append(function, block, binary(op, [a, Operand::Int(divisor)]), Type::INT);
                give_back(function, block, result);
            }));
            (op, native)
        });
        let largest = i64::MAX / divisor.abs();
        for quotient in [0, 1, 2, largest / 3, largest - 1, largest] {
            for around in -1..=1 {
                for a in [quotient.wrapping_mul(divisor.abs()), quotient.wrapping_mul(divisor.abs()).wrapping_neg()] {
                    let a = a.wrapping_add(around);
                    for (op, native) in &natives {
                        native.check(a, 0, op.eval(a, divisor), &|| format!("a {} {divisor}", op.symbol()));
                    }
                }
            }
        }
    }
}

#[test]
fn comparisons() {
    for op in CompareOp::ALL {
        let compare = |args| ir::Op::Compare { op, args };
        // As a value, negated, as an int, and as the condition of a select and of a branch.
        for shape in 0..5 {
            let build = |with: Option<i64>| {
                program(Scalar::Int, |function, block, [a, b]| {
                    let right = with.map_or(b, Operand::Int);
                    let truth = append(function, block, compare([a, right]), Type::BOOL);
                    match shape {
                        0 => give_back(function, block, truth),
                        1 => {
                            let not = ir::Op::Unary { op: UnaryOp::Not, arg: truth };
                            let not = append(function, block, not, Type::BOOL);
                            let back =
                                append(function, block, ir::Op::Unary { op: UnaryOp::Not, arg: not }, Type::BOOL);
                            give_back(function, block, back);
                        }
                        2 => {
                            let int = ir::Op::Unary { op: UnaryOp::IntOfBool, arg: truth };
                            let int = append(function, block, int, Type::INT);
                            give_back(function, block, int);
                        }
                        3 => {
                            let select = ir::Op::Select { cond: truth, args: [Operand::Int(1), Operand::Int(0)] };
                            let result = append(function, block, select, Type::INT);
                            give_back(function, block, result);
                        }
                        _ => {
                            let (yes, no) = (function.make_block(Role::IfThen), function.make_block(Role::IfElse));
                            function.layout.extend([yes, no]);
                            function.blocks[block].term =
                                ir::Terminator::Branch { cond: truth, then: ir::Edge::to(yes), els: ir::Edge::to(no) };
                            give_back(function, yes, Operand::Int(1));
                            give_back(function, no, Operand::Int(0));
                        }
                    }
                })
            };
            let variables = Native::new(&build(None));
            for a in values() {
                for b in values() {
                    let expected = Some(i64::from(op.eval(a, b)));
                    variables.check(a, b, expected, &|| format!("a {} b, shape {shape}", op.symbol()));
                }
            }
            for constant in [0, 1, -1, 127, -129, 1 << 31, i64::MAX, i64::MIN] {
                let native = Native::new(&build(Some(constant)));
                for a in values() {
                    let expected = Some(i64::from(op.eval(a, constant)));
                    native.check(a, 0, expected, &|| format!("a {} {constant}, shape {shape}", op.symbol()));
                }
            }
        }
    }
}

#[test]
fn masks_compared_with_zero() {
    for op in [CompareOp::Eq, CompareOp::Ne] {
        for (inner, constant) in values().into_iter().flat_map(|constant| {
            let power = constant.unsigned_abs().is_power_of_two();
            [(BinaryOp::And, constant), (if power { BinaryOp::Rem } else { BinaryOp::And }, constant)]
        }) {
            let native = Native::new(&program(Scalar::Int, |function, block, [a, _]| {
                let masked = append(function, block, binary(inner, [a, Operand::Int(constant)]), Type::INT);
                let truth =
                    append(function, block, ir::Op::Compare { op, args: [masked, Operand::Int(0)] }, Type::BOOL);
                let select = ir::Op::Select { cond: truth, args: [Operand::Int(-5), a] };
                let result = append(function, block, select, Type::INT);
                give_back(function, block, result);
            }));
            for a in values() {
                let inside = inner.eval(a, constant).expect("the constant is not zero");
                let expected = Some(if op.eval(inside, 0) { -5 } else { a });
                native.check(a, 0, expected, &|| format!("a {} {constant} {} 0", inner.symbol(), op.symbol()));
            }
        }
    }
}

#[test]
fn masks_of_shifts() {
    for count in [0, 1, 2, 7, 30, 31, 32, 33, 62, 63, 64] {
        for mask in [u64::MAX.wrapping_shr(count as u32) as i64, 1, -1, 0xFF, i64::MAX] {
            let native = Native::new(&program(Scalar::Int, |function, block, [a, _]| {
                let shifted = append(function, block, binary(BinaryOp::Shr, [a, Operand::Int(count)]), Type::INT);
                let result = append(function, block, binary(BinaryOp::And, [shifted, Operand::Int(mask)]), Type::INT);
                give_back(function, block, result);
            }));
            for a in values() {
                let shifted = BinaryOp::Shr.eval(a, count).expect("it cannot trap");
                native.check(a, 0, Some(shifted & mask), &|| format!("a >> {count} & {mask}"));
            }
        }
    }
}

#[test]
fn sums_of_sums_and_products() {
    // (a op1 c1) op2 (b op3 c2), the shapes that become one `lea` among them.
    let inner = [BinaryOp::Add, BinaryOp::Sub, BinaryOp::Mul, BinaryOp::Shl];
    for first in inner {
        for second in inner {
            for (c1, c2) in
                [(1, 2), (2, 3), (3, 1), (8, -8), (5, 1 << 40), (i64::MIN, 4), (9, 2), (4, i64::from(i32::MIN))]
            {
                for outer in [BinaryOp::Add, BinaryOp::Sub] {
                    for shape in 0..4 {
                        let native = Native::new(&program(Scalar::Int, |function, block, [a, b]| {
                            let left = append(function, block, binary(first, [a, Operand::Int(c1)]), Type::INT);
                            let right = match shape {
                                0 => append(function, block, binary(second, [b, Operand::Int(c2)]), Type::INT),
                                1 => b,
                                2 => Operand::Int(c2),
                                _ => left,
                            };
                            let result = append(function, block, binary(outer, [left, right]), Type::INT);
                            give_back(function, block, result);
                        }));
                        for (a, b) in [(0, 0), (1, -1), (7, 1 << 62), (i64::MIN, i64::MAX), (-12345, 678)] {
                            let left = first.eval(a, c1).expect("it cannot trap");
                            let right = match shape {
                                0 => second.eval(b, c2).expect("it cannot trap"),
                                1 => b,
                                2 => c2,
                                _ => left,
                            };
                            let what = || {
                                let [first, outer, second] = [first, outer, second].map(BinaryOp::symbol);
                                format!("(a {first} {c1}) {outer} (b {second} {c2}), shape {shape}")
                            };
                            native.check(a, b, outer.eval(left, right), &what);
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn unary_operations_and_bools() {
    for op in [UnaryOp::Neg, UnaryOp::BitNot] {
        let native = Native::new(&program(Scalar::Int, |function, block, [a, _]| {
            let result = append(function, block, ir::Op::Unary { op, arg: a }, Type::INT);
            give_back(function, block, result);
        }));
        for a in values() {
            native.check(a, 0, Some(op.eval(a)), &|| format!("{} a", op.symbol()));
        }
    }
    for op in [BinaryOp::And, BinaryOp::Or, BinaryOp::Xor] {
        for constant in [None, Some(false), Some(true)] {
            let native = Native::new(&program(Scalar::Bool, |function, block, [a, b]| {
                let args = [a, constant.map_or(b, Operand::Bool)];
                let result = append(function, block, ir::Op::Binary { op, ty: Scalar::Bool, args }, Type::BOOL);
                give_back(function, block, result);
            }));
            for (a, b) in [(false, false), (false, true), (true, false), (true, true)] {
                let expected = op.eval_bool(a, constant.unwrap_or(b)).map(i64::from);
                native.check(i64::from(a), i64::from(b), expected, &|| format!("a {} b", op.symbol()));
            }
        }
    }
}
