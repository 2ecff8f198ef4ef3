//! Statements.

use super::{Builder, Loop};
use crate::hir::{self, Arm, ArrayInit, ExprId, StmtId, StmtKind};
use crate::ir::types::{Op, Operand, PrintArg, Role, Terminator, Value, Variable};
use crate::semantics::{BinaryOp, Scalar};
use crate::support::span::Span;

impl Builder<'_> {
    /// A block's statements, without freeing what they make.
    pub fn stmts(&mut self, stmts: &[StmtId]) {
        let outside = self.live.len();
        for stmt in stmts {
            if !self.reached {
                // Code behind a `return` stands in a block of its own.
                self.start_dead();
            }
            self.stmt(*stmt);
        }
        if self.reached {
            let span = stmts.last().map_or(Span::NONE, |last| self.program.stmts[*last].span.after());
            self.free_down_to(outside, span);
        }
        self.live.truncate(outside);
    }

    fn start_dead(&mut self) {
        let dead = self.make(Role::Dead);
        self.start(dead);
    }

    fn stmt(&mut self, stmt: StmtId) {
        let program = self.program;
        let hir::Stmt { kind, span } = &program.stmts[stmt];
        let span = *span;
        match kind {
            StmtKind::Let { variable, value } | StmtKind::Assign { variable, value } => {
                self.expr_into(self.values[*variable], *value);
            }
            StmtKind::LetArray { variable, element, init } => self.let_array(*variable, *element, init, span),
            StmtKind::Store { array, index, value } => {
                let array = self.values[*array];
                let index = self.expr(*index);
                let value = self.expr(*value);
                self.check_bounds(array, index, span);
                let element = self.element(array);
                self.emit(Op::Store { element, array: Operand::Value(array), index, value }, span);
            }
            StmtKind::Update { array, index, op, op_span, value } => {
                self.update(self.values[*array], *index, (*op, *op_span), *value, span);
            }
            StmtKind::If { arms, els } => self.if_stmt(arms, els.as_deref(), span),
            StmtKind::While { cond, body, endless } => self.while_stmt(*cond, body, *endless, span),
            StmtKind::Break => self.leave_loop(span, true),
            StmtKind::Continue => self.leave_loop(span, false),
            StmtKind::Return(value) => {
                let value = value.map(|value| self.expr(value));
                self.free_down_to(0, span);
                self.end(Terminator::Return(value), span);
                self.reached = false;
            }
            StmtKind::Print(args) => {
                let mut operands = Vec::with_capacity(args.len());
                for arg in args {
                    operands.push(match arg {
                        hir::PrintArg::Value(value) => PrintArg::Operand(self.expr(*value)),
                        hir::PrintArg::Str(text) => PrintArg::Str(*text),
                    });
                }
                self.emit(Op::Print(operands), span);
            }
            StmtKind::Assert(cond) => {
                let cond = self.expr(*cond);
                self.emit(Op::Assert(cond), span);
            }
            StmtKind::Expr(call) => self.effect(*call),
            StmtKind::Block(body) => self.stmts(body),
        }
    }

    fn let_array(&mut self, variable: Variable, element: Scalar, init: &ArrayInit, span: Span) {
        let array = self.values[variable];
        match init {
            ArrayInit::Repeat { value, len } => {
                let init = self.expr(*value);
                let len = self.expr(*len);
                self.emit_to(array, Op::Array { element, init, len }, span);
            }
            ArrayInit::List(elements) => {
                let values: Vec<Operand> = elements.iter().map(|element| self.expr(*element)).collect();
                let zero = Operand::from_constant(element, 0);
                let len = Operand::Int(values.len() as i64);
                self.emit_to(array, Op::Array { element, init: zero, len }, span);
                for (index, value) in values.into_iter().enumerate() {
                    // The array is made of zeros.
                    if value.constant() == Some(0) {
                        continue;
                    }
                    let index = Operand::Int(index as i64);
                    self.emit(Op::Store { element, array: Operand::Value(array), index, value }, span);
                }
            }
        }
        self.live.push(array);
    }

    /// `a[i] op= e`: the index, the check, the load, the value, the operation, the store.
    fn update(&mut self, array: Value, index: ExprId, (op, op_span): (BinaryOp, Span), value: ExprId, span: Span) {
        let index = self.expr(index);
        self.check_bounds(array, index, span);
        let element = self.element(array);
        let old = self.emit_new(element, Op::Load { element, array: Operand::Value(array), index }, span);
        let value = self.expr(value);
        let new = self.emit_new(element, Op::Binary { op, ty: element, args: [old, value] }, op_span);
        self.emit(Op::Store { element, array: Operand::Value(array), index, value: new }, span);
    }

    fn if_stmt(&mut self, arms: &[Arm], els: Option<&[StmtId]>, span: Span) {
        let end = self.make(Role::IfEnd);
        let mut end_reached = false;
        for (number, arm) in arms.iter().enumerate() {
            let then = self.make(Role::IfThen);
            let last = number + 1 == arms.len();
            let next = if last && els.is_none() { end } else { self.make(Role::IfElse) };
            self.branch(arm.cond, then, next);
            self.start(then);
            self.stmts(&arm.body);
            end_reached |= self.reached;
            if self.reached {
                self.jump(end, span);
            }
            if next == end {
                end_reached = true;
            } else {
                self.start(next);
            }
        }
        if let Some(els) = els {
            self.stmts(els);
            end_reached |= self.reached;
            if self.reached {
                self.jump(end, span);
            }
        }
        if end_reached {
            self.start(end);
        } else {
            self.reached = false;
        }
    }

    fn while_stmt(&mut self, cond: ExprId, body: &[StmtId], endless: bool, span: Span) {
        let head = self.make(Role::WhileCond);
        let inside = self.make(Role::WhileBody);
        let end = self.make(Role::WhileEnd);
        self.jump(head, span);
        self.start(head);
        if endless {
            self.jump(inside, self.program.exprs[cond].span);
        } else {
            self.branch(cond, inside, end);
        }
        self.start(inside);
        self.loops.push(Loop { cond: head, end, live: self.live.len(), has_break: false });
        self.stmts(body);
        let Loop { has_break, .. } = self.loops.pop().expect("it was pushed above");
        if self.reached {
            self.jump(head, span);
        }
        if endless && !has_break {
            // Nothing leads behind the loop.
            self.reached = false;
        } else {
            self.start(end);
        }
    }

    fn leave_loop(&mut self, span: Span, forward: bool) {
        let around = self.loops.last_mut().expect("`break` and `continue` stand in loops");
        around.has_break |= forward;
        let (target, live) = (if forward { around.end } else { around.cond }, around.live);
        self.free_down_to(live, span);
        self.jump(target, span);
        self.reached = false;
    }
}
