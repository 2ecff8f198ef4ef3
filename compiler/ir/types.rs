//! The types of the IR: functions of blocks of instructions over values, in one of five forms.
//!
//! A [`Function`] keeps blocks, instructions and values in dense maps keyed by ids that are never reused; what a pass
//! removes leaves its record behind, and a value that a pass replaces names its replacement. A φ is a block parameter,
//! its operands are arguments on the [`Edge`] in the predecessor's terminator: two edges to one block stay apart, and
//! that all φs of a block read at once is visible in the type (as in Cranelift and MLIR).
//!
//! Forms, in the order of the pipeline (see [`Form`]): over variables (a value may be assigned many times, no φs) → SSA →
//! SSA with split edges → parallel copies (φs gone, each edge's copies one instruction) → sequenced copies.
//!
//! Invariants: every block in `layout` ends in its terminator; the entry block is `layout[0]` and has no predecessors and
//! no parameters (the function's parameters are `params`); every id that an instruction in `layout` names exists.
//! `verify` checks them, and what each form forbids. Cost: an instruction is about 80 bytes plus its operand lists.

use crate::semantics::{BinaryOp, CompareOp, Scalar, UnaryOp};
pub use crate::support::ids::{Block, FuncId, Inst, StrId, Value, Variable};
use crate::support::span::{Positions, Span};
use cranelift_entity::{PrimaryMap, packed_option::PackedOption};
use rustc_hash::FxHashMap;

/// The type of a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord)]
pub enum Type {
    /// `int` or `bool`.
    Scalar(Scalar),
    /// A reference to an array: the address of its first element; its length stands in the 8 bytes before it.
    Array(Scalar),
}

impl Type {
    /// The type `int`.
    pub const INT: Type = Type::Scalar(Scalar::Int);
    /// The type `bool`.
    pub const BOOL: Type = Type::Scalar(Scalar::Bool);
}

impl std::fmt::Display for Type {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Type::Scalar(scalar) => write!(f, "{scalar}"),
            Type::Array(element) => write!(f, "[{element}]"),
        }
    }
}

/// What an instruction reads: a value, or a constant written in place.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord)]
pub enum Operand {
    Value(Value),
    Int(i64),
    Bool(bool),
}

impl Operand {
    /// The value, unless it is a constant.
    pub fn value(self) -> Option<Value> {
        match self {
            Operand::Value(value) => Some(value),
            Operand::Int(_) | Operand::Bool(_) => None,
        }
    }

    /// The constant as a register holds it (bools as 0 and 1), unless it is a value.
    pub fn constant(self) -> Option<i64> {
        match self {
            Operand::Value(_) => None,
            Operand::Int(value) => Some(value),
            Operand::Bool(value) => Some(i64::from(value)),
        }
    }

    /// The constant of a scalar type that a register holds as `bits`.
    pub fn from_constant(ty: Scalar, bits: i64) -> Operand {
        match ty {
            Scalar::Int => Operand::Int(bits),
            Scalar::Bool => Operand::Bool(bits != 0),
        }
    }
}

impl From<Value> for Operand {
    fn from(value: Value) -> Operand {
        Operand::Value(value)
    }
}

/// An argument of `print`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum PrintArg {
    /// A value or constant; its type says how it prints.
    Operand(Operand),
    /// A literal string of the program.
    Str(StrId),
}

