//! Selects calls, of the program's functions and of the runtime's, and what stands at a function's ends: parameters and
//! tail calls.
//!
//! ```text
//! %3 = call gcd(%1, 7)    →    parallel v4{rdi} = v1, v5{rsi} = 7
//!                              v6{rax} = call gcd(v4{rdi}, v5{rsi})
//!                              mov v3, v6{rax}
//! ```
//!
//! Source: System V AMD64 ABI, section 3.2. Cost: linear in the arguments.

use super::Selector;
use crate::ir;
use crate::ir::{Operand, PrintArg, Type, Value};
use crate::semantics::Scalar;
use crate::x64::runtime::RuntimeFn;
use crate::x64::*;
use smallvec::SmallVec;

/// A call that ends its function: what it calls, and with what.
pub(super) struct TailCall<'a> {
    callee: FuncId,
    args: &'a [Operand],
    data: &'a ir::InstData,
    inst: ir::Inst,
}

impl<'a> Selector<'a> {
    /// Brings the parameters into the registers of their values.
    pub(super) fn params(&mut self) {
        let mut moves = Vec::new();
        for (position, &param) in self.function.params.iter().enumerate() {
            if self.facts.uses(param) == 0 {
                continue;
            }
            let src = match ARGUMENTS.get(position) {
                Some(reg) => RegMemImm::Reg(self.pinned(*reg)),
                None => RegMemImm::Slot(Slot::Incoming((position - ARGUMENTS.len()) as u32)),
            };
            moves.push((RegMem::Reg(self.vreg(param)), src));
        }
        if !moves.is_empty() {
            self.emit(Op::Parallel { moves });
        }
    }

