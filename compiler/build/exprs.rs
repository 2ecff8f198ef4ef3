//! Expressions: to operands, and conditions to branches.

use super::Builder;
use crate::hir::{Arg, Expr, ExprId, ExprKind, LogicOp};
use crate::ir::types::{Block, Edge, Op, Operand, Role, Terminator, Type, Value};
use crate::semantics::{Scalar, UnaryOp};
use crate::support::span::Span;
use smallvec::{SmallVec, smallvec};

/// What is left to do of an expression.
enum Task {
    /// Evaluate it.
    Visit(ExprId),
    /// Its operands are evaluated: compute it.
    Finish(ExprId),
}

/// What is left to do of a condition.
enum Step {
    /// Go to the first block if it holds, else to the second.
    Branch(ExprId, Block, Block),
    /// Go on in this block.
    Start(Block),
}

type Operands = SmallVec<[Operand; 8]>;

impl Builder<'_> {
    /// Evaluates an expression.
    pub fn expr(&mut self, root: ExprId) -> Operand {
        self.evaluate(root, None)
    }

    /// Evaluates an expression into a variable. The variable is assigned last, so that the expression may read it.
    pub fn expr_into(&mut self, variable: Value, root: ExprId) {
        let operand = self.evaluate(root, Some(variable));
        if operand != Operand::Value(variable) || self.is_variable(root) {
            self.emit_to(variable, Op::Copy(operand), self.program.exprs[root].span);
        }
    }

    fn is_variable(&self, expr: ExprId) -> bool {
        matches!(self.program.exprs[expr].kind, ExprKind::Variable(_))
    }

    /// Evaluates an expression for its effect.
    pub fn effect(&mut self, call: ExprId) {
        let program = self.program;
        if let Expr { kind: ExprKind::Call { callee, args }, span, .. } = &program.exprs[call]
            && program.functions[*callee].result.is_none()
        {
            let args = args
                .iter()
                .map(|arg| match arg {
                    Arg::Value(value) => self.expr(*value),
                    Arg::Array(variable) => Operand::Value(self.values[*variable]),
                })
                .collect();
            self.emit(Op::Call { callee: *callee, args }, *span);
            return;
        }
        self.expr(call);
    }

    /// Evaluates an expression in a loop over its nodes: operands left to right, then what uses them. If the root is an
    /// instruction, its result is `target` where one is given.
    fn evaluate(&mut self, root: ExprId, target: Option<Value>) -> Operand {
        let program = self.program;
        let mut tasks: SmallVec<[Task; 8]> = smallvec![Task::Visit(root)];
        let mut operands = Operands::new();
        while let Some(task) = tasks.pop() {
            match task {
                Task::Visit(id) => {
                    let expr = &program.exprs[id];
                    match &expr.kind {
                        ExprKind::Int(value) => operands.push(Operand::Int(*value)),
                        ExprKind::Bool(value) => operands.push(Operand::Bool(*value)),
                        ExprKind::Variable(variable) => operands.push(Operand::Value(self.values[*variable])),
                        ExprKind::Logic { op, left, right } => {
                            operands.push(self.logic(*op, *left, *right, expr.span));
                        }
                        ExprKind::Unary { arg, .. } | ExprKind::Index { index: arg, .. } => {
                            tasks.push(Task::Finish(id));
                            tasks.push(Task::Visit(*arg));
                        }
                        ExprKind::Binary { left, right, .. } | ExprKind::Compare { left, right, .. } => {
                            tasks.push(Task::Finish(id));
                            tasks.push(Task::Visit(*right));
                            tasks.push(Task::Visit(*left));
                        }
                        ExprKind::Call { args, .. } => {
                            tasks.push(Task::Finish(id));
                            for arg in args.iter().rev() {
                                if let Arg::Value(value) = arg {
                                    tasks.push(Task::Visit(*value));
                                }
                            }
                        }
                        ExprKind::Len(_) | ExprKind::Read | ExprKind::Eof => tasks.push(Task::Finish(id)),
                    }
                }
                Task::Finish(id) => {
                    let expr = &program.exprs[id];
                    let target = if id == root { target } else { None };
                    let result = self.finish(expr, &mut operands, target);
                    operands.push(result);
                }
            }
        }
        operands.pop().expect("an expression gives one operand")
    }

    /// The operation of an expression whose operands have been evaluated.
    fn finish(&mut self, expr: &Expr, operands: &mut Operands, target: Option<Value>) -> Operand {
        let mut pop = || operands.pop().expect("operands have been evaluated");
        let op = match &expr.kind {
            ExprKind::Int(_) | ExprKind::Bool(_) | ExprKind::Variable(_) | ExprKind::Logic { .. } => {
                unreachable!("is evaluated where it is met")
            }
            ExprKind::Unary { op, .. } => match (*op, pop()) {
                // A negative number is a constant.
                (UnaryOp::Neg, Operand::Int(value)) => return Operand::Int(UnaryOp::Neg.eval(value)),
                (op, arg) => Op::Unary { op, arg },
            },
            ExprKind::Binary { op, .. } => {
                let (right, left) = (pop(), pop());
                Op::Binary { op: *op, ty: expr.ty, args: [left, right] }
            }
            ExprKind::Compare { op, .. } => {
                let (right, left) = (pop(), pop());
                Op::Compare { op: *op, args: [left, right] }
            }
            ExprKind::Call { callee, args } => {
                let values = args.iter().filter(|arg| matches!(arg, Arg::Value(_))).count();
                let mut given = operands.drain(operands.len() - values..);
                let args = args
                    .iter()
                    .map(|arg| match arg {
                        Arg::Value(_) => given.next().expect("each value has been evaluated"),
                        Arg::Array(variable) => Operand::Value(self.values[*variable]),
                    })
                    .collect();
                Op::Call { callee: *callee, args }
            }
            ExprKind::Index { array, .. } => {
                let index = pop();
                let array = self.values[*array];
                self.check_bounds(array, index, expr.span);
                Op::Load { element: expr.ty, array: Operand::Value(array), index }
            }
            ExprKind::Len(array) => Op::Len(Operand::Value(self.values[*array])),
            ExprKind::Read => Op::Read,
            ExprKind::Eof => Op::Eof,
        };
        match target {
            Some(target) => {
                self.emit_to(target, op, expr.span);
                Operand::Value(target)
            }
            None => self.emit_new(expr.ty, op, expr.span),
        }
    }

    /// Traps unless the index is in bounds.
    pub fn check_bounds(&mut self, array: Value, index: Operand, span: Span) {
        let len = self.emit_new(Scalar::Int, Op::Len(Operand::Value(array)), span);
        self.emit(Op::Bounds { index, len }, span);
    }

    /// The element type of an array.
    pub fn element(&self, array: Value) -> Scalar {
        match self.function.values[array].ty {
            Type::Array(element) => element,
            Type::Scalar(_) => panic!("{array} is no array"),
        }
    }

    /// `&&` and `||` as a value: what the left side decides, unless the right side is needed.
    fn logic(&mut self, op: LogicOp, left: ExprId, right: ExprId, span: Span) -> Operand {
        let result = self.function.make_value(Type::BOOL, None);
        let need_right = self.make(Role::LogicRight);
        let end = self.make(Role::LogicEnd);
        match op {
            LogicOp::And => {
                self.emit_to(result, Op::Copy(Operand::Bool(false)), span);
                self.branch(left, need_right, end);
            }
            LogicOp::Or => {
                self.emit_to(result, Op::Copy(Operand::Bool(true)), span);
                self.branch(left, end, need_right);
            }
        }
        self.start(need_right);
        self.expr_into(result, right);
        self.jump(end, span);
        self.start(end);
        Operand::Value(result)
    }

    /// Ends the block at hand: goes to `then` if the condition holds, else to `els`. `&&`, `||` and `!` only choose targets.
    pub fn branch(&mut self, cond: ExprId, then: Block, els: Block) {
        let program = self.program;
        let mut steps: SmallVec<[Step; 8]> = smallvec![Step::Branch(cond, then, els)];
        while let Some(step) = steps.pop() {
            let (cond, then, els) = match step {
                Step::Start(block) => {
                    self.start(block);
                    continue;
                }
                Step::Branch(cond, then, els) => (cond, then, els),
            };
            match &program.exprs[cond].kind {
                ExprKind::Logic { op, left, right } => {
                    let need_right = self.make(Role::LogicRight);
                    let (when_true, when_false) = match op {
                        LogicOp::And => (need_right, els),
                        LogicOp::Or => (then, need_right),
                    };
                    steps.push(Step::Branch(*right, then, els));
                    steps.push(Step::Start(need_right));
                    steps.push(Step::Branch(*left, when_true, when_false));
                }
                ExprKind::Unary { op: UnaryOp::Not, arg } => steps.push(Step::Branch(*arg, els, then)),
                ExprKind::Int(_)
                | ExprKind::Bool(_)
                | ExprKind::Variable(_)
                | ExprKind::Unary { .. }
                | ExprKind::Binary { .. }
                | ExprKind::Compare { .. }
                | ExprKind::Call { .. }
                | ExprKind::Index { .. }
                | ExprKind::Len(_)
                | ExprKind::Read
                | ExprKind::Eof => {
                    let span = program.exprs[cond].span;
                    let cond = self.expr(cond);
                    self.end(Terminator::Branch { cond, then: Edge::to(then), els: Edge::to(els) }, span);
                }
            }
        }
    }
}