/// What an instruction does. `effects` tells for each what it may do besides giving a result.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Op {
    /// `%1 = copy %2`: the value itself.
    Copy(Operand),
    /// `parallel %1 = %2, %3 = 4`: all sources are read before any destination is written. Only in
    /// [`Form::ParallelCopies`], where it stands first or last in a block. (Edge splitting puts it on edges: last in a
    /// block that jumps, or first in a block with one predecessor.) Has no result of its own; destinations are distinct.
    Parallel(Vec<(Value, Operand)>),
    /// `%1 = int %2 + %3` (`int` or `bool` is the type of operands and result). `/` and `%` trap on zero.
    Binary { op: BinaryOp, ty: Scalar, args: [Operand; 2] },
    /// `%1 = bool %2 < %3`; both operands of one type, `bool` only with `==` and `!=`.
    Compare { op: CompareOp, args: [Operand; 2] },
    /// `%1 = int - %2`, `%1 = int ~ %2`, `%1 = bool ! %2`, `%1 = int of %2`.
    Unary { op: UnaryOp, arg: Operand },
    /// `%1 = select %2 ? %3 : %4`: the second or the third operand; both are evaluated, so neither may trap.
    Select { cond: Operand, args: [Operand; 2] },
    /// `%1 = array int [%2; %3] @4:9`: a new array of `len` elements, all `init`. Traps on a negative length and
    /// when memory is out. The array lives until its `free`.
    Array { element: Scalar, init: Operand, len: Operand },
    /// `free %1`: ends the life of an array. Arrays end in the reverse order of their making, within a call.
    Free(Operand),
    /// `%1 = len %2`: never changes during an array's life.
    Len(Operand),
    /// `bounds %1 < %2 @3:4`: traps unless `0 <= index < len`; `len` is a length, so not negative.
    Bounds { index: Operand, len: Operand },
    /// `%1 = load int %2[%3]`. The index must be in bounds: a dominating `bounds` says so.
    Load { element: Scalar, array: Operand, index: Operand },
    /// `store int %2[%3] = %4`.
    Store { element: Scalar, array: Operand, index: Operand, value: Operand },
    /// `%1 = call gcd(%2, 3)` or `call fill(%1)`.
    Call { callee: FuncId, args: Vec<Operand> },
    /// `%1 = read @2:5`: the next integer of standard input; traps.
    Read,
    /// `%1 = eof`: is only white space left?
    Eof,
    /// `print %1, "text", true`: one line.
    Print(Vec<PrintArg>),
    /// `assert %1 @2:3`: traps unless true.
    Assert(Operand),
}

/// An instruction with its result and its place in the source.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InstData {
    /// What it does.
    pub op: Op,
    /// The value it defines.
    pub result: PackedOption<Value>,
    /// Where it comes from. What may trap reports the start of this span: the operator, the `[`, `assert`, `read`.
    pub span: Span,
}

/// Control passes along an edge to `target`, whose parameters (its φs) become `args`, all at once.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Edge {
    /// The block that control goes to.
    pub target: Block,
    /// One operand for each parameter of the target.
    pub args: Vec<Operand>,
}

impl Edge {
    /// An edge without arguments.
    pub fn to(target: Block) -> Edge {
        Edge { target, args: Vec::new() }
    }
}

/// How a block ends.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Terminator {
    /// `jump b1`
    Jump(Edge),
    /// `branch %1 ? b2 : b3`; both edges may go to one block.
    Branch { cond: Operand, then: Edge, els: Edge },
    /// `return` or `return %1`
    Return(Option<Operand>),
    /// `unreachable`: control cannot come here (the end of a function that returns on every path).
    Unreachable,
}

impl Terminator {
    /// The edges out, in order: for a branch first `then`, then `els`.
    pub fn edges(&self) -> impl DoubleEndedIterator<Item = &Edge> {
        let (first, second) = match self {
            Terminator::Jump(edge) => (Some(edge), None),
            Terminator::Branch { then, els, .. } => (Some(then), Some(els)),
            Terminator::Return(_) | Terminator::Unreachable => (None, None),
        };
        first.into_iter().chain(second)
    }

    /// The edges out, to change.
    pub fn edges_mut(&mut self) -> impl DoubleEndedIterator<Item = &mut Edge> {
        let (first, second) = match self {
            Terminator::Jump(edge) => (Some(edge), None),
            Terminator::Branch { then, els, .. } => (Some(then), Some(els)),
            Terminator::Return(_) | Terminator::Unreachable => (None, None),
        };
        first.into_iter().chain(second)
    }