    /// The call at the block's end, if nothing is left to do behind it and its arguments all go into registers. Arrays
    /// are freed behind the calls that they are passed to, so none of this function's is alive.
    pub(super) fn tail_call(&self, block: &'a ir::BlockData) -> Option<TailCall<'a>> {
        let ir::Terminator::Return(returned) = &block.term else { return None };
        let inst = *block.insts.last()?;
        let data = &self.function.insts[inst];
        let ir::Op::Call { callee, args } = &data.op else { return None };
        let passes_on = match (returned, data.result.expand()) {
            (Some(Operand::Value(value)), Some(result)) => *value == result,
            (None, _) => true,
            (Some(_), _) => false,
        };
        (passes_on && args.len() <= ARGUMENTS.len()).then_some(TailCall { callee: *callee, args, data, inst })
    }

    /// Ends the block with the call.
    pub(super) fn select_tail_call(&mut self, tail: TailCall<'a>) {
        (self.span, self.origin) = (tail.data.span, tail.inst.into());
        let (args, _) = self.arguments(tail.args);
        self.end(Terminator::TailCall { callee: tail.callee, args });
    }

    /// Calls a function of the program.
    pub(super) fn call(&mut self, callee: FuncId, args: &[Operand], result: Option<VReg>) {
        let (args, stack_args) = self.arguments(args);
        self.emit_call(Callee::Function(callee), args, stack_args, result);
    }

    /// Brings arguments into place; the registers, and how many are on the stack.
    fn arguments(&mut self, args: &[Operand]) -> (SmallVec<[VReg; 6]>, u32) {
        let sources: SmallVec<[RegMemImm<VReg>; 6]> = args.iter().map(|arg| self.argument(*arg)).collect();
        self.place(&sources)
    }

    fn argument(&mut self, operand: Operand) -> RegMemImm<VReg> {
        match operand.constant() {
            Some(value) => RegMemImm::Imm(value),
            None => RegMemImm::Reg(self.reg(operand)),
        }
    }

    fn place(&mut self, sources: &[RegMemImm<VReg>]) -> (SmallVec<[VReg; 6]>, u32) {
        let mut registers = SmallVec::new();
        let mut moves = Vec::with_capacity(sources.len());
        for (position, source) in sources.iter().enumerate() {
            // An immediate on the stack must fit 32 bits; a wider one goes through a register.
            let (dst, src) = match (ARGUMENTS.get(position), *source) {
                (Some(reg), source) => {
                    let reg = self.pinned(*reg);
                    registers.push(reg);
                    (RegMem::Reg(reg), source)
                }
                (None, RegMemImm::Imm(value)) if i32::try_from(value).is_err() => {
                    let reg = self.constant(value);
                    (stack(position), RegMemImm::Reg(reg))
                }
                (None, source) => (stack(position), source),
            };
            moves.push((dst, src));
        }
        if !moves.is_empty() {
            self.emit(Op::Parallel { moves });
        }
        (registers, sources.len().saturating_sub(ARGUMENTS.len()) as u32)
    }

    fn emit_call(&mut self, callee: Callee, args: SmallVec<[VReg; 6]>, stack_args: u32, result: Option<VReg>) {
        let pinned = result.map(|_| self.pinned(RESULT));
        self.emit(Op::Call { callee, args, stack_args, result: pinned });
        self.out.frame.calls = true;
        self.out.frame.outgoing = self.out.frame.outgoing.max(stack_args);
        if let (Some(dst), Some(pinned)) = (result, pinned) {
            self.mov(dst, pinned);
        }
    }

    fn call_runtime(&mut self, callee: RuntimeFn, sources: &[RegMemImm<VReg>], result: Option<VReg>) {
        let (args, stack_args) = self.place(sources);
        self.emit_call(Callee::Runtime(callee), args, stack_args, result);
    }

    /// Line and column of the instruction, as arguments; zeros for what has no place in a source.
    fn position(&self) -> [RegMemImm<VReg>; 2] {
        let position = self.program.positions.position(self.span);
        [
            RegMemImm::Imm(position.map_or(0, |position| i64::from(position.line))),
            RegMemImm::Imm(position.map_or(0, |position| i64::from(position.column))),
        ]
    }

    /// Makes an array.
    pub(super) fn array(&mut self, element: Scalar, init: Operand, len: Operand, dst: VReg) {
        let callee = match element {
            Scalar::Int => RuntimeFn::ArrayInt,
            Scalar::Bool => RuntimeFn::ArrayBool,
        };
        let [line, column] = self.position();
        let (len, init) = (self.argument(len), self.argument(init));
        self.call_runtime(callee, &[len, init, line, column], Some(dst));
    }

    /// Frees an array.
    pub(super) fn free(&mut self, array: Operand) {
        let array = self.argument(array);
        self.call_runtime(RuntimeFn::Free, &[array], None);
    }

    /// Reads an integer.
    pub(super) fn read(&mut self, dst: VReg) {
        let position = self.position();
        self.call_runtime(RuntimeFn::Read, &position, Some(dst));
    }

    /// Asks whether the input is at its end.
    pub(super) fn eof(&mut self, dst: VReg) {
        self.call_runtime(RuntimeFn::Eof, &[], Some(dst));
    }

    /// Prints a line: one call for each argument, each with the character behind it.
    pub(super) fn print(&mut self, args: &[PrintArg]) {
        for (position, arg) in args.iter().enumerate() {
            let end = RegMemImm::Imm(i64::from(if position + 1 == args.len() { b'\n' } else { b' ' }));
            match arg {
                PrintArg::Operand(operand) => {
                    let callee = match self.function.type_of(*operand) {
                        Type::Scalar(Scalar::Bool) => RuntimeFn::PrintBool,
                        Type::Scalar(Scalar::Int) | Type::Array(_) => RuntimeFn::PrintInt,
                    };
                    let value = self.argument(*operand);
                    self.call_runtime(callee, &[value, end], None);
                }
                PrintArg::Str(string) => {
                    let bytes = self.program.strings[*string].len() as i64;
                    let address = self.fresh();
                    self.emit(Op::StrAddress { dst: address, string: *string });
                    self.call_runtime(
                        RuntimeFn::PrintStr,
                        &[RegMemImm::Reg(address), RegMemImm::Imm(bytes), end],
                        None,
                    );
                }
            }
        }
        if args.is_empty() {
            let end = RegMemImm::Imm(i64::from(b'\n'));
            self.call_runtime(RuntimeFn::PrintStr, &[RegMemImm::Imm(0), RegMemImm::Imm(0), end], None);
        }
    }

    /// Copies that read all their sources before they write.
    pub(super) fn parallel(&mut self, copies: &[(Value, Operand)]) {
        let mut moves = Vec::with_capacity(copies.len());
        for (dst, src) in copies {
            let src = self.argument(*src);
            moves.push((RegMem::Reg(self.vreg(*dst)), src));
        }
        if !moves.is_empty() {
            self.emit(Op::Parallel { moves });
        }
    }
}

fn stack(position: usize) -> RegMem<VReg> {
    RegMem::Slot(Slot::Outgoing((position - ARGUMENTS.len()) as u32))
}
