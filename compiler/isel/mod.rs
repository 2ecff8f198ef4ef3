//! Floor 4: instruction selection, IR out of SSA → machine code over virtual registers.
//!
//! Each IR value becomes the virtual register of the same number; numbers behind those are temporaries. Every block is
//! selected in order, each instruction as the pattern that `plan` found for it: what an instruction absorbs is selected
//! where the instruction stands. Registers that the hardware demands (division, shifts, calls) are pinned ones, filled and
//! emptied by copies right beside the instruction; allocation makes the copies vanish.
//!
//! ```text
//! b1:                                 b1:
//!   %6 = bool %5 < %1                   cmp v5, v1
//!   branch %6 ? b2 : b3                 jl b2 else b3
//! ```
//!
//! **in** IR in [`Form::Sequenced`] (or over variables without φs) that passes its verifier · **out** machine code that
//! passes its own; blocks keep their numbers, those that selection makes follow. Cost: linear, up to the walk over the
//! loops for constants.

mod arithmetic;
mod calls;
mod condition;
mod divide;
mod facts;
mod memory;
mod plan;

use crate::analysis::cfg::Cfg;
use crate::analysis::dominators::DomTree;
use crate::analysis::loops::{Loop, Loops};
use crate::ir;
use crate::ir::{InstData, Op as IrOp, Operand, Type};
use crate::semantics::{Scalar, UnaryOp as IrUnary};
use crate::support::span::Span;
use crate::x64::runtime::{ENTRY_SYMBOL, function_symbol};
use crate::x64::*;
use cranelift_entity::{EntityRef, PrimaryMap, SecondaryMap, packed_option::PackedOption};
use facts::Facts;
use plan::Plan;
use rustc_hash::FxHashMap;

/// Selects instructions for the whole program. `source_name` is the source's name as run-time errors show it.
pub fn run(program: &ir::Program, source_name: &str) -> Program<VReg> {
    Program {
        functions: program.functions.keys().map(|id| select(program, id)).collect(),
        entry: program.entry,
        strings: program.strings.clone(),
        source_name: source_name.to_string(),
        positions: program.positions.clone(),
    }
}

/// Selects instructions for one function.
pub fn select(program: &ir::Program, id: FuncId) -> Function<VReg> {
    let function = &program.functions[id];
    let cfg = Cfg::compute(function);
    let facts = Facts::compute(function, &cfg);
    let dominators = DomTree::compute(function, &cfg);
    let loops = Loops::compute(function, &cfg, &dominators);
    let plan = Plan::compute(function, &facts);
    let symbol =
        if id == program.entry { ENTRY_SYMBOL.to_string() } else { function_symbol(source_name(&function.name)) };
    let mut out = Function {
        name: function.name.clone(),
        symbol,
        incoming: function.params.len().saturating_sub(ARGUMENTS.len()) as u32,
        layout: Vec::new(),
        blocks: PrimaryMap::with_capacity(function.blocks.len()),
        vregs: PrimaryMap::with_capacity(function.values.len()),
        frame: Frame::default(),
    };
    for (block, data) in &function.blocks {
        out.blocks.push(BlockData {
            insts: Vec::with_capacity(data.insts.len() + 2),
            term: Terminator::Unreachable,
            term_span: data.term_span,
            loop_depth: loops.depth(block),
        });
    }
    for value in function.values.keys() {
        out.vregs.push(VRegData { pinned: None, value: value.into() });
    }
    let mut selector = Selector {
        program,
        function,
        facts: &facts,
        plan: &plan,
        out,
        current: function.entry(),
        span: Span::NONE,
        origin: PackedOption::default(),
        constants: FxHashMap::default(),
        hoisted: FxHashMap::default(),
        hoists: Vec::new(),
        ends: SecondaryMap::new(),
        dominators: &dominators,
        loops: &loops,
        outermost: None,
    };
    selector.function();
    selector.hoist();
    selector.out
}

/// The name that the source gives a function: listings tell a function called `main` from the program's body.
fn source_name(name: &str) -> &str {
    if name == "main.1" { "main" } else { name }
}

