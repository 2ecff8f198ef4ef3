//! Builds the IR: HIR → blocks of instructions over variables.
//!
//! Each source variable is one IR value, assigned as often as the source assigns it; each intermediate result is a value
//! of its own. Conditions become branches: `&&`, `||` and `!` in a condition only choose targets, and make a bool only
//! where one is stored. Arrays are freed on every way out of their block, in the reverse order of their making.
//!
//! ```text
//! while (i < n) { i += 1; }   →   b0: jump b1
//!                                 b1: ; while.cond      b2: ; while.body        b3: ; while.end
//!                                   %3 = bool %1 < %2     %1 = int %1 + 1         return
//!                                   branch %3 ? b2 : b3   jump b1
//! ```
//!
//! **in**: HIR with its invariants. **out**: a program in [`Form::Variables`]: what no control reaches stands in blocks of
//! [`Role::Dead`], and a function without a value returns at its end. Cost:
//! linear. Chains of operands and of `else if` are walked in loops; recursion is as deep as the source nests.

mod exprs;
mod stmts;

use crate::hir;
use crate::ir::types::{
    Block, BlockData, Edge, Form, FuncId, Function, Op, Operand, Program, Role, Terminator, Type, Value, Variable,
    VariableData,
};
use crate::semantics::Scalar;
use crate::support::span::Span;
use cranelift_entity::{EntityRef, PrimaryMap, SecondaryMap};

/// Builds the IR of a program.
pub fn run(program: &hir::Program) -> Program {
    let mut functions: PrimaryMap<FuncId, Function> = PrimaryMap::with_capacity(program.functions.len());
    for id in program.functions.keys() {
        functions.push(build_function(program, id));
    }
    Program { functions, entry: program.entry, strings: program.strings.clone(), positions: program.positions.clone() }
}

fn build_function(program: &hir::Program, id: FuncId) -> Function {
    let data = &program.functions[id];
    let mut function = Function::new(data.name.clone(), Form::Variables);
    function.span = data.span;
    function.result = data.result;
    let mut values: PrimaryMap<Variable, Value> = PrimaryMap::with_capacity(data.variables.len());
    for variable in data.variables.values() {
        let ty = ir_type(variable.ty);
        let id = function.variables.push(VariableData { name: variable.name.clone(), ty, span: variable.span });
        values.push(function.make_value(ty, Some(id)));
    }
    function.params = data.params.iter().map(|param| values[*param]).collect();
    let entry = function.make_block(Role::Entry);
    function.layout.push(entry);
    let mut builder =
        Builder { program, function, values, block: entry, live: Vec::new(), loops: Vec::new(), reached: true };
    builder.stmts(&data.body);
    if builder.reached {
        let term = if data.result.is_some() { Terminator::Unreachable } else { Terminator::Return(None) };
        builder.end(term, data.end);
    }
    number_in_order(&mut builder.function);
    builder.function
}

/// Numbers the blocks in the order of the layout, so that listings read well. What never came into it is forgotten.
fn number_in_order(function: &mut Function) {
    let mut numbers: SecondaryMap<Block, Block> = SecondaryMap::with_default(Block::from_u32(0));
    for (index, block) in function.layout.iter().enumerate() {
        numbers[*block] = Block::new(index);
    }
    let mut blocks = PrimaryMap::with_capacity(function.layout.len());
    let layout = std::mem::take(&mut function.layout);
    for block in layout {
        let mut data = std::mem::replace(
            &mut function.blocks[block],
            BlockData {
                params: Vec::new(),
                insts: Vec::new(),
                term: Terminator::Unreachable,
                term_span: Span::NONE,
                role: Role::Other,
            },
        );
        for edge in data.term.edges_mut() {
            edge.target = numbers[edge.target];
        }
        function.layout.push(blocks.push(data));
    }
    function.blocks = blocks;
}

fn ir_type(ty: hir::Type) -> Type {
    match ty {
        hir::Type::Scalar(scalar) => Type::Scalar(scalar),
        hir::Type::Array(element) => Type::Array(element),
    }
}

/// A loop around the statement at hand.
struct Loop {
    cond: Block,
    end: Block,
    /// How many arrays live outside of it.
    live: usize,
    /// Has it a `break`?
    has_break: bool,
}

struct Builder<'a> {
    program: &'a hir::Program,
    function: Function,
    /// The value of each variable.
    values: PrimaryMap<Variable, Value>,
    /// The block that is being filled.
    block: Block,
    /// The arrays that live here and that this function has made, oldest first.
    live: Vec<Value>,
    /// The loops around, innermost last.
    loops: Vec<Loop>,
    /// Is the block that is being filled still without its end?
    reached: bool,
}

impl Builder<'_> {
    /// Appends an instruction that gives nothing.
    fn emit(&mut self, op: Op, span: Span) {
        let inst = self.function.make_inst(op, None, span);
        self.function.blocks[self.block].insts.push(inst);
    }

    /// Appends an instruction that assigns `result`.
    fn emit_to(&mut self, result: Value, op: Op, span: Span) {
        let inst = self.function.make_inst(op, Some(result), span);
        self.function.blocks[self.block].insts.push(inst);
    }

    /// Appends an instruction with a value of its own.
    fn emit_new(&mut self, ty: Scalar, op: Op, span: Span) -> Operand {
        let result = self.function.make_value(Type::Scalar(ty), None);
        self.emit_to(result, op, span);
        Operand::Value(result)
    }

    /// Ends the block that is being filled.
    fn end(&mut self, term: Terminator, span: Span) {
        let block = &mut self.function.blocks[self.block];
        block.term = term;
        block.term_span = span;
    }

    /// A block, not yet in the layout.
    fn make(&mut self, role: Role) -> Block {
        self.function.make_block(role)
    }

    /// Goes on in a block, which follows all others.
    fn start(&mut self, block: Block) {
        self.function.layout.push(block);
        self.block = block;
        self.reached = true;
    }

    fn jump(&mut self, target: Block, span: Span) {
        self.end(Terminator::Jump(Edge::to(target)), span);
    }

    /// Frees all but the first `keep` arrays that live here; on the way that goes on they still live.
    fn free_down_to(&mut self, keep: usize, span: Span) {
        for index in (keep..self.live.len()).rev() {
            let array = self.live[index];
            self.emit(Op::Free(Operand::Value(array)), span);
        }
    }
}

#[cfg(test)]
mod tests;
