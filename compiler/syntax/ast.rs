//! The abstract syntax tree, as flat arenas: nodes are numbered, children are ids, lists are ranges of shared pools.
//!
//! Dropping, cloning and walking a tree never recurses, however deep the source nests. Parentheses leave no node: the
//! shape of the tree says what belongs together, and [`super::format`] puts parentheses back where they are needed.
//!
//! ```text
//! x = a + 2;   →   stmt0: assign x = expr2      expr0: a   expr1: 2   expr2: expr0 + expr1
//! ```
//!
//! Invariants: every id that a node names exists and was made before it. Cost: an expression is 32 bytes.

use crate::semantics::{BinaryOp, CompareOp, Scalar, UnaryOp};
use crate::support::ids::StrId;
use crate::support::intern::{Interner, Symbol};
use crate::support::span::Span;
use cranelift_entity::{PrimaryMap, entity_impl};

/// An expression.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ExprId(u32);
entity_impl!(ExprId, "expr");

/// A statement.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StmtId(u32);
entity_impl!(StmtId, "stmt");

/// A function as written.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FnId(u32);
entity_impl!(FnId, "fn");

/// A name where it stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Name {
    /// What it says.
    pub symbol: Symbol,
    /// Where it stands.
    pub span: Span,
}

/// A run of expressions in [`Ast::expr_lists`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ExprList {
    start: u32,
    len: u32,
}

/// A run of statements in [`Ast::stmt_lists`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StmtList {
    start: u32,
    len: u32,
}

/// A run of arms in [`Ast::arm_lists`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ArmList {
    start: u32,
    len: u32,
}

/// `&&` or `||`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum LogicOp {
    And,
    Or,
}

impl LogicOp {
    /// Its spelling.
    pub fn symbol(self) -> &'static str {
        match self {
            LogicOp::And => "&&",
            LogicOp::Or => "||",
        }
    }
}

/// An operator between two operands.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum InfixOp {
    /// `+ - * / % & | ^ << >>`
    Binary(BinaryOp),
    /// `== != < <= > >=`
    Compare(CompareOp),
    /// `&& ||`
    Logic(LogicOp),
}

impl InfixOp {
    /// Its spelling.
    pub fn symbol(self) -> &'static str {
        match self {
            InfixOp::Binary(op) => op.symbol(),
            InfixOp::Compare(op) => op.symbol(),
            InfixOp::Logic(op) => op.symbol(),
        }
    }

    /// How tightly it binds: 0 for `||` up to 8 for `* / %`.
    pub fn precedence(self) -> u8 {
        match self {
            InfixOp::Logic(LogicOp::Or) => 0,
            InfixOp::Logic(LogicOp::And) => 1,
            InfixOp::Compare(_) => 2,
            InfixOp::Binary(BinaryOp::Or) => 3,
            InfixOp::Binary(BinaryOp::Xor) => 4,
            InfixOp::Binary(BinaryOp::And) => 5,
            InfixOp::Binary(BinaryOp::Shl | BinaryOp::Shr) => 6,
            InfixOp::Binary(BinaryOp::Add | BinaryOp::Sub) => 7,
            InfixOp::Binary(BinaryOp::Mul | BinaryOp::Div | BinaryOp::Rem) => 8,
        }
    }
}

/// An expression with its place, from its first to its last token without surrounding parentheses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Expr {
    /// What it is.
    pub kind: ExprKind,
    /// Where it stands.
    pub span: Span,
}

/// What an expression is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ExprKind {
    /// A number or character.
    Int(i64),
    /// `true` or `false`.
    Bool(bool),
    /// A string; only an argument of `print` may be one.
    Str(StrId),
    /// A variable; the expression's span is the name's.
    Name(Symbol),
    /// `- ! ~`, or `int( )`. The span starts at the operator.
    Unary { op: UnaryOp, arg: ExprId },
    /// An operator, whose first byte is `at`, between two operands.
    Infix { op: InfixOp, at: u32, left: ExprId, right: ExprId },
    /// `f(a, b)`, also of `len`, `read` and `eof`.
    Call { callee: Name, args: ExprList },
    /// `a[i]`; `bracket` is the offset of the `[`.
    Index { array: Name, bracket: u32, index: ExprId },
    /// `[a, b]`; only the whole initializer of a `let` may be one. The span starts at the `[`.
    ArrayList(ExprList),
    /// `[value; len]`; likewise.
    ArrayRepeat { value: ExprId, len: ExprId },
    /// Stands where a mistake has been reported already.
    Error,
}

/// A type as written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum TypeKind {
    /// `int` or `bool`.
    Scalar(Scalar),
    /// `[int]` or `[bool]`.
    Array(Scalar),
    /// Stands where a mistake has been reported already.
    Error,
}

impl std::fmt::Display for TypeKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            TypeKind::Scalar(scalar) => write!(f, "{scalar}"),
            TypeKind::Array(element) => write!(f, "[{element}]"),
            TypeKind::Error => f.write_str("?"),
        }
    }
}

/// A type where it stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TypeSyntax {
    /// What it says.
    pub kind: TypeKind,
    /// Where it stands.
    pub span: Span,
}

/// `{ … }`
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Block {
    /// The statements.
    pub stmts: StmtList,
    /// From `{` to `}`.
    pub span: Span,
}

/// A condition and what is done where it holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Arm {
    /// The condition.
    pub cond: ExprId,
    /// What is done.
    pub block: Block,
}

/// A statement with its place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stmt {
    /// What it is.
    pub kind: StmtKind,
    /// From its first to its last token.
    pub span: Span,
}