    /// The operands that the terminator itself reads: the condition or the returned value, not the edges' arguments.
    pub fn operand(&self) -> Option<Operand> {
        match self {
            Terminator::Branch { cond, .. } => Some(*cond),
            Terminator::Return(operand) => *operand,
            Terminator::Jump(_) | Terminator::Unreachable => None,
        }
    }

    /// Calls `visit` on every operand: the condition or returned value, then the arguments of each edge in order.
    pub fn for_each_operand(&self, mut visit: impl FnMut(Operand)) {
        if let Some(operand) = self.operand() {
            visit(operand);
        }
        for edge in self.edges() {
            edge.args.iter().for_each(|arg| visit(*arg));
        }
    }

    /// Calls `change` on every operand, in the same order.
    pub fn for_each_operand_mut(&mut self, mut change: impl FnMut(&mut Operand)) {
        match self {
            Terminator::Branch { cond: operand, .. } | Terminator::Return(Some(operand)) => change(operand),
            Terminator::Jump(_) | Terminator::Return(None) | Terminator::Unreachable => {}
        }
        for edge in self.edges_mut() {
            edge.args.iter_mut().for_each(&mut change);
        }
    }
}

/// What a block is in the source, for its comment in listings.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Role {
    Entry,
    WhileCond,
    WhileBody,
    WhileEnd,
    IfThen,
    IfElse,
    IfEnd,
    /// The right side of `&&` or `||`.
    LogicRight,
    LogicEnd,
    /// Code behind a `return`, `break` or `continue`.
    Dead,
    /// Made by splitting a critical edge.
    Split,
    /// The block in front of a loop.
    Preheader,
    /// The end of an inlined function.
    InlineEnd,
    /// Came from IR text without a role, or made by a pass.
    Other,
}

impl Role {
    /// All of them, for the parser.
    pub const ALL: [Role; 14] = [
        Role::Entry,
        Role::WhileCond,
        Role::WhileBody,
        Role::WhileEnd,
        Role::IfThen,
        Role::IfElse,
        Role::IfEnd,
        Role::LogicRight,
        Role::LogicEnd,
        Role::Dead,
        Role::Split,
        Role::Preheader,
        Role::InlineEnd,
        Role::Other,
    ];

    /// Its name in the block's comment.
    pub fn name(self) -> &'static str {
        match self {
            Role::Entry => "entry",
            Role::WhileCond => "while.cond",
            Role::WhileBody => "while.body",
            Role::WhileEnd => "while.end",
            Role::IfThen => "if.then",
            Role::IfElse => "if.else",
            Role::IfEnd => "if.end",
            Role::LogicRight => "logic.right",
            Role::LogicEnd => "logic.end",
            Role::Dead => "dead",
            Role::Split => "split",
            Role::Preheader => "preheader",
            Role::InlineEnd => "inline.end",
            Role::Other => "block",
        }
    }
}

/// A basic block.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BlockData {
    /// Its φs. All are assigned at once, on the edge.
    pub params: Vec<Value>,
    /// Its instructions, in order of execution.
    pub insts: Vec<Inst>,
    /// How it ends.
    pub term: Terminator,
    /// Where the terminator comes from in the source.
    pub term_span: Span,
    /// What it is in the source.
    pub role: Role,
}

/// A value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ValueData {
    /// Its type.
    pub ty: Type,
    /// The source variable that it is (a version of).
    pub variable: PackedOption<Variable>,
    /// What a pass has replaced it by. The replacement may have been replaced in turn.
    pub replaced_by: Option<Operand>,
    /// The value that was assigned many times before SSA construction made this one of its versions.
    pub version_of: PackedOption<Value>,
}

/// A source variable.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VariableData {
    /// Its name, unique in the function: the source's, with `.1`, `.2` … where the name recurs.
    pub name: String,
    /// Its type.
    pub ty: Type,
    /// Where it is declared.
    pub span: Span,
}

