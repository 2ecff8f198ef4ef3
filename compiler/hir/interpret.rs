//! Runs HIR: a judge of the compiler that shares with it only what the operations mean.
//!
//! A machine with two stacks (P. Landin, "The mechanical evaluation of expressions", 1964): one of what is left to do, one
//! of values. Executing a statement or evaluating an expression puts its parts on the first; a call puts the callee's body
//! there, with a new frame of variables. Nothing recurses, so that deep recursion of the program is only a long stack.
//!
//! **in**: HIR with its invariants, the input, limits. **out**: the output and how the run ended. Each part of a statement
//! or expression is one step. Cost: constant a step, but for arrays, which are made and released in linear time.

use super::types::{Arg, ArrayInit, ExprId, ExprKind, FuncId, LogicOp, PrintArg, Program, StmtId, StmtKind, Variable};
use crate::execution::{End, Limits, Machine, Outcome, Stop};
use crate::semantics::{BinaryOp, Scalar, Trap};
use crate::support::span::Span;

/// Runs a program.
pub fn run(program: &Program, input: &[u8], limits: Limits) -> Outcome {
    let mut run = Run {
        program,
        machine: Machine::new(input, limits),
        tasks: Vec::new(),
        values: Vec::new(),
        frames: Vec::new(),
        arrays: Vec::new(),
        free: Vec::new(),
    };
    run.call(program.entry, &[]);
    let end = match run.go() {
        Ok(()) => {
            assert_eq!(run.machine.memory(), 0, "every array is released where its block ends");
            End::Normal
        }
        Err(end) => end,
    };
    run.machine.finish(end)
}

/// The elements of an array; bools are 0 and 1.
struct Array {
    element: Scalar,
    elements: Vec<i64>,
}

/// The variables of a call. A variable of array type holds the array's number.
struct Frame {
    variables: Vec<i64>,
    /// The arrays that live here, oldest first.
    live: Vec<i64>,
}

/// What is left to do, for the call at hand.
#[derive(Clone, Copy)]
enum Task<'p> {
    /// Evaluate an expression: one more value.
    Eval(ExprId),
    /// The operands of an expression are values: compute it.
    Apply(ExprId),
    /// The left side of `&&` or `||` is a value: evaluate the right side if it is needed.
    Decide(LogicOp, ExprId),
    /// Execute the statements of a block, from the number on; so many arrays lived when the block began.
    Block(&'p [StmtId], usize, usize),
    /// The operands of a statement are values: do it.
    Finish(StmtId),
    /// The index of `a[i] op= e` is a value: check it, load the element.
    Load(StmtId),
    /// The condition of an arm is a value: execute the arm, or go on with the next one.
    Arm(StmtId, usize),
    /// Evaluate the condition of a loop again; so many arrays lived outside of it.
    Loop(StmtId, usize),
    /// The condition of the loop is a value.
    LoopBody(StmtId, usize),
    /// Drop a value.
    Drop,
    /// The call ends without a `return`.
    Return,
}

struct Run<'p, 'i> {
    program: &'p Program,
    machine: Machine<'i>,
    tasks: Vec<Task<'p>>,
    values: Vec<i64>,
    frames: Vec<Frame>,
    arrays: Vec<Array>,
    /// Numbers of arrays that have been released.
    free: Vec<i64>,
}

