//! What the grammar's productions do: make tree nodes, and report the mistakes that the grammar knows by name.

use super::ast::{
    Arm, Ast, Block, ExprId, ExprKind, FnId, Function, InfixOp, Name, Param, StmtId, StmtKind, TypeKind, TypeSyntax,
};
use crate::semantics::{BinaryOp, CompareOp, UnaryOp};
use crate::support::codes;
use crate::support::diagnostics::Diagnostic;
use crate::support::ids::StrId;
use crate::support::span::{Source, Span};
use rustc_hash::FxHashSet;

/// The tree in the making.
pub struct Actions<'s> {
    /// The tree.
    pub ast: Ast,
    /// The mistakes.
    pub diagnostics: Vec<Diagnostic>,
    source: &'s Source,
    /// The numbers 9223372036854775808 that no minus has been seen before yet.
    bare_minimums: Vec<ExprId>,
    /// Expressions that stand in parentheses, with those: what is no longer a statement or an array literal then.
    parenthesized: FxHashSet<ExprId>,
}

fn span(start: u32, end: u32) -> Span {
    Span { start, end }
}

impl<'s> Actions<'s> {
    /// An empty tree.
    pub fn new(source: &'s Source, ast: Ast, diagnostics: Vec<Diagnostic>) -> Actions<'s> {
        Actions { ast, diagnostics, source, bare_minimums: Vec::new(), parenthesized: FxHashSet::default() }
    }

    /// Forgets what an item that did not parse has reported: it will be parsed again.
    pub fn roll_back(&mut self, diagnostics: usize) {
        self.diagnostics.truncate(diagnostics);
        self.bare_minimums.clear();
        self.parenthesized.clear();
    }

    /// Ends an item that did parse.
    pub fn finish_item(&mut self, item: StmtId) {
        for expr in std::mem::take(&mut self.bare_minimums) {
            self.too_large(expr);
        }
        self.parenthesized.clear();
        self.ast.items.push(item);
    }

    fn report(&mut self, diagnostic: Diagnostic) {
        self.diagnostics.push(diagnostic);
    }

    fn text(&self, span: Span) -> &'s str {
        &self.source.text[span.range()]
    }

    fn span_of(&self, expr: ExprId) -> Span {
        self.ast.exprs[expr].span
    }

    // ---- Statements

    pub fn let_stmt(&mut self, l: u32, r: u32, name: Name, ty: Option<TypeSyntax>, init: ExprId) -> StmtId {
        self.ast.stmt(StmtKind::Let { name, ty, init }, span(l, r))
    }

    pub fn no_initializer(&mut self, l: u32, at: u32, r: u32, name: Name, ty: Option<TypeSyntax>) -> StmtId {
        let text = self.ast.names.text(name.symbol).to_string();
        let example = match ty.map(|ty| ty.kind) {
            None | Some(TypeKind::Error) => "a value",
            Some(TypeKind::Scalar(crate::semantics::Scalar::Int)) => "0",
            Some(TypeKind::Scalar(crate::semantics::Scalar::Bool)) => "false",
            Some(TypeKind::Array(_)) => "[]",
        };
        let diagnostic = Diagnostic::error(
            codes::MISSING_INITIALIZER,
            span(at, r),
            format!("`{text}` needs a value where it is declared"),
        )
        .label("expected `=` and a value")
        .also(name.span, "declared here");
        self.report(if example == "a value" {
            diagnostic.help(format!("write `let {text} = …;`"))
        } else {
            diagnostic.suggest("give it a first value", span(at, at), format!(" = {example}"))
        });
        let init = self.ast.expr(ExprKind::Error, span(at, at));
        self.ast.stmt(StmtKind::Let { name, ty, init }, span(l, r))
    }

    pub fn assign(&mut self, l: u32, r: u32, target: ExprId, at: u32, op: Option<BinaryOp>, value: ExprId) -> StmtId {
        let target_span = self.span_of(target);
        match self.ast.exprs[target].kind {
            ExprKind::Name(_) | ExprKind::Index { .. } | ExprKind::Error => {}
            ExprKind::Int(_)
            | ExprKind::Bool(_)
            | ExprKind::Str(_)
            | ExprKind::Unary { .. }
            | ExprKind::Infix { .. }
            | ExprKind::Call { .. }
            | ExprKind::ArrayList(_)
            | ExprKind::ArrayRepeat { .. } => {
                let sign = self.text(span(at, at + op.map_or(1, |op| op.symbol().len() as u32 + 1)));
                self.report(
                    Diagnostic::error(codes::BAD_TARGET, target_span, "this cannot be assigned to")
                        .label("neither a variable nor an element")
                        .also(span(at, at + sign.len() as u32), "the assignment")
                        .note("only a variable `x` or an element `a[i]` can stand on the left"),
                );
                self.ast.exprs[target].kind = ExprKind::Error;
            }
        }
        self.ast.stmt(StmtKind::Assign { target, op, at, value }, span(l, r))
    }