struct Selector<'a> {
    program: &'a ir::Program,
    function: &'a ir::Function,
    facts: &'a Facts,
    plan: &'a Plan<'a>,
    out: Function<VReg>,
    /// The machine block that instructions are appended to.
    current: Block,
    /// Where the instruction that is being selected comes from.
    span: Span,
    origin: PackedOption<IrInst>,
    /// Registers that hold constants in the current machine block; nothing changes them.
    constants: FxHashMap<i64, VReg>,
    /// Registers that hold wide constants throughout a loop.
    hoisted: FxHashMap<(Loop, i64), VReg>,
    /// The same in order of first use, with the IR block that defines them, in front of the loop.
    hoists: Vec<(ir::Block, i64, VReg)>,
    /// The last machine block of each IR block.
    ends: SecondaryMap<ir::Block, Option<Block>>,
    dominators: &'a DomTree,
    loops: &'a Loops,
    /// The outermost loop around the current block.
    outermost: Option<Loop>,
}

impl<'a> Selector<'a> {
    fn function(&mut self) {
        for &block in &self.function.layout {
            self.open(block);
            self.outermost = self.outermost_loop(block);
            if block == self.function.entry() {
                self.params();
            }
            let data = &self.function.blocks[block];
            let mut insts = data.insts.as_slice();
            let tail = self.tail_call(data);
            if tail.is_some() {
                insts = &insts[..insts.len() - 1];
            }
            for &inst in insts {
                let data = &self.function.insts[inst];
                (self.span, self.origin) = (data.span, inst.into());
                self.inst(data);
            }
            (self.span, self.origin) = (data.term_span, PackedOption::default());
            match tail {
                Some(tail) => self.select_tail_call(tail),
                None => self.terminator(&data.term),
            }
            self.ends[block] = Some(self.current);
        }
    }

    fn outermost_loop(&self, block: ir::Block) -> Option<Loop> {
        // Blocks are visited in an order that stays in a loop for long: mostly the answer is the same as before.
        let mut outermost = self.loops.innermost(block)?;
        if let Some(before) = self.outermost
            && self.loops.contains(before, block)
        {
            return Some(before);
        }
        while let Some(parent) = self.loops.parent(outermost) {
            outermost = parent;
        }
        Some(outermost)
    }

    /// A block that dominates the loop, if it is easy to find outside of all loops.
    fn in_front_of(&self, around: Loop) -> Option<ir::Block> {
        let mut front = self.dominators.idom(self.loops.header(around))?;
        // A loop may follow another one directly, whose header is then the dominator.
        for _ in 0..4 {
            let Some(mut other) = self.loops.innermost(front) else { break };
            while let Some(parent) = self.loops.parent(other) {
                other = parent;
            }
            front = self.dominators.idom(self.loops.header(other))?;
        }
        Some(front)
    }

    /// Defines the constants of loops in front of them. That a block ends in a branch on flags does no harm: `mov` of a
    /// constant keeps them.
    fn hoist(&mut self) {
        for (block, value, dst) in std::mem::take(&mut self.hoists) {
            let end = self.ends[block].expect("a block in front of a loop was selected");
            let op = Op::Imm { dst: RegMem::Reg(dst), value };
            self.out.blocks[end].insts.push(Inst { op, span: Span::NONE, origin: PackedOption::default() });
        }
    }

    /// Goes on in a block, which comes next in the layout.
    fn open(&mut self, block: Block) {
        self.out.layout.push(block);
        self.current = block;
        self.constants.clear();
    }

    /// A new block of the machine code, as deep in loops as the current one unless it is cold.
    fn make_block(&mut self, cold: bool) -> Block {
        let depth = self.out.blocks[self.current].loop_depth;
        self.out.blocks.push(BlockData {
            insts: Vec::new(),
            term: Terminator::Unreachable,
            term_span: self.span,
            loop_depth: if cold { 0 } else { depth },
        })
    }

    /// Ends the current block.
    fn end(&mut self, term: Terminator<VReg>) {
        let block = &mut self.out.blocks[self.current];
        block.term = term;
        block.term_span = self.span;
    }

    fn emit(&mut self, op: Op<VReg>) {
        let inst = Inst { op, span: self.span, origin: self.origin };
        self.out.blocks[self.current].insts.push(inst);
    }

