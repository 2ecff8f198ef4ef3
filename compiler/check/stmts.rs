//! Statements. Checking one tells whether control can go on behind it.

use super::exprs::{Checked, Use};
use super::{Checker, Gives, Ty};
use crate::hir;
use crate::semantics::{BinaryOp, Scalar};
use crate::support::codes;
use crate::support::diagnostics::Diagnostic;
use crate::support::span::Span;
use crate::syntax::ast::{
    ArmList, Block, ExprId, ExprKind, ExprList, InfixOp, Name, StmtId, StmtKind, TypeKind, TypeSyntax,
};
use crate::syntax::misplaced_array_literal;

impl Checker<'_> {
    /// Checks statements in order and appends what they become. Can control come to their end?
    pub fn check_stmts(&mut self, stmts: &[StmtId], out: &mut Vec<hir::StmtId>) -> bool {
        let mut falls = true;
        for stmt in stmts {
            if self.full() {
                break;
            }
            // What stands behind a `return` is checked like all else; control does not come there.
            falls &= self.check_stmt(*stmt, out);
        }
        falls
    }

    /// A block with a scope of its own.
    fn check_block(&mut self, block: Block) -> (Vec<hir::StmtId>, bool) {
        let mut stmts = Vec::new();
        self.scopes.enter();
        let ast = self.ast;
        let falls = self.check_stmts(ast.stmt_list(block.stmts), &mut stmts);
        self.scopes.leave(block.span);
        if self.current.is_some() {
            self.flow.falls.insert(block.span.start, falls);
        }
        (stmts, falls)
    }

    fn emit(&mut self, kind: hir::StmtKind, span: Span, out: &mut Vec<hir::StmtId>) {
        out.push(self.program.stmts.push(hir::Stmt { kind, span }));
    }

    fn check_stmt(&mut self, stmt: StmtId, out: &mut Vec<hir::StmtId>) -> bool {
        let data = self.ast.stmts[stmt];
        let span = data.span;
        match data.kind {
            StmtKind::Let { name, ty, init } => self.check_let(span, name, ty, init, out),
            StmtKind::Assign { target, op, at, value } => self.check_assign(span, target, op, at, value, out),
            StmtKind::If { arms, els } => return self.check_if(span, arms, els, out),
            StmtKind::While { cond, body } => return self.check_while(span, cond, body, out),
            StmtKind::Break => {
                self.check_jump(span, "break");
                if let Some(has_break) = self.flow.loops.last_mut() {
                    *has_break = true;
                }
                self.emit(hir::StmtKind::Break, span, out);
                return false;
            }
            StmtKind::Continue => {
                self.check_jump(span, "continue");
                self.emit(hir::StmtKind::Continue, span, out);
                return false;
            }
            StmtKind::Return(value) => {
                self.check_return(span, value, out);
                return false;
            }
            StmtKind::Print(args) => self.check_print(span, args, out),
            StmtKind::Assert(cond) => {
                if let Some(cond) = self.condition(cond, "what is asserted") {
                    self.emit(hir::StmtKind::Assert(cond), span, out);
                }
            }
            StmtKind::Expr(expr) => {
                self.check_expr(expr);
                match self.checked[expr] {
                    Checked::Value(_, call) | Checked::Nothing(call) => self.emit(hir::StmtKind::Expr(call), span, out),
                    Checked::Array(..) | Checked::Str(_) | Checked::Error => self.poisoned = true,
                }
            }
            StmtKind::Block(block) => {
                let (stmts, falls) = self.check_block(block);
                self.emit(hir::StmtKind::Block(stmts), span, out);
                return falls;
            }
            // A function inside a block has been reported by the parser.
            StmtKind::Function(_) | StmtKind::Error => self.poisoned = true,
        }
        true
    }

    // ---- Variables

    fn check_let(&mut self, span: Span, name: Name, ty: Option<TypeSyntax>, init: ExprId, out: &mut Vec<hir::StmtId>) {
        let annotated = ty.map(|ty| (Ty::of(ty.kind), ty));
        match self.ast.exprs[init].kind {
            ExprKind::ArrayList(elements) => {
                let ast = self.ast;
                let elements = ast.expr_list(elements);
                self.check_let_list(name, annotated, init, elements, out);
            }
            ExprKind::ArrayRepeat { value, len } => {
                let value = self.array_element(value, annotated);
                let len = self.value_of_type(len, Ty::Scalar(Scalar::Int), Use::Length, None);
                self.finish_array(name, annotated, init, value.map(|(ty, _)| ty), out, |_| {
                    Some(hir::ArrayInit::Repeat { value: value?.1, len: len? })
                });
            }
            ExprKind::Int(_)
            | ExprKind::Bool(_)
            | ExprKind::Str(_)
            | ExprKind::Name(_)
            | ExprKind::Unary { .. }
            | ExprKind::Infix { .. }
            | ExprKind::Call { .. }
            | ExprKind::Index { .. }
            | ExprKind::Error => {
                let (ty, value) = self.check_let_value(name, annotated, init);
                let variable = self.declare(name, ty);
                match value {
                    Some(value) => self.emit(hir::StmtKind::Let { variable, value }, span, out),
                    None => self.poisoned = true,
                }
            }
        }
    }

    /// The type and value of a variable that is no new array.
    fn check_let_value(
        &mut self,
        name: Name,
        annotated: Option<(Ty, TypeSyntax)>,
        init: ExprId,
    ) -> (Ty, Option<hir::ExprId>) {
        let Some((ty, syntax)) = annotated else {
            return match self.value(init, Use::Initializer) {
                Some((ty, value)) => (Ty::Scalar(ty), Some(value)),
                None => (Ty::Error, None),
            };
        };
        match ty {
            Ty::Scalar(_) => {
                let because =
                    Some((syntax.span, format!("`{}` is declared as `{}`", self.text(name.symbol), syntax.kind)));
                (ty, self.value_of_type(init, ty, Use::Initializer, because))
            }
            Ty::Array(element) => {
                if let Some((found, _)) = self.value(init, Use::Initializer) {
                    let place = self.ast.exprs[init].span;
                    self.report(
                        Diagnostic::error(
                            codes::WRONG_TYPE,
                            place,
                            format!("expected an array literal, found a value of type `{found}`"),
                        )
                        .label(format!("of type `{found}`"))
                        .also(syntax.span, "declared as an array")
                        .help("an array is made by `[e; n]` (n copies of e), by `[e1, e2]` or by `[]`"),
                    );
                }
                (Ty::Array(element), None)
            }
            Ty::Error => {
                self.value(init, Use::Initializer);
                (Ty::Error, None)
            }
        }
    }

    fn check_let_list(
        &mut self,
        name: Name,
        annotated: Option<(Ty, TypeSyntax)>,
        init: ExprId,
        elements: &[ExprId],
        out: &mut Vec<hir::StmtId>,
    ) {
        let mut values = Vec::with_capacity(elements.len());
        let mut first: Option<(Scalar, ExprId)> = None;
        let mut nested = false;
        for element in elements {
            if self.full() {
                break;
            }
            // A table gives one message, not one for each row.
            let is_literal =
                matches!(self.ast.exprs[*element].kind, ExprKind::ArrayList(_) | ExprKind::ArrayRepeat { .. });
            if is_literal && nested {
                continue;
            }
            nested |= is_literal;
            let Some((ty, value)) = self.array_element(*element, annotated) else {
                continue;
            };
            match first {
                Some((wanted, of)) if wanted != ty => {
                    let diagnostic = self.wrong_type(*element, wanted, ty);
                    let place = self.ast.exprs[of].span;
                    self.report(diagnostic.also(place, format!("the first element is of type `{wanted}`")));
                }
                Some(_) => values.push(value),
                None => {
                    first = Some((ty, *element));
                    values.push(value);
                }
            }
        }
        let complete = values.len() == elements.len();
        if elements.is_empty() && annotated.is_none() {
            let text = self.text(name.symbol);
            let place = self.ast.exprs[init].span;
            self.report(
                Diagnostic::error(codes::ARRAY_WITHOUT_TYPE, place, "an empty array needs a type")
                    .label("nothing tells the type of its elements")
                    .suggest("say the type", name.span.after(), ": [int]")
                    .note(format!("`{text}` keeps its length for life: `[e; n]` makes an array of n elements")),
            );
        }
        self.finish_array(name, annotated, init, first.map(|(ty, _)| ty), out, |_| {
            complete.then_some(hir::ArrayInit::List(values))
        });
    }

    /// An element of a new array, which must be of the declared type if there is one.
    fn array_element(&mut self, element: ExprId, annotated: Option<(Ty, TypeSyntax)>) -> Option<(Scalar, hir::ExprId)> {
        if matches!(self.ast.exprs[element].kind, ExprKind::ArrayList(_) | ExprKind::ArrayRepeat { .. }) {
            let place = self.ast.exprs[element].span;
            if matches!(annotated, Some((Ty::Error, _))) {
                // The type has been reported, and says the same.
                return None;
            }
            self.report(
                Diagnostic::error(codes::ARRAY_STORED, place, "an array cannot hold arrays")
                    .label("an array as an element")
                    .note("the elements of an array are `int` or `bool`")
                    .help("keep a table in one array: row `i`, column `j` at `i * width + j`"),
            );
            return None;
        }
        match annotated {
            Some((Ty::Array(wanted), syntax)) => {
                let because = Some((syntax.span, format!("the array is declared as `{}`", syntax.kind)));
                let value = self.value_of_type(element, Ty::Scalar(wanted), Use::Element, because)?;
                Some((wanted, value))
            }
            Some((Ty::Scalar(_) | Ty::Error, _)) | None => self.value(element, Use::Element),
        }
    }

    /// Declares the variable of a new array.
    fn finish_array(
        &mut self,
        name: Name,
        annotated: Option<(Ty, TypeSyntax)>,
        init: ExprId,
        found: Option<Scalar>,
        out: &mut Vec<hir::StmtId>,
        make: impl FnOnce(Scalar) -> Option<hir::ArrayInit>,
    ) {
        let place = self.ast.exprs[init].span;
        let ty = match annotated {
            Some((Ty::Scalar(scalar), syntax)) => {
                self.report(
                    Diagnostic::error(
                        codes::WRONG_TYPE,
                        place,
                        format!("expected a value of type `{scalar}`, found an array"),
                    )
                    .label("an array")
                    .also(syntax.span, format!("declared as `{scalar}`"))
                    .suggest(
                        "the type of the array is",
                        syntax.span,
                        format!("[{}]", found.unwrap_or(scalar)),
                    ),
                );
                found.map_or(Ty::Error, Ty::Array)
            }
            Some((ty @ (Ty::Array(_) | Ty::Error), _)) => ty,
            None => found.map_or(Ty::Error, Ty::Array),
        };
        let variable = self.declare(name, ty);
        let made = match ty {
            Ty::Array(element) => make(element).map(|init| hir::StmtKind::LetArray { variable, element, init }),
            Ty::Scalar(_) | Ty::Error => None,
        };
        match made {
            Some(kind) => self.emit(kind, place, out),
            None => self.poisoned = true,
        }
    }

    fn check_assign(
        &mut self,
        span: Span,
        target: ExprId,
        op: Option<BinaryOp>,
        at: u32,
        value: ExprId,
        out: &mut Vec<hir::StmtId>,
    ) {
        let place = self.ast.exprs[target].span;
        match self.ast.exprs[target].kind {
            ExprKind::Name(symbol) => {
                let Some(binding) = self.find_variable(symbol, place) else {
                    self.assigned_value(value);
                    return;
                };
                match binding.ty {
                    Ty::Array(_) => self.array_assigned(target, binding.span, value),
                    Ty::Error => {
                        self.poisoned = true;
                        self.assigned_value(value);
                    }
                    Ty::Scalar(ty) => {
                        let declared = (binding.span, format!("`{}` is of type `{ty}`", self.text(symbol)));
                        let value = match op {
                            None => self.value_of_type(value, Ty::Scalar(ty), Use::Assigned, Some(declared)),
                            Some(op) => {
                                let old = self.program.exprs.push(hir::Expr {
                                    kind: hir::ExprKind::Variable(binding.variable),
                                    ty,
                                    span: place,
                                });
                                self.compound_value(op, at, (target, ty), value).map(|value| {
                                    let span = if op.may_trap() { sign_span(op, at) } else { span };
                                    let kind = hir::ExprKind::Binary { op, left: old, right: value };
                                    self.program.exprs.push(hir::Expr { kind, ty, span })
                                })
                            }
                        };
                        if let Some(value) = value {
                            self.emit(hir::StmtKind::Assign { variable: binding.variable, value }, span, out);
                        }
                    }
                }
            }
            ExprKind::Index { array, bracket, index } => {
                let found = self.find_array(array.symbol, array.span, "indexed");
                self.check_expr(index);
                let index = self.index_value(index);
                let Some((element, variable)) = found else {
                    self.assigned_value(value);
                    return;
                };
                let span = Span { start: bracket, end: place.end };
                match op {
                    None => {
                        let because = (self.variables[variable].span, format!("an array of type `[{element}]`"));
                        let value = self.value_of_type(value, Ty::Scalar(element), Use::Element, Some(because));
                        if let (Some(index), Some(value)) = (index, value) {
                            self.emit(hir::StmtKind::Store { array: variable, index, value }, span, out);
                        }
                    }
                    Some(op) => {
                        let value = self.compound_value(op, at, (target, element), value);
                        if let (Some(index), Some(value)) = (index, value) {
                            let op_span = sign_span(op, at);
                            let kind = hir::StmtKind::Update { array: variable, index, op, op_span, value };
                            self.emit(kind, span, out);
                        }
                    }
                }
            }
            ExprKind::Int(_)
            | ExprKind::Bool(_)
            | ExprKind::Str(_)
            | ExprKind::Unary { .. }
            | ExprKind::Infix { .. }
            | ExprKind::Call { .. }
            | ExprKind::ArrayList(_)
            | ExprKind::ArrayRepeat { .. }
            | ExprKind::Error => {
                // What cannot be assigned to has been reported by the parser.
                self.poisoned = true;
                self.assigned_value(value);
            }
        }
    }

    /// Checks what is assigned to something unknown.
    fn assigned_value(&mut self, value: ExprId) {
        if let ExprKind::ArrayList(_) | ExprKind::ArrayRepeat { .. } = self.ast.exprs[value].kind {
            let place = self.ast.exprs[value].span;
            self.report(misplaced_array_literal(place));
            return;
        }
        self.value(value, Use::Assigned);
    }

    fn array_assigned(&mut self, target: ExprId, declared: Span, value: ExprId) {
        let place = self.ast.exprs[target].span;
        let text = &self.source.text[place.range()];
        let is_literal = matches!(self.ast.exprs[value].kind, ExprKind::ArrayList(_) | ExprKind::ArrayRepeat { .. });
        let diagnostic = Diagnostic::error(codes::ARRAY_ASSIGNED, place, "an array cannot be assigned to")
            .label("an array")
            .also(declared, "declared here")
            .note("an array is named by its `let` for life, so that its memory is free where the block ends");
        self.report(if is_literal {
            diagnostic.help("make a new array by `let`, with a name of its own")
        } else {
            diagnostic.help(format!("copy the elements in a loop: `{text}[i] = …;`"))
        });
    }

    /// The right side of `op=`, which must go with the left one.
    fn compound_value(
        &mut self,
        op: BinaryOp,
        at: u32,
        (target, ty): (ExprId, Scalar),
        value: ExprId,
    ) -> Option<hir::ExprId> {
        let (found, checked) = self.value(value, Use::Operand)?;
        if self.binary_type(op, ty, found).is_some() {
            return Some(checked);
        }
        self.wrong_operands(InfixOp::Binary(op), sign_span(op, at), (target, ty), (value, found));
        None
    }

    // ---- Control flow

    /// A condition, which must be a `bool`.
    fn condition(&mut self, cond: ExprId, what: &str) -> Option<hir::ExprId> {
        let (ty, value) = self.value(cond, Use::Condition)?;
        match ty {
            Scalar::Bool => Some(value),
            Scalar::Int => {
                let place = self.ast.exprs[cond].span;
                let diagnostic = Diagnostic::error(
                    codes::CONDITION_NOT_BOOL,
                    place,
                    format!("{what} must be a `bool`, and this is an `int`"),
                )
                .label("of type `int`");
                let diagnostic = self.suggest_conversion(diagnostic, cond, Scalar::Bool);
                self.report(diagnostic);
                None
            }
        }
    }

    fn check_if(&mut self, span: Span, arms: ArmList, els: Option<Block>, out: &mut Vec<hir::StmtId>) -> bool {
        let ast = self.ast;
        let mut checked = Vec::new();
        let mut falls = els.is_none();
        let mut good = true;
        for arm in ast.arm_list(arms) {
            if self.full() {
                break;
            }
            let cond = self.condition(arm.cond, "a condition");
            let (body, arm_falls) = self.check_block(arm.block);
            falls |= arm_falls;
            match cond {
                Some(cond) => checked.push(hir::Arm { cond, body }),
                None => good = false,
            }
        }
        let els = els.map(|block| {
            let (body, els_falls) = self.check_block(block);
            falls |= els_falls;
            body
        });
        if good {
            self.emit(hir::StmtKind::If { arms: checked, els }, span, out);
        }
        falls
    }

    fn check_while(&mut self, span: Span, cond: ExprId, body: Block, out: &mut Vec<hir::StmtId>) -> bool {
        let endless = self.ast.exprs[cond].kind == ExprKind::Bool(true);
        let cond = self.condition(cond, "a condition");
        self.flow.loops.push(false);
        let (body, _) = self.check_block(body);
        let has_break = self.flow.loops.pop().expect("it was pushed above");
        if let Some(cond) = cond {
            self.emit(hir::StmtKind::While { cond, body, endless }, span, out);
        }
        !endless || has_break
    }

    fn check_jump(&mut self, span: Span, word: &str) {
        if self.flow.loops.is_empty() {
            let diagnostic = Diagnostic::error(codes::OUTSIDE_A_LOOP, span, format!("`{word}` outside of a loop"))
                .label("in no loop");
            self.report(match word {
                "break" if self.current.is_none() => diagnostic.help("`return;` ends the program"),
                "break" => diagnostic.help("`return` ends the function"),
                _ => diagnostic,
            });
        }
    }

    fn check_return(&mut self, span: Span, value: Option<ExprId>, out: &mut Vec<hir::StmtId>) {
        let ast = self.ast;
        let function = self.current.map(|function| &ast.functions[function]);
        match (self.gives, value) {
            (Gives::Nothing, None) => self.emit(hir::StmtKind::Return(None), span, out),
            (Gives::Nothing, Some(value)) => {
                self.check_expr(value);
                if self.checked[value] == Checked::Error {
                    // The value has a mistake of its own.
                    self.poisoned = true;
                    return;
                }
                let place = ast.exprs[value].span;
                let diagnostic = match function {
                    None => Diagnostic::error(codes::UNEXPECTED_VALUE, place, "the program's body returns no value")
                        .label("a value")
                        .help("`return;` ends the program"),
                    Some(function) => {
                        let text = ast.names.text(function.name.symbol);
                        let diagnostic = Diagnostic::error(
                            codes::UNEXPECTED_VALUE,
                            place,
                            format!("`{text}` returns a value, but says of none"),
                        )
                        .label("a value")
                        .also(function.name.span, "has no `->`");
                        match self.checked[value] {
                            Checked::Value(ty, _) => diagnostic.suggest(
                                "say what it returns",
                                Span { start: function.body.span.start, end: function.body.span.start },
                                format!("-> {ty} "),
                            ),
                            Checked::Array(..) | Checked::Nothing(_) | Checked::Str(_) | Checked::Error => diagnostic,
                        }
                    }
                };
                self.report(diagnostic);
            }
            (Gives::Scalar(ty), Some(value)) => {
                let result = function.and_then(|function| function.result).expect("the function gives a value");
                let because = (result.span, format!("the function returns `{ty}`"));
                if let Some(value) = self.value_of_type(value, Ty::Scalar(ty), Use::Returned, Some(because)) {
                    self.emit(hir::StmtKind::Return(Some(value)), span, out);
                }
            }
            (Gives::Scalar(ty), None) => {
                let result = function.and_then(|function| function.result).expect("the function gives a value");
                self.report(
                    Diagnostic::error(codes::VALUE_NEEDED, span, format!("this `return` needs a value of type `{ty}`"))
                        .label("no value")
                        .also(result.span, format!("the function returns `{ty}`")),
                );
            }
            (Gives::Error, value) => {
                self.poisoned = true;
                if let Some(value) = value {
                    let is_array = matches!(
                        function.and_then(|function| function.result).map(|result| result.kind),
                        Some(TypeKind::Array(_))
                    );
                    self.check_expr(value);
                    if !(is_array && matches!(self.checked[value], Checked::Array(..))) {
                        self.as_value(value, Use::Returned);
                    }
                }
            }
        }
    }

    fn check_print(&mut self, span: Span, args: ExprList, out: &mut Vec<hir::StmtId>) {
        let ast = self.ast;
        let args = ast.expr_list(args);
        let mut values = Vec::with_capacity(args.len());
        for arg in args {
            self.check_expr(*arg);
            match self.checked[*arg] {
                Checked::Str(text) => values.push(hir::PrintArg::Str(text)),
                Checked::Value(_, value) => values.push(hir::PrintArg::Value(value)),
                Checked::Array(..) | Checked::Nothing(_) | Checked::Error => {
                    self.as_value(*arg, Use::Printed);
                }
            }
        }
        if values.len() == args.len() {
            self.emit(hir::StmtKind::Print(values), span, out);
        }
    }
}

/// The place of `op=`.
fn sign_span(op: BinaryOp, at: u32) -> Span {
    Span { start: at, end: at + op.symbol().len() as u32 + 1 }
}