impl<'p> Run<'p, '_> {
    fn go(&mut self) -> Result<(), End> {
        while let Some(task) = self.tasks.pop() {
            self.machine.step().map_err(|stop| stop.at(Span::NONE))?;
            match task {
                Task::Eval(expr) => self.eval(expr)?,
                Task::Apply(expr) => self.apply(expr)?,
                Task::Decide(op, right) => {
                    let left = self.pop();
                    if (left != 0) == (op == LogicOp::And) {
                        self.tasks.push(Task::Eval(right));
                    } else {
                        self.values.push(left);
                    }
                }
                Task::Block(stmts, at, live) => match stmts.get(at) {
                    Some(stmt) => {
                        self.tasks.push(Task::Block(stmts, at + 1, live));
                        self.execute(*stmt);
                    }
                    None => self.release_down_to(live),
                },
                Task::Finish(stmt) => self.finish(stmt)?,
                Task::Load(stmt) => self.load(stmt)?,
                Task::Arm(stmt, number) => self.arm(stmt, number),
                Task::Loop(stmt, live) => {
                    self.tasks.push(Task::LoopBody(stmt, live));
                    if let StmtKind::While { cond, .. } = &self.program.stmts[stmt].kind {
                        self.tasks.push(Task::Eval(*cond));
                    }
                }
                Task::LoopBody(stmt, live) => {
                    if self.pop() != 0 {
                        self.tasks.push(Task::Loop(stmt, live));
                        if let StmtKind::While { body, .. } = &self.program.stmts[stmt].kind {
                            self.push_block(body);
                        }
                    }
                }
                Task::Drop => {
                    self.pop();
                }
                Task::Return => self.leave(),
            }
        }
        Ok(())
    }

    fn pop(&mut self) -> i64 {
        self.values.pop().expect("the value has been computed")
    }

    fn frame(&mut self) -> &mut Frame {
        self.frames.last_mut().expect("a call is active")
    }

    fn variable(&self, variable: Variable) -> i64 {
        self.frames.last().expect("a call is active").variables[variable.as_u32() as usize]
    }

    fn set(&mut self, variable: Variable, value: i64) {
        self.frame().variables[variable.as_u32() as usize] = value;
    }

    fn array(&self, variable: Variable) -> &Array {
        &self.arrays[self.variable(variable) as usize]
    }

    // ---- Calls and blocks

    fn call(&mut self, callee: FuncId, args: &[i64]) {
        let function = &self.program.functions[callee];
        let mut variables = vec![0; function.variables.len()];
        for (param, value) in function.params.iter().zip(args) {
            variables[param.as_u32() as usize] = *value;
        }
        self.frames.push(Frame { variables, live: Vec::new() });
        self.tasks.push(Task::Return);
        self.tasks.push(Task::Block(&function.body, 0, 0));
    }

    /// Ends the call at hand, whose arrays have been released.
    fn leave(&mut self) {
        self.frames.pop();
        if !self.frames.is_empty() {
            self.machine.leave();
        }
    }

    fn push_block(&mut self, stmts: &'p [StmtId]) {
        let live = self.frame().live.len();
        self.tasks.push(Task::Block(stmts, 0, live));
    }

    fn release_down_to(&mut self, live: usize) {
        while self.frame().live.len() > live {
            let number = self.frame().live.pop().expect("it is longer");
            let array = &mut self.arrays[number as usize];
            let elements = std::mem::take(&mut array.elements);
            self.machine.release(array.element, elements.len());
            self.free.push(number);
        }
    }

    /// `break` and `continue`: drops what is left to do in the innermost loop, and with `end` the loop too.
    fn leave_loop(&mut self, end: bool) {
        loop {
            match self.tasks.last() {
                Some(Task::Loop(_, live)) => {
                    let live = *live;
                    self.release_down_to(live);
                    if end {
                        self.tasks.pop();
                    }
                    return;
                }
                Some(_) => {
                    self.tasks.pop();
                }
                None => panic!("`break` and `continue` stand in loops"),
            }
        }
    }

    // ---- Statements

    fn execute(&mut self, stmt: StmtId) {
        let program = self.program;
        match &program.stmts[stmt].kind {
            StmtKind::Let { value, .. } | StmtKind::Assign { value, .. } | StmtKind::Return(Some(value)) => {
                self.tasks.extend([Task::Finish(stmt), Task::Eval(*value)]);
            }
            StmtKind::Return(None) | StmtKind::Break | StmtKind::Continue => self.tasks.push(Task::Finish(stmt)),
            StmtKind::LetArray { init: ArrayInit::Repeat { value, len }, .. } => {
                self.tasks.extend([Task::Finish(stmt), Task::Eval(*len), Task::Eval(*value)]);
            }
            StmtKind::LetArray { init: ArrayInit::List(elements), .. } => {
                self.tasks.push(Task::Finish(stmt));
                self.tasks.extend(elements.iter().rev().map(|element| Task::Eval(*element)));
            }
            StmtKind::Store { index, value, .. } => {
                self.tasks.extend([Task::Finish(stmt), Task::Eval(*value), Task::Eval(*index)]);
            }
            StmtKind::Update { index, value, .. } => {
                self.tasks.extend([Task::Finish(stmt), Task::Eval(*value), Task::Load(stmt), Task::Eval(*index)]);
            }
            StmtKind::If { arms, .. } => self.tasks.extend([Task::Arm(stmt, 0), Task::Eval(arms[0].cond)]),
            StmtKind::While { .. } => {
                let live = self.frame().live.len();
                self.tasks.push(Task::Loop(stmt, live));
            }
            StmtKind::Print(args) => {
                self.tasks.push(Task::Finish(stmt));
                for arg in args.iter().rev() {
                    match arg {
                        PrintArg::Value(value) => self.tasks.push(Task::Eval(*value)),
                        PrintArg::Str(_) => {}
                    }
                }
            }
            StmtKind::Assert(cond) => self.tasks.extend([Task::Finish(stmt), Task::Eval(*cond)]),
            StmtKind::Expr(expr) => {
                let gives = match &program.exprs[*expr].kind {
                    ExprKind::Call { callee, .. } => program.functions[*callee].result.is_some(),
                    _ => true,
                };
                if gives {
                    self.tasks.push(Task::Drop);
                }
                self.tasks.push(Task::Eval(*expr));
            }
            StmtKind::Block(body) => self.push_block(body),
        }
    }

    fn arm(&mut self, stmt: StmtId, number: usize) {
        let program = self.program;
        let StmtKind::If { arms, els } = &program.stmts[stmt].kind else {
            panic!("only `if` has arms");
        };
        if self.pop() != 0 {
            self.push_block(&arms[number].body);
        } else if let Some(next) = arms.get(number + 1) {
            self.tasks.extend([Task::Arm(stmt, number + 1), Task::Eval(next.cond)]);
        } else if let Some(els) = els {
            self.push_block(els);
        }
    }

    /// Does a statement whose operands are values.
    fn finish(&mut self, stmt: StmtId) -> Result<(), End> {
        let program = self.program;
        let data = &program.stmts[stmt];
        let at = |stop: Stop| stop.at(data.span);
        match &data.kind {
            StmtKind::Let { variable, .. } | StmtKind::Assign { variable, .. } => {
                let value = self.pop();
                self.set(*variable, value);
            }
            StmtKind::LetArray { variable, element, init } => {
                let elements = match init {
                    ArrayInit::Repeat { .. } => {
                        let (len, value) = (self.pop(), self.pop());
                        let len = self.machine.allocate(*element, len).map_err(at)?;
                        vec![value; len]
                    }
                    ArrayInit::List(list) => {
                        self.machine.allocate(*element, list.len() as i64).map_err(at)?;
                        self.values.split_off(self.values.len() - list.len())
                    }
                };
                let array = Array { element: *element, elements };
                let number = match self.free.pop() {
                    Some(number) => {
                        self.arrays[number as usize] = array;
                        number
                    }
                    None => {
                        self.arrays.push(array);
                        self.arrays.len() as i64 - 1
                    }
                };
                self.set(*variable, number);
                self.frame().live.push(number);
            }
            StmtKind::Store { array, .. } => {
                let (value, index) = (self.pop(), self.pop());
                let index = self.check(*array, index).map_err(at)?;
                self.store(*array, index, value);
            }
            StmtKind::Update { array, op, op_span, .. } => {
                let (right, left, index) = (self.pop(), self.pop(), self.pop());
                let value = compute(*op, left, right).map_err(|stop| stop.at(*op_span))?;
                self.store(*array, index as usize, value);
            }
            StmtKind::Break => self.leave_loop(true),
            StmtKind::Continue => self.leave_loop(false),
            StmtKind::Return(_) => {
                // The value, if there is one, stays for the caller.
                while !matches!(self.tasks.last(), Some(Task::Return)) {
                    self.tasks.pop();
                }
                self.release_down_to(0);
            }
            StmtKind::Print(args) => self.print(args).map_err(at)?,
            StmtKind::Assert(_) => {
                if self.pop() == 0 {
                    return Err(at(Trap::AssertionFailed.into()));
                }
            }
            StmtKind::If { .. } | StmtKind::While { .. } | StmtKind::Expr(_) | StmtKind::Block(_) => {
                panic!("is done part by part")
            }
        }
        Ok(())
    }

    fn print(&mut self, args: &'p [PrintArg]) -> Result<(), Stop> {
        if args.is_empty() {
            return self.machine.print_str(b"", b'\n');
        }
        let count = args.iter().filter(|arg| matches!(arg, PrintArg::Value(_))).count();
        let values = self.values.split_off(self.values.len() - count);
        let mut values = values.into_iter();
        for (number, arg) in args.iter().enumerate() {
            let end = if number + 1 == args.len() { b'\n' } else { b' ' };
            match arg {
                PrintArg::Str(text) => self.machine.print_str(self.program.strings[*text].as_bytes(), end)?,
                PrintArg::Value(expr) => {
                    let value = values.next().expect("each argument has been evaluated");
                    match self.program.exprs[*expr].ty {
                        Scalar::Int => self.machine.print_int(value, end)?,
                        Scalar::Bool => self.machine.print_bool(value != 0, end)?,
                    }
                }
            }
        }
        Ok(())
    }

    fn check(&self, array: Variable, index: i64) -> Result<usize, Stop> {
        let length = self.array(array).elements.len() as i64;
        if index < 0 || index >= length {
            return Err(Trap::IndexOutOfBounds { index, length }.into());
        }
        Ok(index as usize)
    }

    fn store(&mut self, array: Variable, index: usize, value: i64) {
        let number = self.variable(array) as usize;
        self.arrays[number].elements[index] = value;
    }

    /// The index of `a[i] op= e` stays below the element.
    fn load(&mut self, stmt: StmtId) -> Result<(), End> {
        let data = &self.program.stmts[stmt];
        let StmtKind::Update { array, .. } = &data.kind else {
            panic!("only `op=` loads first");
        };
        let index = *self.values.last().expect("the index has been computed");
        let place = self.check(*array, index).map_err(|stop| stop.at(data.span))?;
        let value = self.array(*array).elements[place];
        self.values.push(value);
        Ok(())
    }

    // ---- Expressions

    fn eval(&mut self, expr: ExprId) -> Result<(), End> {
        let program = self.program;
        let data = &program.exprs[expr];
        match &data.kind {
            ExprKind::Int(value) => self.values.push(*value),
            ExprKind::Bool(value) => self.values.push(i64::from(*value)),
            ExprKind::Variable(variable) => {
                let value = self.variable(*variable);
                self.values.push(value);
            }
            ExprKind::Unary { arg, .. } => self.tasks.extend([Task::Apply(expr), Task::Eval(*arg)]),
            ExprKind::Binary { left, right, .. } | ExprKind::Compare { left, right, .. } => {
                self.tasks.extend([Task::Apply(expr), Task::Eval(*right), Task::Eval(*left)]);
            }
            ExprKind::Logic { op, left, right } => {
                self.tasks.extend([Task::Decide(*op, *right), Task::Eval(*left)]);
            }
            ExprKind::Call { args, .. } => {
                self.tasks.push(Task::Apply(expr));
                for arg in args.iter().rev() {
                    match arg {
                        Arg::Value(value) => self.tasks.push(Task::Eval(*value)),
                        Arg::Array(_) => {}
                    }
                }
            }
            ExprKind::Index { index, .. } => self.tasks.extend([Task::Apply(expr), Task::Eval(*index)]),
            ExprKind::Len(array) => {
                let length = self.array(*array).elements.len() as i64;
                self.values.push(length);
            }
            ExprKind::Read => {
                let value = self.machine.input.read().map_err(|trap| Stop::Trap(trap).at(data.span))?;
                self.values.push(value);
            }
            ExprKind::Eof => {
                let eof = self.machine.input.eof();
                self.values.push(i64::from(eof));
            }
        }
        Ok(())
    }

    /// Computes an expression whose operands are values.
    fn apply(&mut self, expr: ExprId) -> Result<(), End> {
        let program = self.program;
        let data = &program.exprs[expr];
        let at = |stop: Stop| stop.at(data.span);
        let value = match &data.kind {
            ExprKind::Unary { op, .. } => op.eval(self.pop()),
            ExprKind::Binary { op, .. } => {
                let (right, left) = (self.pop(), self.pop());
                compute(*op, left, right).map_err(at)?
            }
            ExprKind::Compare { op, .. } => {
                let (right, left) = (self.pop(), self.pop());
                i64::from(op.eval(left, right))
            }
            ExprKind::Index { array, .. } => {
                let index = self.pop();
                let index = self.check(*array, index).map_err(at)?;
                self.array(*array).elements[index]
            }
            ExprKind::Call { callee, args } => {
                let mut given = vec![0; args.len()];
                for (place, arg) in given.iter_mut().zip(args).rev() {
                    *place = match arg {
                        Arg::Value(_) => self.pop(),
                        Arg::Array(variable) => self.variable(*variable),
                    };
                }
                self.machine.enter().map_err(at)?;
                self.call(*callee, &given);
                return Ok(());
            }
            ExprKind::Int(_)
            | ExprKind::Bool(_)
            | ExprKind::Variable(_)
            | ExprKind::Logic { .. }
            | ExprKind::Len(_)
            | ExprKind::Read
            | ExprKind::Eof => panic!("is computed where it is met"),
        };
        self.values.push(value);
        Ok(())
    }
}

/// The result of an operation; bools are 0 and 1, on which the operations of bools are those of bits.
fn compute(op: BinaryOp, left: i64, right: i64) -> Result<i64, Stop> {
    op.eval(left, right).ok_or(Stop::Trap(Trap::DivisionByZero))
}