    /// A new temporary.
    fn fresh(&mut self) -> VReg {
        self.out.vregs.push(VRegData { pinned: None, value: PackedOption::default() })
    }

    /// A new temporary that must be the physical register.
    fn pinned(&mut self, reg: PReg) -> VReg {
        self.out.vregs.push(VRegData { pinned: Some(reg), value: PackedOption::default() })
    }

    /// The register of a value.
    fn vreg(&self, value: ir::Value) -> VReg {
        debug_assert!(self.plan.sunk(Operand::Value(value)).is_none(), "{value} is part of its uses");
        VReg::new(value.index())
    }

    /// A register that holds the operand. Not to be changed.
    fn reg(&mut self, operand: Operand) -> VReg {
        match (operand.value(), operand.constant()) {
            (Some(value), _) => self.vreg(value),
            (None, constant) => self.constant(constant.expect("an operand is a value or a constant")),
        }
    }

    /// A register that holds the constant. Not to be changed.
    fn constant(&mut self, value: i64) -> VReg {
        if let Some(reg) = self.constants.get(&value) {
            return *reg;
        }
        let is_wide = i32::try_from(value).is_err() && u32::try_from(value).is_err();
        if let Some(around) = self.outermost.filter(|_| is_wide)
            && let Some(front) = self.in_front_of(around)
        {
            if let Some(reg) = self.hoisted.get(&(around, value)) {
                return *reg;
            }
            let dst = self.fresh();
            self.hoisted.insert((around, value), dst);
            self.hoists.push((front, value, dst));
            return dst;
        }
        let dst = self.fresh();
        self.imm(dst, value);
        self.constants.insert(value, dst);
        dst
    }

    /// The operand as an instruction reads it: a constant of 32 signed bits in place, else a register.
    fn reg_imm(&mut self, operand: Operand) -> RegMemImm<VReg> {
        match operand.constant() {
            Some(value) if i32::try_from(value).is_ok() => RegMemImm::Imm(value),
            _ => RegMemImm::Reg(self.reg(operand)),
        }
    }

    /// The operand as an instruction reads it: also from memory, if its load is absorbed.
    fn source(&mut self, operand: Operand) -> RegMemImm<VReg> {
        match self.absorbed_word(operand) {
            Some(address) => RegMemImm::Mem(address),
            None => self.reg_imm(operand),
        }
    }

    /// The operand as an instruction reads it that takes no immediate.
    fn reg_mem(&mut self, operand: Operand) -> RegMem<VReg> {
        match self.absorbed_word(operand) {
            Some(address) => RegMem::Mem(address),
            None => RegMem::Reg(self.reg(operand)),
        }
    }

    fn mov(&mut self, dst: VReg, src: VReg) {
        if dst != src {
            self.emit(Op::Mov { dst: RegMem::Reg(dst), src: RegMem::Reg(src) });
        }
    }

    fn imm(&mut self, dst: VReg, value: i64) {
        self.emit(Op::Imm { dst: RegMem::Reg(dst), value });
    }

    /// Brings the operand into a register that will be changed.
    fn copy(&mut self, dst: VReg, operand: Operand) {
        match operand.constant() {
            Some(value) => self.imm(dst, value),
            None => {
                let src = self.reg(operand);
                self.mov(dst, src);
            }
        }
    }

    fn alu(&mut self, op: AluOp, width: Width, dst: VReg, src: RegMemImm<VReg>) {
        self.emit(Op::Alu { op, width, dst: RegMem::Reg(dst), src });
    }

    fn shift(&mut self, op: ShiftOp, dst: VReg, count: u32) {
        if count != 0 {
            let count = Count::Imm(count as u8);
            self.emit(Op::Shift { op, width: Width::W64, dst: RegMem::Reg(dst), count });
        }
    }

    fn unary(&mut self, op: UnaryOp, dst: VReg) {
        self.emit(Op::Unary { op, width: Width::W64, dst: RegMem::Reg(dst) });
    }