    pub fn expr_stmt(&mut self, l: u32, r: u32, expr: ExprId) -> StmtId {
        let place = self.span_of(expr);
        let kind = self.ast.exprs[expr].kind;
        let report = |message: &str| Diagnostic::error(codes::NOT_A_STATEMENT, place, message);
        let diagnostic = match kind {
            ExprKind::Call { .. } => return self.ast.stmt(StmtKind::Expr(expr), span(l, r)),
            ExprKind::Error => return self.ast.stmt(StmtKind::Error, span(l, r)),
            ExprKind::Infix { op: InfixOp::Compare(CompareOp::Eq), at, left, .. }
                if matches!(self.ast.exprs[left].kind, ExprKind::Name(_) | ExprKind::Index { .. }) =>
            {
                report("this comparison is no statement: its answer would be lost").label("a comparison").suggest(
                    "an assignment has one `=`",
                    span(at, at + 2),
                    "=",
                )
            }
            ExprKind::Name(symbol) => {
                let text = self.ast.names.text(symbol);
                report("a name alone is no statement")
                    .label("does nothing")
                    .help(format!("a function is called by `{text}()`"))
            }
            ExprKind::Unary { op: UnaryOp::IntOfBool, .. } => {
                report("`int(…)` is no statement: its value would be lost").label("does nothing")
            }
            ExprKind::Str(_) => {
                report("a string is no statement").label("does nothing").help("print it by `print(…);`")
            }
            ExprKind::Int(_)
            | ExprKind::Bool(_)
            | ExprKind::Unary { .. }
            | ExprKind::Infix { .. }
            | ExprKind::Index { .. }
            | ExprKind::ArrayList(_)
            | ExprKind::ArrayRepeat { .. } => report("this expression is no statement: its value would be lost")
                .label("does nothing")
                .help("keep the value by `let x = …;`, or print it by `print(…);`"),
        };
        self.report(diagnostic);
        self.ast.stmt(StmtKind::Error, span(l, r))
    }

    pub fn no_increment(&mut self, l: u32, at: u32, r: u32, expr: ExprId) -> StmtId {
        let sign = span(at, at + 2);
        self.report(
            Diagnostic::error(codes::INCREMENT, sign, "there is no `++`").label("no operator of Atlas").suggest(
                "add 1",
                span(self.span_of(expr).end, at + 2),
                " += 1",
            ),
        );
        self.ast.stmt(StmtKind::Error, span(l, r))
    }

    pub fn if_stmt(&mut self, l: u32, r: u32, arms: Vec<Arm>, els: Option<Block>) -> StmtId {
        let arms = self.ast.make_arms(&arms);
        self.ast.stmt(StmtKind::If { arms, els }, span(l, r))
    }

    pub fn while_stmt(&mut self, l: u32, r: u32, cond: ExprId, body: Block) -> StmtId {
        self.ast.stmt(StmtKind::While { cond, body }, span(l, r))
    }

    pub fn break_stmt(&mut self, l: u32, r: u32) -> StmtId {
        self.ast.stmt(StmtKind::Break, span(l, r))
    }

    pub fn continue_stmt(&mut self, l: u32, r: u32) -> StmtId {
        self.ast.stmt(StmtKind::Continue, span(l, r))
    }

    pub fn return_stmt(&mut self, l: u32, r: u32, value: Option<ExprId>) -> StmtId {
        self.ast.stmt(StmtKind::Return(value), span(l, r))
    }

    pub fn print_stmt(&mut self, l: u32, r: u32, args: Vec<ExprId>) -> StmtId {
        let args = self.ast.make_exprs(&args);
        self.ast.stmt(StmtKind::Print(args), span(l, r))
    }

    pub fn assert_stmt(&mut self, l: u32, open: u32, close: u32, r: u32, args: Vec<ExprId>) -> StmtId {
        if let [cond] = args[..] {
            return self.ast.stmt(StmtKind::Assert(cond), span(l, r));
        }
        let place = if args.is_empty() { span(open, close + 1) } else { self.span_of(args[1]) };
        self.report(
            Diagnostic::error(
                codes::ARGUMENT_COUNT,
                place,
                format!("`assert` takes one condition, and {} are given", args.len()),
            )
            .label(if args.is_empty() { "no condition" } else { "one too many" }),
        );
        self.ast.stmt(StmtKind::Error, span(l, r))
    }

