//! The types of the HIR: functions of statements over expressions, in flat arenas, with names and types resolved.
//!
//! ```text
//! { let x = 1; x += y; }   →   { let x.1: int = 1; x.1 = x.1 + y; }
//! ```
//!
//! Invariants: an expression has the type that its place needs; `break` and `continue` stand in loops; a function with a
//! result returns on every path; every call has as many arguments as its function has parameters, of their types; an
//! array variable is made by [`StmtKind::LetArray`] or is a parameter. Operands are evaluated left to right.

use crate::semantics::{BinaryOp, CompareOp, Scalar, UnaryOp};
pub use crate::support::ids::{FuncId, StrId, Variable};
use crate::support::span::{Positions, Span};
use cranelift_entity::{PrimaryMap, entity_impl};

/// An expression, within its program.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ExprId(u32);
entity_impl!(ExprId, "expr");

/// A statement, within its program.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StmtId(u32);
entity_impl!(StmtId, "stmt");

/// The type of a variable.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Type {
    /// `int` or `bool`.
    Scalar(Scalar),
    /// `[int]` or `[bool]`.
    Array(Scalar),
}

impl std::fmt::Display for Type {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Type::Scalar(scalar) => write!(f, "{scalar}"),
            Type::Array(element) => write!(f, "[{element}]"),
        }
    }
}

/// A whole program.
#[derive(Clone, Debug)]
pub struct Program {
    /// All functions, in the order of the source, and the program's body.
    pub functions: PrimaryMap<FuncId, Function>,
    /// The body: its statements in order. It has no parameters and no result, and is named `main`.
    pub entry: FuncId,
    /// All statements.
    pub stmts: PrimaryMap<StmtId, Stmt>,
    /// All expressions.
    pub exprs: PrimaryMap<ExprId, Expr>,
    /// The strings of `print`.
    pub strings: PrimaryMap<StrId, String>,
    /// Where its spans are in the source.
    pub positions: Positions,
}

/// A function.
#[derive(Clone, Debug)]
pub struct Function {
    /// Its name, unique in listings: a function that the source calls `main` is `main.1`.
    pub name: String,
    /// Where its name stands.
    pub span: Span,
    /// Its parameters, which are its first variables.
    pub params: Vec<Variable>,
    /// What it returns.
    pub result: Option<Scalar>,
    /// Its variables.
    pub variables: PrimaryMap<Variable, VariableData>,
    /// Its statements.
    pub body: Vec<StmtId>,
    /// Where its last `}` stands, or the end of the file.
    pub end: Span,
}

/// A variable.
#[derive(Clone, Debug)]
pub struct VariableData {
    /// Its name, unique in the function: the source's, with `.1`, `.2` … where it recurs.
    pub name: String,
    /// Its type.
    pub ty: Type,
    /// Where it is declared.
    pub span: Span,
}

/// An expression.
#[derive(Clone, Debug)]
pub struct Expr {
    /// What it is.
    pub kind: ExprKind,
    /// Its type. A call of a function without a result has `int` here; only [`StmtKind::Expr`] has such a call.
    pub ty: Scalar,
    /// Where it stands: of what may trap, the span starts at the place that the message names (the operator of a
    /// division, the `[` of an index, `read`); of others, it is the expression's.
    pub span: Span,
}

/// An argument of a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Arg {
    /// The value of an expression.
    Value(ExprId),
    /// An array, by reference.
    Array(Variable),
}

/// `&&` or `||`: the right side is evaluated only when needed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum LogicOp {
    And,
    Or,
}

/// What an expression is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ExprKind {
    /// A number.
    Int(i64),
    /// `true` or `false`.
    Bool(bool),
    /// The value of a scalar variable.
    Variable(Variable),
    /// A prefix operation.
    Unary { op: UnaryOp, arg: ExprId },
    /// An operation on two operands of the type of the expression.
    Binary { op: BinaryOp, left: ExprId, right: ExprId },
    /// A comparison of two operands of one type.
    Compare { op: CompareOp, left: ExprId, right: ExprId },
    /// `&&` or `||`.
    Logic { op: LogicOp, left: ExprId, right: ExprId },
    /// A call.
    Call { callee: FuncId, args: Vec<Arg> },
    /// `a[i]`: the index, then the check, then the load.
    Index { array: Variable, index: ExprId },
    /// `len(a)`
    Len(Variable),
    /// `read()`
    Read,
    /// `eof()`
    Eof,
}

/// A statement.
#[derive(Clone, Debug)]
pub struct Stmt {
    /// What it is.
    pub kind: StmtKind,
    /// Where it stands: of what may trap, the span starts at the place that the message names (the `[` of an array
    /// literal or of an element assigned to, `assert`); of others, it is the statement's.
    pub span: Span,
}

/// How an array begins.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ArrayInit {
    /// `[value; len]`: the value is evaluated first.
    Repeat { value: ExprId, len: ExprId },
    /// `[e1, e2]`: all elements are evaluated, then the array is made.
    List(Vec<ExprId>),
}

/// An argument of `print`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PrintArg {
    /// The value of an expression.
    Value(ExprId),
    /// A string.
    Str(StrId),
}

/// A condition and what is done where it holds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Arm {
    /// The condition.
    pub cond: ExprId,
    /// What is done.
    pub body: Vec<StmtId>,
}

/// What a statement is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum StmtKind {
    /// A new scalar variable.
    Let { variable: Variable, value: ExprId },
    /// A new array, which lives until the block around is left.
    LetArray { variable: Variable, element: Scalar, init: ArrayInit },
    /// `x = e`; `x += e` is `x = x + e`.
    Assign { variable: Variable, value: ExprId },
    /// `a[i] = e`: the index, the value, the check, the store.
    Store { array: Variable, index: ExprId, value: ExprId },
    /// `a[i] op= e`: the index, the check, the load, the value, the operation (which may trap at `op_span`), the store.
    Update { array: Variable, index: ExprId, op: BinaryOp, op_span: Span, value: ExprId },
    /// `if … else if … else …`
    If { arms: Vec<Arm>, els: Option<Vec<StmtId>> },
    /// `while`. `endless` says that the condition is the literal `true`.
    While { cond: ExprId, body: Vec<StmtId>, endless: bool },
    /// `break`
    Break,
    /// `continue`
    Continue,
    /// `return`, with a value exactly in functions with a result.
    Return(Option<ExprId>),
    /// `print`: all arguments are evaluated before any is printed.
    Print(Vec<PrintArg>),
    /// `assert`
    Assert(ExprId),
    /// A call, whose value is dropped if it has one.
    Expr(ExprId),
    /// `{ … }`
    Block(Vec<StmtId>),
}