/// Where a copy comes from, for those that stand for φ operands or break a cycle.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum CopyOrigin {
    /// The operand of the φ `phi` on the edge number `edge` (in [`Terminator::edges`] order, before any splitting) out of
    /// `pred`.
    Phi { phi: Value, pred: Block, edge: u8 },
    /// Saves what `victim` holds before it is overwritten, to break a cycle on that edge.
    Rescue { victim: Value, pred: Block, edge: u8 },
}

/// The form that a function is in; each pass says which it takes and gives.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord)]
pub enum Form {
    /// Values stand for variables and may be assigned many times; no φs.
    Variables,
    /// Static single assignment; φs are block parameters.
    Ssa,
    /// SSA, and no critical edge carries arguments.
    SplitSsa,
    /// The φs have become one parallel copy per edge; values may be assigned many times.
    ParallelCopies,
    /// The parallel copies have become sequences of copies. Out of SSA.
    Sequenced,
}

impl Form {
    /// All of them, in the order of the pipeline.
    pub const ALL: [Form; 5] = [Form::Variables, Form::Ssa, Form::SplitSsa, Form::ParallelCopies, Form::Sequenced];

    /// Its name in IR text: a program's first line is `form ssa`; without one the text is SSA if it has a φ or each
    /// value has one definition, else over variables.
    pub fn name(self) -> &'static str {
        match self {
            Form::Variables => "variables",
            Form::Ssa => "ssa",
            Form::SplitSsa => "split-ssa",
            Form::ParallelCopies => "parallel-copies",
            Form::Sequenced => "sequenced",
        }
    }

    /// Has every value one definition?
    pub fn is_ssa(self) -> bool {
        matches!(self, Form::Ssa | Form::SplitSsa)
    }
}

/// A function.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Function {
    /// Its name in listings, unique in the program. The program's body is `main`.
    pub name: String,
    /// Where its name stands in the source.
    pub span: Span,
    /// The form it is in.
    pub form: Form,
    /// Its parameters, defined on entry.
    pub params: Vec<Value>,
    /// What it returns.
    pub result: Option<Scalar>,
    /// The blocks that exist, in listing order; the entry first.
    pub layout: Vec<Block>,
    /// Records of all blocks ever made.
    pub blocks: PrimaryMap<Block, BlockData>,
    /// Records of all instructions ever made.
    pub insts: PrimaryMap<Inst, InstData>,
    /// All values ever made.
    pub values: PrimaryMap<Value, ValueData>,
    /// The source's variables.
    pub variables: PrimaryMap<Variable, VariableData>,
    /// Where copies come from, for those that leaving SSA made.
    pub copy_origins: FxHashMap<Inst, CopyOrigin>,
}

impl Function {
    /// A function without blocks.
    pub fn new(name: impl Into<String>, form: Form) -> Function {
        Function {
            name: name.into(),
            span: Span::NONE,
            form,
            params: Vec::new(),
            result: None,
            layout: Vec::new(),
            blocks: PrimaryMap::new(),
            insts: PrimaryMap::new(),
            values: PrimaryMap::new(),
            variables: PrimaryMap::new(),
            copy_origins: FxHashMap::default(),
        }
    }

    /// The block that control enters.
    pub fn entry(&self) -> Block {
        self.layout[0]
    }

    /// A new block, ended by `unreachable` and not yet in the layout.
    pub fn make_block(&mut self, role: Role) -> Block {
        self.blocks.push(BlockData {
            params: Vec::new(),
            insts: Vec::new(),
            term: Terminator::Unreachable,
            term_span: Span::NONE,
            role,
        })
    }

    /// A new value.
    pub fn make_value(&mut self, ty: Type, variable: Option<Variable>) -> Value {
        self.values.push(ValueData { ty, variable: variable.into(), replaced_by: None, version_of: None.into() })
    }

    /// A new instruction, not yet in a block.
    pub fn make_inst(&mut self, op: Op, result: Option<Value>, span: Span) -> Inst {
        self.insts.push(InstData { op, result: result.into(), span })
    }