    pub fn block_stmt(&mut self, l: u32, r: u32, block: Block) -> StmtId {
        self.ast.stmt(StmtKind::Block(block), span(l, r))
    }

    pub fn no_empty_statement(&mut self, l: u32, r: u32) -> StmtId {
        self.report(
            Diagnostic::error(codes::EMPTY_STATEMENT, span(l, r), "there is no statement before this `;`")
                .label("ends nothing")
                .suggest("remove it", span(l, r), ""),
        );
        self.ast.stmt(StmtKind::Error, span(l, r))
    }

    pub fn function_stmt(&mut self, l: u32, r: u32, function: FnId) -> StmtId {
        self.ast.stmt(StmtKind::Function(function), span(l, r))
    }

    pub fn block(&mut self, l: u32, r: u32, stmts: Vec<StmtId>) -> Block {
        for stmt in &stmts {
            if let StmtKind::Function(function) = self.ast.stmts[*stmt].kind {
                let name = self.ast.functions[function].name;
                let text = self.ast.names.text(name.symbol);
                let diagnostic =
                    Diagnostic::error(codes::NESTED_FUNCTION, name.span, format!("`{text}` is defined inside a block"))
                        .label("a function stands at the top level")
                        .help("move it out of the block: functions may be called before they stand in the file");
                self.diagnostics.push(diagnostic);
            }
        }
        Block { stmts: self.ast.make_stmts(&stmts), span: span(l, r) }
    }

    // ---- Functions and types

    #[allow(clippy::too_many_arguments)] // One for each part of the heading.
    pub fn function(
        &mut self,
        l: u32,
        r: u32,
        name: Name,
        params: Vec<Param>,
        result: Option<TypeSyntax>,
        body: Block,
        broken: bool,
    ) -> FnId {
        self.ast.functions.push(Function { name, params, result, body, span: span(l, r), broken })
    }

    pub fn no_trailing_comma(&mut self, at: u32, what: &str) {
        self.report(
            Diagnostic::error(
                codes::TRAILING_COMMA,
                span(at, at + 1),
                format!("the last {what} has no comma behind it"),
            )
            .label("one comma too many")
            .suggest("remove it", span(at, at + 1), ""),
        );
    }

    pub fn no_parameter_type(&mut self, name: Name) -> Param {
        let text = self.ast.names.text(name.symbol).to_string();
        self.report(
            Diagnostic::error(codes::PARAMETER_WITHOUT_TYPE, name.span, format!("the parameter `{text}` needs a type"))
                .label("no type")
                .help(format!("one of `{text}: int`, `{text}: bool`, `{text}: [int]` and `{text}: [bool]`")),
        );
        Param { name, ty: TypeSyntax { kind: TypeKind::Error, span: name.span } }
    }

    pub fn array_type(&mut self, l: u32, r: u32, element: TypeSyntax) -> TypeSyntax {
        let kind = match element.kind {
            TypeKind::Scalar(scalar) => TypeKind::Array(scalar),
            TypeKind::Array(_) => {
                self.report(
                    Diagnostic::error(codes::ARRAY_STORED, element.span, "an array cannot hold arrays")
                        .label("this element type is an array")
                        .note("the elements of an array are `int` or `bool`")
                        .help("keep a table in one array: row `i`, column `j` at `i * width + j`"),
                );
                TypeKind::Error
            }
            TypeKind::Error => TypeKind::Error,
        };
        TypeSyntax { kind, span: span(l, r) }
    }

    pub fn no_such_type(&mut self, name: Name) -> TypeSyntax {
        let text = self.ast.names.text(name.symbol);
        let diagnostic = Diagnostic::error(codes::UNKNOWN_TYPE, name.span, format!("there is no type `{text}`"))
            .label("unknown type");
        let near = match text.to_ascii_lowercase().as_str() {
            "boolean" | "logical" => Some("bool"),
            "integer" | "i64" | "i32" | "u64" | "u32" | "u8" | "int64" | "int32" | "long" | "short" | "char"
            | "byte" | "usize" | "isize" | "num" | "number" => Some("int"),
            _ => None,
        };
        let diagnostic = match near {
            Some(near) => diagnostic.suggest("the type is called", name.span, near),
            None => diagnostic.note("the types are `int`, `bool`, `[int]` and `[bool]`"),
        };
        self.report(diagnostic);
        TypeSyntax { kind: TypeKind::Error, span: name.span }
    }

    // ---- Expressions

