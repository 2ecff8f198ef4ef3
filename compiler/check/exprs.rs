//! Expressions: each node gets its type from its children, which are checked before it.

use super::{Checker, Ty};
use crate::hir::{self, StrId, Variable};
use crate::semantics::{BinaryOp, CompareOp, Scalar, UnaryOp};
use crate::support::codes;
use crate::support::diagnostics::Diagnostic;
use crate::support::intern::Symbol;
use crate::support::span::Span;
use crate::syntax::ast::{self, ExprId, ExprKind, InfixOp, LogicOp};
use crate::syntax::misplaced_array_literal;

/// What an expression has been found to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Checked {
    /// A value.
    Value(Scalar, hir::ExprId),
    /// The name of an array.
    Array(Scalar, Variable),
    /// A call that gives nothing.
    Nothing(hir::ExprId),
    /// A string.
    Str(StrId),
    /// A mistake, which has been reported.
    Error,
}

/// What a value is needed for, for the message where there is none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Use {
    Operand,
    Condition,
    Initializer,
    Assigned,
    Element,
    Index,
    Length,
    Returned,
    Printed,
    Argument,
}

impl Checker<'_> {
    /// Checks an expression and gives its value: the type and the HIR, or `None` after a message.
    pub fn value(&mut self, expr: ExprId, needed: Use) -> Option<(Scalar, hir::ExprId)> {
        self.check_expr(expr);
        self.as_value(expr, needed)
    }

    /// Checks an expression that must have this type; what `because` says of the reason is labelled too.
    pub fn value_of_type(
        &mut self,
        expr: ExprId,
        ty: Ty,
        needed: Use,
        because: Option<(Span, String)>,
    ) -> Option<hir::ExprId> {
        let (found, value) = self.value(expr, needed)?;
        match ty {
            Ty::Scalar(wanted) if wanted == found => Some(value),
            Ty::Scalar(wanted) => {
                let diagnostic = self.wrong_type(expr, wanted, found);
                self.report(match because {
                    Some((span, text)) => diagnostic.also(span, text),
                    None => diagnostic,
                });
                None
            }
            Ty::Array(_) | Ty::Error => {
                self.poisoned = true;
                None
            }
        }
    }

    /// The message for a value of one type where another is needed.
    pub fn wrong_type(&self, expr: ExprId, wanted: Scalar, found: Scalar) -> Diagnostic {
        let span = self.ast.exprs[expr].span;
        let diagnostic =
            Diagnostic::error(codes::WRONG_TYPE, span, format!("expected a value of type `{wanted}`, found `{found}`"))
                .label(format!("this is of type `{found}`"));
        self.suggest_conversion(diagnostic, expr, wanted)
    }

    /// Adds how to make a value of the other type.
    pub fn suggest_conversion(&self, diagnostic: Diagnostic, expr: ExprId, wanted: Scalar) -> Diagnostic {
        let Some(span) = self.whole_span(expr) else {
            return diagnostic;
        };
        let text = &self.source.text[span.range()];
        let simple = matches!(
            self.ast.exprs[expr].kind,
            ExprKind::Name(_) | ExprKind::Index { .. } | ExprKind::Call { .. } | ExprKind::Bool(_)
        );
        if text.len() > 40 || text.contains('\n') {
            return diagnostic;
        }
        match wanted {
            Scalar::Int => diagnostic.suggest("`int(…)` turns a `bool` into 0 or 1", span, format!("int({text})")),
            Scalar::Bool if simple => diagnostic.suggest("compare it", span, format!("{text} != 0")),
            Scalar::Bool => diagnostic,
        }
    }

    /// The place of an expression, if it covers whole tokens: where operands stand in parentheses, it would not.
    fn whole_span(&self, expr: ExprId) -> Option<Span> {
        let span = self.ast.exprs[expr].span;
        let text = &self.source.text[span.range()];
        let balance = |open: char, close: char| text.matches(open).count() == text.matches(close).count();
        (balance('(', ')') && balance('[', ']')).then_some(span)
    }

    /// The value that a checked expression has, or `None` after saying why it has none.
    pub fn as_value(&mut self, expr: ExprId, needed: Use) -> Option<(Scalar, hir::ExprId)> {
        let span = self.ast.exprs[expr].span;
        match self.checked[expr] {
            Checked::Value(ty, value) => return Some((ty, value)),
            Checked::Array(element, variable) => self.array_as_value(span, needed, element, variable),
            Checked::Nothing(call) => {
                let diagnostic = Diagnostic::error(codes::NO_VALUE, span, "this call gives no value").label("no value");
                let diagnostic = match self.program.exprs[call].kind {
                    hir::ExprKind::Call { callee, .. } => {
                        let function = &self.program.functions[callee];
                        diagnostic
                            .also(function.span, "this function has no `->`")
                            .help("a function that gives a value says which: `fn f(…) -> int { … }`")
                    }
                    _ => diagnostic,
                };
                self.report(diagnostic);
            }
            Checked::Str(_) => self.report(
                Diagnostic::error(codes::MISPLACED_STRING, span, "a string can only be an argument of `print`")
                    .label("a string is no value")
                    .note("a single character, such as `'a'`, is an `int`"),
            ),
            Checked::Error => {}
        }
        self.poisoned = true;
        None
    }

    /// Says why an array is no value there, and what to do instead.
    fn array_as_value(&mut self, span: Span, needed: Use, element: Scalar, variable: Variable) {
        let declared = self.variables[variable].span;
        let text = &self.source.text[span.range()];
        let why = "an array is named by its `let` for life, so that its memory is free where the block ends";
        let error = |code, message: &str| Diagnostic::error(code, span, message.to_string());
        let diagnostic = match needed {
            Use::Initializer => error(codes::ARRAY_COPIED, "an array cannot get a second name by `let`")
                .label("an array")
                .note(why)
                .help(format!(
                    "use `{text}` itself, or make a new array and copy the elements in a loop: \
                     `let b = [{}; len({text})];`",
                    if element == Scalar::Int { "0" } else { "false" }
                )),
            Use::Assigned => error(codes::ARRAY_ASSIGNED, "an array cannot be assigned")
                .label("an array")
                .note(why)
                .help("assign its elements: `a[i] = …;`"),
            Use::Element => error(codes::ARRAY_STORED, "an array cannot be stored in an array")
                .label("an array")
                .note("the elements of an array are `int` or `bool`")
                .help("keep a table in one array: row `i`, column `j` at `i * width + j`"),
            Use::Returned => error(codes::ARRAY_RETURNED, "an array cannot be returned")
                .label("an array")
                .note("an array lives until the block of its `let` is left, so none outlives its function")
                .help("let the caller make the array and pass it: the function can fill it"),
            Use::Printed => error(codes::ARRAY_AS_OPERAND, "an array cannot be printed as a whole")
                .label("an array")
                .help("print its elements in a loop"),
            Use::Operand | Use::Condition | Use::Index | Use::Length | Use::Argument => {
                error(codes::ARRAY_AS_OPERAND, "an array is no single value")
                    .label(format!("of type `[{element}]`"))
                    .help(format!("use an element, `{text}[i]`, or the length, `len({text})`"))
            }
        };
        self.report(diagnostic.also(declared, "declared here"));
    }

    /// Checks an expression and all below it.
    pub fn check_expr(&mut self, root: ExprId) {
        let mut order = std::mem::take(&mut self.order);
        order.clear();
        self.ast.postorder(root, &mut order);
        for expr in &order {
            if self.full() {
                break;
            }
            let checked = self.check_node(*expr);
            self.checked[*expr] = checked;
        }
        self.order = order;
    }

    fn make(&mut self, kind: hir::ExprKind, ty: Scalar, span: Span) -> Checked {
        Checked::Value(ty, self.program.exprs.push(hir::Expr { kind, ty, span }))
    }

    fn check_node(&mut self, expr: ExprId) -> Checked {
        let ast::Expr { kind, span } = self.ast.exprs[expr];
        match kind {
            ExprKind::Int(value) => self.make(hir::ExprKind::Int(value), Scalar::Int, span),
            ExprKind::Bool(value) => self.make(hir::ExprKind::Bool(value), Scalar::Bool, span),
            ExprKind::Str(text) => Checked::Str(text),
            ExprKind::Name(symbol) => self.check_name(symbol, span),
            ExprKind::Unary { op, arg } => self.check_unary(span, op, arg),
            ExprKind::Infix { op, at, left, right } => self.check_infix(span, op, at, left, right),
            ExprKind::Call { callee, args } => self.check_call(span, callee, args),
            ExprKind::Index { array, bracket, index } => {
                let array = self.find_array(array.symbol, array.span, "indexed");
                let index = self.index_value(index);
                match (array, index) {
                    (Some((element, variable)), Some(index)) => {
                        let span = Span { start: bracket, end: span.end };
                        self.make(hir::ExprKind::Index { array: variable, index }, element, span)
                    }
                    _ => Checked::Error,
                }
            }
            ExprKind::ArrayList(_) | ExprKind::ArrayRepeat { .. } => {
                self.report(misplaced_array_literal(span));
                Checked::Error
            }
            ExprKind::Error => {
                self.poisoned = true;
                Checked::Error
            }
        }
    }

    /// The variable of an array that is indexed or measured.
    pub fn find_array(&mut self, symbol: Symbol, span: Span, what: &str) -> Option<(Scalar, Variable)> {
        let binding = self.find_variable(symbol, span)?;
        match binding.ty {
            Ty::Array(element) => Some((element, binding.variable)),
            Ty::Scalar(ty) => {
                let text = self.text(symbol);
                self.report(
                    Diagnostic::error(codes::NOT_AN_ARRAY, span, format!("`{text}` is no array and cannot be {what}"))
                        .label(format!("of type `{ty}`"))
                        .also(binding.span, "declared here"),
                );
                None
            }
            Ty::Error => {
                self.poisoned = true;
                None
            }
        }
    }

    /// The value of a checked index: an `int`.
    pub fn index_value(&mut self, index: ExprId) -> Option<hir::ExprId> {
        let (ty, value) = self.as_value(index, Use::Index)?;
        match ty {
            Scalar::Int => Some(value),
            Scalar::Bool => {
                let mut diagnostic = self.wrong_type(index, Scalar::Int, ty);
                diagnostic.message = "an index must be an `int`, and this is a `bool`".to_string();
                self.report(diagnostic);
                None
            }
        }
    }

    fn check_unary(&mut self, span: Span, op: UnaryOp, arg: ExprId) -> Checked {
        let Some((ty, value)) = self.as_value(arg, Use::Operand) else {
            return Checked::Error;
        };
        if ty == op.operand() {
            return self.make(hir::ExprKind::Unary { op, arg: value }, op.result(), span);
        }
        let place = self.ast.exprs[arg].span;
        let diagnostic = match op {
            UnaryOp::IntOfBool => {
                Diagnostic::error(codes::WRONG_ARGUMENT, place, "`int(…)` takes a `bool`, and this is an `int` already")
                    .label("of type `int`")
                    .help("leave the `int(…)` out")
            }
            UnaryOp::Neg | UnaryOp::BitNot | UnaryOp::Not => {
                let symbol = op.symbol();
                let sign = Span { start: span.start, end: span.start + 1 };
                let diagnostic =
                    Diagnostic::error(codes::WRONG_OPERAND, sign, format!("`{symbol}` cannot be applied to `{ty}`"))
                        .label(format!("takes a value of type `{}`", op.operand()))
                        .also(place, format!("of type `{ty}`"));
                match op {
                    UnaryOp::Not => {
                        diagnostic.help("to turn the bits of an `int` over, write `~`; to compare with 0, `== 0`")
                    }
                    UnaryOp::BitNot => diagnostic.suggest("the negation of a `bool` is", sign, "!"),
                    UnaryOp::Neg | UnaryOp::IntOfBool => diagnostic,
                }
            }
        };
        self.report(diagnostic);
        Checked::Error
    }

    fn check_infix(&mut self, span: Span, op: InfixOp, at: u32, left: ExprId, right: ExprId) -> Checked {
        let sign = Span { start: at, end: at + op.symbol().len() as u32 };
        if let (Checked::Array(..), Checked::Array(..)) = (self.checked[left], self.checked[right]) {
            self.report(
                Diagnostic::error(
                    codes::ARRAY_AS_OPERAND,
                    sign,
                    format!("`{}` cannot be applied to arrays", op.symbol()),
                )
                .label("takes single values")
                .also(self.ast.exprs[left].span, "an array")
                .also(self.ast.exprs[right].span, "an array")
                .help("go through the elements in a loop"),
            );
            return Checked::Error;
        }
        // Both sides are looked at even if one is wrong: they may be wrong for reasons of their own.
        let left_value = self.as_value(left, Use::Operand);
        let right_value = self.as_value(right, Use::Operand);
        let (Some((left_ty, left_value)), Some((right_ty, right_value))) = (left_value, right_value) else {
            return Checked::Error;
        };
        let both = |ty: Scalar| left_ty == ty && right_ty == ty;
        match op {
            InfixOp::Binary(op) => {
                if let Some(ty) = self.binary_type(op, left_ty, right_ty) {
                    let span = if op.may_trap() { sign } else { span };
                    return self.make(hir::ExprKind::Binary { op, left: left_value, right: right_value }, ty, span);
                }
            }
            InfixOp::Compare(op) => {
                let equality = matches!(op, CompareOp::Eq | CompareOp::Ne);
                if both(Scalar::Int) || (equality && both(Scalar::Bool)) {
                    let kind = hir::ExprKind::Compare { op, left: left_value, right: right_value };
                    return self.make(kind, Scalar::Bool, span);
                }
            }
            InfixOp::Logic(op) => {
                if both(Scalar::Bool) {
                    let op = match op {
                        LogicOp::And => hir::LogicOp::And,
                        LogicOp::Or => hir::LogicOp::Or,
                    };
                    let kind = hir::ExprKind::Logic { op, left: left_value, right: right_value };
                    return self.make(kind, Scalar::Bool, span);
                }
            }
        }
        self.wrong_operands(op, sign, (left, left_ty), (right, right_ty));
        Checked::Error
    }

    /// The type that an operation gives, if it takes these.
    pub fn binary_type(&self, op: BinaryOp, left: Scalar, right: Scalar) -> Option<Scalar> {
        let on_bools = match op {
            BinaryOp::And | BinaryOp::Or | BinaryOp::Xor => true,
            BinaryOp::Add
            | BinaryOp::Sub
            | BinaryOp::Mul
            | BinaryOp::Div
            | BinaryOp::Rem
            | BinaryOp::Shl
            | BinaryOp::Shr => false,
        };
        (left == right && (left == Scalar::Int || on_bools)).then_some(left)
    }

    /// Says which operands an operator does not take.
    pub fn wrong_operands(
        &mut self,
        op: InfixOp,
        sign: Span,
        (left, left_ty): (ExprId, Scalar),
        (right, right_ty): (ExprId, Scalar),
    ) {
        let symbol = op.symbol();
        let takes = match op {
            InfixOp::Binary(BinaryOp::And | BinaryOp::Or | BinaryOp::Xor)
            | InfixOp::Compare(CompareOp::Eq | CompareOp::Ne) => "takes two `int`s or two `bool`s",
            InfixOp::Binary(_) | InfixOp::Compare(_) => "takes two `int`s",
            InfixOp::Logic(_) => "takes two `bool`s",
        };
        let message = if left_ty == right_ty {
            format!("`{symbol}` cannot be applied to `{left_ty}`")
        } else {
            format!("`{symbol}` cannot be applied to `{left_ty}` and `{right_ty}`")
        };
        let diagnostic = Diagnostic::error(codes::WRONG_OPERAND, sign, message)
            .label(takes)
            .also(self.ast.exprs[left].span, format!("of type `{left_ty}`"))
            .also(self.ast.exprs[right].span, format!("of type `{right_ty}`"));
        let diagnostic = match op {
            InfixOp::Logic(logic) if left_ty == Scalar::Int && right_ty == Scalar::Int => {
                let single = match logic {
                    LogicOp::And => "&",
                    LogicOp::Or => "|",
                };
                diagnostic.suggest("on the bits of two `int`s, the operator is", sign, single)
            }
            InfixOp::Binary(BinaryOp::And | BinaryOp::Or | BinaryOp::Xor)
            | InfixOp::Compare(CompareOp::Eq | CompareOp::Ne)
            | InfixOp::Binary(_)
            | InfixOp::Compare(_) => match (left_ty, right_ty) {
                (Scalar::Bool, Scalar::Int) => self.suggest_conversion(diagnostic, left, Scalar::Int),
                (Scalar::Int, Scalar::Bool) => self.suggest_conversion(diagnostic, right, Scalar::Int),
                (Scalar::Bool, Scalar::Bool) | (Scalar::Int, Scalar::Int) => diagnostic,
            },
            InfixOp::Logic(_) => match (left_ty, right_ty) {
                (Scalar::Int, Scalar::Bool) => self.suggest_conversion(diagnostic, left, Scalar::Bool),
                (Scalar::Bool, Scalar::Int) => self.suggest_conversion(diagnostic, right, Scalar::Bool),
                (Scalar::Bool, Scalar::Bool) | (Scalar::Int, Scalar::Int) => diagnostic,
            },
        };
        self.report(diagnostic);
    }
}