    /// The type of an operand.
    pub fn type_of(&self, operand: Operand) -> Type {
        match operand {
            Operand::Value(value) => self.values[value].ty,
            Operand::Int(_) => Type::INT,
            Operand::Bool(_) => Type::BOOL,
        }
    }

    /// Notes that `old` is replaced by `new` everywhere; the caller rewrites the uses.
    pub fn note_replaced(&mut self, old: Value, new: Operand) {
        self.values[old].replaced_by = Some(new);
    }

    /// The variable whose version the value is.
    pub fn variable_of(&self, value: Value) -> Option<&VariableData> {
        self.values[value].variable.expand().map(|variable| &self.variables[variable])
    }
}

/// A program: its functions, of which `entry` is the body, and its string literals.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Program {
    /// All functions.
    pub functions: PrimaryMap<FuncId, Function>,
    /// The program's body: no parameters, no result.
    pub entry: FuncId,
    /// The string literals of `print`.
    pub strings: PrimaryMap<StrId, String>,
    /// Where its spans are in the source, for run-time errors.
    pub positions: Positions,
}

impl Op {
    /// Calls `visit` on every operand read, in order.
    pub fn for_each_operand(&self, mut visit: impl FnMut(Operand)) {
        match self {
            Op::Copy(a) | Op::Unary { arg: a, .. } | Op::Free(a) | Op::Len(a) | Op::Assert(a) => visit(*a),
            Op::Parallel(copies) => copies.iter().for_each(|(_, source)| visit(*source)),
            Op::Binary { args, .. } | Op::Compare { args, .. } => args.iter().for_each(|arg| visit(*arg)),
            Op::Select { cond, args } => {
                visit(*cond);
                args.iter().for_each(|arg| visit(*arg));
            }
            Op::Array { init: a, len: b, .. }
            | Op::Bounds { index: a, len: b }
            | Op::Load { array: a, index: b, .. } => {
                visit(*a);
                visit(*b);
            }
            Op::Store { array, index, value, .. } => {
                visit(*array);
                visit(*index);
                visit(*value);
            }
            Op::Call { args, .. } => args.iter().for_each(|arg| visit(*arg)),
            Op::Read | Op::Eof => {}
            Op::Print(args) => {
                for arg in args {
                    match arg {
                        PrintArg::Operand(operand) => visit(*operand),
                        PrintArg::Str(_) => {}
                    }
                }
            }
        }
    }

    /// Calls `change` on every operand read, in the same order.
    pub fn for_each_operand_mut(&mut self, mut change: impl FnMut(&mut Operand)) {
        match self {
            Op::Copy(a) | Op::Unary { arg: a, .. } | Op::Free(a) | Op::Len(a) | Op::Assert(a) => change(a),
            Op::Parallel(copies) => copies.iter_mut().for_each(|(_, source)| change(source)),
            Op::Binary { args, .. } | Op::Compare { args, .. } => args.iter_mut().for_each(change),
            Op::Select { cond, args } => {
                change(cond);
                args.iter_mut().for_each(change);
            }
            Op::Array { init: a, len: b, .. }
            | Op::Bounds { index: a, len: b }
            | Op::Load { array: a, index: b, .. } => {
                change(a);
                change(b);
            }
            Op::Store { array, index, value, .. } => {
                change(array);
                change(index);
                change(value);
            }
            Op::Call { args, .. } => args.iter_mut().for_each(change),
            Op::Read | Op::Eof => {}
            Op::Print(args) => {
                for arg in args {
                    match arg {
                        PrintArg::Operand(operand) => change(operand),
                        PrintArg::Str(_) => {}
                    }
                }
            }
        }
    }
}

impl InstData {
    /// Calls `visit` on every value that the instruction defines.
    pub fn for_each_def(&self, mut visit: impl FnMut(Value)) {
        if let Op::Parallel(copies) = &self.op {
            copies.iter().for_each(|(destination, _)| visit(*destination));
        }
        if let Some(result) = self.result.expand() {
            visit(result);
        }
    }
}