    pub fn infix(&mut self, op: InfixOp, left: ExprId, at: u32, right: ExprId) -> ExprId {
        let place = self.span_of(left).to(self.span_of(right));
        self.ast.expr(ExprKind::Infix { op, at, left, right }, place)
    }

    pub fn no_chain(&mut self, op: CompareOp, left: ExprId, at: u32, right: ExprId) -> ExprId {
        let ExprKind::Infix { op: first, at: first_at, left: outer, right: middle } = self.ast.exprs[left].kind else {
            // A longer chain has been reported already.
            return left;
        };
        let second = span(at, at + op.symbol().len() as u32);
        let mut diagnostic = Diagnostic::error(codes::CHAINED_COMPARISON, second, "comparisons do not chain")
            .label("a second comparison")
            .also(span(first_at, first_at + first.symbol().len() as u32), "the first one");
        let inner = self.ast.exprs[middle].kind;
        let bitwise = |expr: ExprId| match self.ast.exprs[expr].kind {
            ExprKind::Infix { op: InfixOp::Binary(op @ (BinaryOp::And | BinaryOp::Or)), at, .. }
                if !self.parenthesized.contains(&expr) =>
            {
                Some((op, at))
            }
            _ => None,
        };
        if let Some((op, at)) = bitwise(middle) {
            let symbol = op.symbol();
            diagnostic = diagnostic.note(format!("`{symbol}` binds tighter than a comparison")).suggest(
                "join two conditions by",
                span(at, at + 1),
                format!("{symbol}{symbol}"),
            );
        } else if let InfixOp::Compare(first) = first {
            let (a, m, c) = (self.span_of(outer), self.span_of(middle), self.span_of(right));
            let simple = matches!(inner, ExprKind::Name(_) | ExprKind::Int(_));
            if simple && matches!(first, CompareOp::Lt | CompareOp::Le | CompareOp::Gt | CompareOp::Ge) {
                let text = format!(
                    "{} {} {} && {} {} {}",
                    self.text(a),
                    first.symbol(),
                    self.text(m),
                    self.text(m),
                    op.symbol(),
                    self.text(c)
                );
                diagnostic = diagnostic.suggest("compare twice", a.to(c), text);
            } else {
                diagnostic = diagnostic.help("put parentheses around one of them, or join two by `&&`");
            }
        }
        self.report(diagnostic);
        let place = self.span_of(left).to(self.span_of(right));
        self.ast.expr(ExprKind::Error, place)
    }

    pub fn prefix(&mut self, l: u32, op: UnaryOp, arg: ExprId) -> ExprId {
        if op == UnaryOp::Neg && self.bare_minimums.last() == Some(&arg) {
            self.bare_minimums.pop();
        }
        let end = self.span_of(arg).end;
        self.ast.expr(ExprKind::Unary { op, arg }, span(l, end))
    }

    pub fn call(&mut self, callee: ExprId, at: u32, args: Vec<ExprId>, r: u32) -> ExprId {
        let place = self.span_of(callee);
        match self.ast.exprs[callee].kind {
            ExprKind::Name(symbol) => {
                let args = self.ast.make_exprs(&args);
                self.ast.expr(ExprKind::Call { callee: Name { symbol, span: place }, args }, span(place.start, r))
            }
            ExprKind::Error => self.ast.expr(ExprKind::Error, span(place.start, r)),
            ExprKind::Int(_)
            | ExprKind::Bool(_)
            | ExprKind::Str(_)
            | ExprKind::Unary { .. }
            | ExprKind::Infix { .. }
            | ExprKind::Call { .. }
            | ExprKind::Index { .. }
            | ExprKind::ArrayList(_)
            | ExprKind::ArrayRepeat { .. } => {
                self.report(
                    Diagnostic::error(codes::NOT_A_FUNCTION, place, "only a function's name can be called")
                        .label("no name")
                        .also(span(at, r), "the call"),
                );
                self.ast.expr(ExprKind::Error, span(place.start, r))
            }
        }
    }