/// What a statement is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StmtKind {
    /// `let x: int = e;`
    Let { name: Name, ty: Option<TypeSyntax>, init: ExprId },
    /// `x = e;`, `a[i] += e;`: the operator (`=` or `+=`) starts at `at`. The target is a name, an element or an error.
    Assign { target: ExprId, op: Option<BinaryOp>, at: u32, value: ExprId },
    /// `if … else if … else …`: a list of arms, however long the chain.
    If { arms: ArmList, els: Option<Block> },
    /// `while c { … }`
    While { cond: ExprId, body: Block },
    /// `break;`
    Break,
    /// `continue;`
    Continue,
    /// `return;` `return e;`
    Return(Option<ExprId>),
    /// `print(…);`
    Print(ExprList),
    /// `assert(c);`
    Assert(ExprId),
    /// A call for its effect.
    Expr(ExprId),
    /// `{ … }`
    Block(Block),
    /// A function; only at the top level.
    Function(FnId),
    /// Stands where a mistake has been reported already.
    Error,
}

/// A parameter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Param {
    /// Its name.
    pub name: Name,
    /// Its type.
    pub ty: TypeSyntax,
}

/// A function as written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Function {
    /// Its name.
    pub name: Name,
    /// Its parameters.
    pub params: Vec<Param>,
    /// What it returns.
    pub result: Option<TypeSyntax>,
    /// Its body.
    pub body: Block,
    /// From `fn` to `}`.
    pub span: Span,
    /// Its heading has a mistake that has been reported: nothing is known of its parameters and result.
    pub broken: bool,
}

/// A whole file.
#[derive(Clone, Debug, Default)]
pub struct Ast {
    /// The functions and statements at the top level, in order; a function is a statement of that kind.
    pub items: Vec<StmtId>,
    /// All functions, in the order of their ends in the source.
    pub functions: PrimaryMap<FnId, Function>,
    /// All statements.
    pub stmts: PrimaryMap<StmtId, Stmt>,
    /// All expressions.
    pub exprs: PrimaryMap<ExprId, Expr>,
    /// The strings.
    pub strings: PrimaryMap<StrId, String>,
    /// The names.
    pub names: Interner,
    expr_lists: Vec<ExprId>,
    stmt_lists: Vec<StmtId>,
    arm_lists: Vec<Arm>,
}

impl Ast {
    /// A file without items.
    pub fn new() -> Ast {
        Ast::default()
    }

    /// Makes an expression.
    pub fn expr(&mut self, kind: ExprKind, span: Span) -> ExprId {
        self.exprs.push(Expr { kind, span })
    }

    /// Makes a statement.
    pub fn stmt(&mut self, kind: StmtKind, span: Span) -> StmtId {
        self.stmts.push(Stmt { kind, span })
    }

    /// Stores a list of expressions.
    pub fn make_exprs(&mut self, list: &[ExprId]) -> ExprList {
        let start = self.expr_lists.len() as u32;
        self.expr_lists.extend_from_slice(list);
        ExprList { start, len: list.len() as u32 }
    }

    /// Stores a list of statements.
    pub fn make_stmts(&mut self, list: &[StmtId]) -> StmtList {
        let start = self.stmt_lists.len() as u32;
        self.stmt_lists.extend_from_slice(list);
        StmtList { start, len: list.len() as u32 }
    }

    /// Stores the arms of an `if`.
    pub fn make_arms(&mut self, list: &[Arm]) -> ArmList {
        let start = self.arm_lists.len() as u32;
        self.arm_lists.extend_from_slice(list);
        ArmList { start, len: list.len() as u32 }
    }

    /// The expressions of a list.
    pub fn expr_list(&self, list: ExprList) -> &[ExprId] {
        &self.expr_lists[list.start as usize..(list.start + list.len) as usize]
    }

    /// The statements of a list.
    pub fn stmt_list(&self, list: StmtList) -> &[StmtId] {
        &self.stmt_lists[list.start as usize..(list.start + list.len) as usize]
    }

    /// The arms of a list.
    pub fn arm_list(&self, list: ArmList) -> &[Arm] {
        &self.arm_lists[list.start as usize..(list.start + list.len) as usize]
    }

    /// Calls `visit` on the children of an expression, left to right.
    pub fn for_each_child(&self, expr: ExprId, mut visit: impl FnMut(ExprId)) {
        match self.exprs[expr].kind {
            ExprKind::Int(_) | ExprKind::Bool(_) | ExprKind::Str(_) | ExprKind::Name(_) | ExprKind::Error => {}
            ExprKind::Unary { arg, .. } => visit(arg),
            ExprKind::Infix { left, right, .. } => {
                visit(left);
                visit(right);
            }
            ExprKind::Call { args, .. } | ExprKind::ArrayList(args) => {
                self.expr_list(args).iter().for_each(|arg| visit(*arg));
            }
            ExprKind::Index { index, .. } => visit(index),
            ExprKind::ArrayRepeat { value, len } => {
                visit(value);
                visit(len);
            }
        }
    }

    /// Appends the expression and all below it to `order`, children before parents and left before right, without
    /// recursion.
    pub fn postorder(&self, root: ExprId, order: &mut Vec<ExprId>) {
        // Parents before children and right before left, turned round.
        let first = order.len();
        let mut stack = vec![root];
        while let Some(expr) = stack.pop() {
            order.push(expr);
            self.for_each_child(expr, |child| stack.push(child));
        }
        order[first..].reverse();
    }
}