    /// Selects an instruction.
    fn inst(&mut self, data: &'a InstData) {
        match data.result.expand() {
            None => self.effect(&data.op),
            Some(result) => {
                if self.plan.sunk(Operand::Value(result)).is_some()
                    || (self.facts.uses(result) == 0 && ir::effects::effects(&data.op).removable())
                {
                    return;
                }
                // A value with several definitions may be among its own operands, which the instructions selected here
                // may still read after the first of them wrote the result.
                if self.facts.redefined(result) && !matches!(data.op, IrOp::Copy(_)) {
                    let temp = self.fresh();
                    self.value(&data.op, temp, self.function.values[result].ty);
                    let dst = self.vreg(result);
                    self.mov(dst, temp);
                } else {
                    let dst = self.vreg(result);
                    self.value(&data.op, dst, self.function.values[result].ty);
                }
            }
        }
    }

    /// Selects an instruction that gives a value. `dst` is not among its operands, unless it is a copy.
    fn value(&mut self, op: &'a IrOp, dst: VReg, _ty: Type) {
        match op {
            IrOp::Copy(operand) => self.copy(dst, *operand),
            IrOp::Binary { op, ty, args } => self.binary(*op, *ty, *args, dst),
            IrOp::Compare { .. } => self.compare_value(op, dst),
            IrOp::Unary { op, arg } => match op {
                IrUnary::Neg => {
                    self.copy(dst, *arg);
                    self.unary(UnaryOp::Neg, dst);
                }
                IrUnary::BitNot => {
                    self.copy(dst, *arg);
                    self.unary(UnaryOp::Not, dst);
                }
                IrUnary::Not => self.not_value(*arg, dst),
                IrUnary::IntOfBool => self.int_of_bool(*arg, dst),
            },
            IrOp::Select { cond, args } => self.select(*cond, *args, dst),
            IrOp::Array { element, init, len } => self.array(*element, *init, *len, dst),
            IrOp::Len(array) => {
                let src = self.len_address(*array);
                self.emit(Op::Load { ty: Scalar::Int, dst, src });
            }
            IrOp::Load { element, array, index } => {
                let src = self.element_address(*element, *array, *index);
                self.emit(Op::Load { ty: *element, dst, src });
            }
            IrOp::Call { callee, args } => self.call(*callee, args, Some(dst)),
            IrOp::Read => self.read(dst),
            IrOp::Eof => self.eof(dst),
            IrOp::Parallel(_)
            | IrOp::Free(_)
            | IrOp::Bounds { .. }
            | IrOp::Store { .. }
            | IrOp::Print(_)
            | IrOp::Assert(_) => panic!("an instruction that gives no value has a result"),
        }
    }

    /// Selects an instruction that gives no value, or whose value nothing takes.
    fn effect(&mut self, op: &'a IrOp) {
        match op {
            IrOp::Parallel(copies) => self.parallel(copies),
            IrOp::Free(array) => self.free(*array),
            IrOp::Bounds { index, len } => self.bounds(*index, *len),
            IrOp::Store { element, array, index, value } => self.store(*element, *array, *index, *value),
            IrOp::Call { callee, args } => self.call(*callee, args, None),
            IrOp::Print(args) => self.print(args),
            IrOp::Assert(cond) => self.assert(*cond),
            IrOp::Copy(_)
            | IrOp::Binary { .. }
            | IrOp::Compare { .. }
            | IrOp::Unary { .. }
            | IrOp::Select { .. }
            | IrOp::Array { .. }
            | IrOp::Len(_)
            | IrOp::Load { .. }
            | IrOp::Read
            | IrOp::Eof => {
                let unused = self.fresh();
                self.value(op, unused, Type::INT);
            }
        }
    }

    fn terminator(&mut self, term: &ir::Terminator) {
        let term = match term {
            ir::Terminator::Jump(edge) => Terminator::Jump(edge.target),
            ir::Terminator::Branch { cond, then, els } => match cond.constant() {
                Some(truth) => Terminator::Jump(if truth != 0 { then.target } else { els.target }),
                None if then.target == els.target => Terminator::Jump(then.target),
                None => {
                    let cond = self.condition(*cond);
                    Terminator::Branch { cond, then: then.target, els: els.target }
                }
            },
            ir::Terminator::Return(operand) => {
                let value = operand.map(|operand| {
                    let result = self.pinned(RESULT);
                    self.copy(result, operand);
                    result
                });
                Terminator::Return { value }
            }
            ir::Terminator::Unreachable => Terminator::Unreachable,
        };
        self.end(term);
    }
}