    pub fn index(&mut self, array: ExprId, at: u32, index: ExprId, r: u32) -> ExprId {
        let place = self.span_of(array);
        let what = match self.ast.exprs[array].kind {
            ExprKind::Name(symbol) => {
                let array = Name { symbol, span: place };
                return self.ast.expr(ExprKind::Index { array, bracket: at, index }, span(place.start, r));
            }
            ExprKind::ArrayList(_) | ExprKind::ArrayRepeat { .. } => {
                self.misplaced_array_literal(array);
                return self.ast.expr(ExprKind::Error, span(place.start, r));
            }
            ExprKind::Error => return self.ast.expr(ExprKind::Error, span(place.start, r)),
            ExprKind::Index { .. } => "an element is no array",
            ExprKind::Call { .. } => "a call gives no array",
            ExprKind::Int(_)
            | ExprKind::Bool(_)
            | ExprKind::Str(_)
            | ExprKind::Unary { .. }
            | ExprKind::Infix { .. } => "this is no array",
        };
        self.report(
            Diagnostic::error(codes::NOT_AN_ARRAY, span(at, at + 1), format!("{what}: only a variable can be indexed"))
                .label("the index")
                .also(place, "no array variable"),
        );
        self.ast.expr(ExprKind::Error, span(place.start, r))
    }

    pub fn int_of(&mut self, l: u32, open: u32, args: Vec<ExprId>, close: u32, r: u32) -> ExprId {
        if let [arg] = args[..] {
            return self.ast.expr(ExprKind::Unary { op: UnaryOp::IntOfBool, arg }, span(l, r));
        }
        let place = if args.is_empty() { span(open, close + 1) } else { self.span_of(args[1]) };
        self.report(
            Diagnostic::error(
                codes::ARGUMENT_COUNT,
                place,
                format!("`int` takes one argument, and {} are given", args.len()),
            )
            .label(if args.is_empty() { "no argument" } else { "one too many" }),
        );
        self.ast.expr(ExprKind::Error, span(l, r))
    }

    pub fn int(&mut self, l: u32, r: u32, value: i64) -> ExprId {
        self.ast.expr(ExprKind::Int(value), span(l, r))
    }

    /// The number 9223372036854775808: a minus right before it makes it one.
    pub fn int_min(&mut self, l: u32, r: u32) -> ExprId {
        let expr = self.ast.expr(ExprKind::Int(i64::MIN), span(l, r));
        self.bare_minimums.push(expr);
        expr
    }

    fn too_large(&mut self, expr: ExprId) {
        let place = self.span_of(expr);
        self.report(
            Diagnostic::error(codes::NUMBER_TOO_LARGE, place, "this number does not fit an `int`")
                .label("one more than the largest `int`")
                .note("9223372036854775808 is a number only directly behind a unary minus"),
        );
    }

    pub fn bool(&mut self, l: u32, r: u32, value: bool) -> ExprId {
        self.ast.expr(ExprKind::Bool(value), span(l, r))
    }

    pub fn string(&mut self, l: u32, r: u32, text: StrId) -> ExprId {
        self.ast.expr(ExprKind::Str(text), span(l, r))
    }

    pub fn error_expr(&mut self, l: u32, r: u32) -> ExprId {
        self.ast.expr(ExprKind::Error, span(l, r))
    }

    pub fn name(&mut self, name: Name) -> ExprId {
        self.ast.expr(ExprKind::Name(name.symbol), name.span)
    }

    pub fn parentheses(&mut self, _l: u32, _r: u32, inner: ExprId) -> ExprId {
        if self.bare_minimums.last() == Some(&inner) {
            self.bare_minimums.pop();
            self.too_large(inner);
        }
        if matches!(self.ast.exprs[inner].kind, ExprKind::ArrayList(_) | ExprKind::ArrayRepeat { .. }) {
            self.misplaced_array_literal(inner);
        }
        self.parenthesized.insert(inner);
        inner
    }

    /// Reports an array literal that cannot stand where it stands, and makes it an error.
    fn misplaced_array_literal(&mut self, literal: ExprId) {
        let place = self.span_of(literal);
        self.report(super::misplaced_array_literal(place));
        self.ast.exprs[literal].kind = ExprKind::Error;
    }

    pub fn no_assignment_here(&mut self, left: ExprId, at: u32, right: ExprId) -> ExprId {
        let place = span(at, at + 1);
        self.report(
            Diagnostic::error(codes::ASSIGNMENT_AS_EXPRESSION, place, "an assignment is no expression")
                .label("assigns, and has no value")
                .suggest("to compare, write", place, "=="),
        );
        let place = self.span_of(left).to(self.span_of(right));
        self.ast.expr(ExprKind::Error, place)
    }

    pub fn array_list(&mut self, l: u32, r: u32, elements: Vec<ExprId>) -> ExprId {
        let elements = self.ast.make_exprs(&elements);
        self.ast.expr(ExprKind::ArrayList(elements), span(l, r))
    }

    pub fn array_repeat(&mut self, l: u32, r: u32, value: ExprId, len: ExprId) -> ExprId {
        self.ast.expr(ExprKind::ArrayRepeat { value, len }, span(l, r))
    }
}
