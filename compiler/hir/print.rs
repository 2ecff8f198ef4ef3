//! The HIR as a listing: like source text, with every name unique in its function, every type said, and parentheses
//! around every operation. Expressions are walked in a loop, so that chains of any length print.
//!
//! ```text
//! { let x = y; x += 1; }   →   {
//!                                let x.1: int = y;
//!                                x.1 = x.1 + 1;
//!                              }
//! ```
//!
//! Cost: linear; recursion is as deep as blocks nest.

use super::types::{
    Arg, ArrayInit, ExprId, ExprKind, FuncId, Function, LogicOp, PrintArg, Program, StmtId, StmtKind, Variable,
};
use crate::semantics::UnaryOp;
use crate::support::listing::{Entity, Kind, Line, Listing, Section};
use crate::support::span::Span;

/// The program as a listing, a section for each function.
pub fn print(program: &Program) -> Listing {
    Listing { sections: program.functions.keys().map(|function| print_function(program, function)).collect() }
}

/// One function as a section.
pub fn print_function(program: &Program, id: FuncId) -> Section {
    let function = &program.functions[id];
    let mut printer = Printer { program, function, lines: Vec::new(), line: Line::new(), indent: 0 };
    printer.function(id);
    Section { function: Some(function.name.clone()), lines: printer.lines }
}

/// What is left to print of an expression.
enum Task {
    Expr(ExprId),
    Array(Variable),
    Text(&'static str),
}

struct Printer<'a> {
    program: &'a Program,
    function: &'a Function,
    lines: Vec<Line>,
    /// The line in the making.
    line: Line,
    indent: usize,
}

impl Printer<'_> {
    fn begin(&mut self, span: Span) {
        self.line = Line { span, ..Line::new() };
        if self.indent > 0 {
            self.line.put(Kind::Plain, "  ".repeat(self.indent));
        }
    }

    fn end(&mut self) {
        self.lines.push(std::mem::take(&mut self.line));
    }

    fn text(&mut self, text: &str) -> &mut Self {
        self.line.put(Kind::Plain, text);
        self
    }

    fn keyword(&mut self, text: &str) -> &mut Self {
        self.line.put(Kind::Keyword, text);
        self
    }

    fn variable(&mut self, variable: Variable) -> &mut Self {
        let name = self.function.variables[variable].name.as_str();
        self.line.refer(Kind::Name, name, Entity::Variable(variable.as_u32()));
        self
    }

    fn declaration(&mut self, variable: Variable) -> &mut Self {
        let ty = self.function.variables[variable].ty.to_string();
        self.variable(variable).text(": ").line.put(Kind::Type, ty);
        self
    }

    fn callee(&mut self, function: FuncId) -> &mut Self {
        let name = self.program.functions[function].name.as_str();
        self.line.refer(Kind::Name, name, Entity::Function(function.as_u32()));
        self
    }

    fn function(&mut self, id: FuncId) {
        let function = self.function;
        self.begin(function.span);
        self.keyword("fn").text(" ").callee(id).text("(");
        for (number, param) in function.params.iter().enumerate() {
            self.text(if number == 0 { "" } else { ", " }).declaration(*param);
        }
        self.text(")");
        if let Some(result) = function.result {
            self.text(" -> ").line.put(Kind::Type, result.to_string());
        }
        self.text(" {").end();
        self.block(&function.body);
        self.close();
    }

    fn block(&mut self, stmts: &[StmtId]) {
        self.indent += 1;
        for stmt in stmts {
            self.stmt(*stmt);
        }
        self.indent -= 1;
    }

    fn close(&mut self) {
        self.begin(Span::NONE);
        self.text("}").end();
    }

    fn stmt(&mut self, stmt: StmtId) {
        let program = self.program;
        let data = &program.stmts[stmt];
        self.begin(data.span);
        match &data.kind {
            StmtKind::Let { variable, value } => {
                self.keyword("let").text(" ").declaration(*variable).text(" = ").expr(*value).text(";").end();
            }
            StmtKind::LetArray { variable, init, .. } => {
                self.keyword("let").text(" ").declaration(*variable).text(" = [");
                match init {
                    ArrayInit::Repeat { value, len } => {
                        self.expr(*value).text("; ").expr(*len);
                    }
                    ArrayInit::List(elements) => {
                        for (number, element) in elements.iter().enumerate() {
                            self.text(if number == 0 { "" } else { ", " }).expr(*element);
                        }
                    }
                }
                self.text("];").end();
            }
            StmtKind::Assign { variable, value } => {
                self.variable(*variable).text(" = ").expr(*value).text(";").end();
            }
            StmtKind::Store { array, index, value } => {
                self.variable(*array).text("[").expr(*index).text("] = ").expr(*value).text(";").end();
            }
            StmtKind::Update { array, index, op, value, .. } => {
                let sign = format!("] {}= ", op.symbol());
                self.variable(*array).text("[").expr(*index).text(&sign).expr(*value).text(";").end();
            }
            StmtKind::If { arms, els } => {
                for (number, arm) in arms.iter().enumerate() {
                    if number > 0 {
                        self.begin(program.exprs[arm.cond].span);
                        self.text("} ").keyword("else").text(" ");
                    }
                    self.keyword("if").text(" ").expr(arm.cond).text(" {").end();
                    self.block(&arm.body);
                }
                if let Some(els) = els {
                    self.begin(Span::NONE);
                    self.text("} ").keyword("else").text(" {").end();
                    self.block(els);
                }
                self.close();
            }
            StmtKind::While { cond, body, .. } => {
                self.keyword("while").text(" ").expr(*cond).text(" {").end();
                self.block(body);
                self.close();
            }
            StmtKind::Break => self.keyword("break").text(";").end(),
            StmtKind::Continue => self.keyword("continue").text(";").end(),
            StmtKind::Return(None) => self.keyword("return").text(";").end(),
            StmtKind::Return(Some(value)) => self.keyword("return").text(" ").expr(*value).text(";").end(),
            StmtKind::Print(args) => {
                self.keyword("print").text("(");
                for (number, arg) in args.iter().enumerate() {
                    self.text(if number == 0 { "" } else { ", " });
                    match arg {
                        PrintArg::Value(value) => {
                            self.expr(*value);
                        }
                        PrintArg::Str(text) => {
                            self.line.put(Kind::Literal, format!("\"{}\"", program.strings[*text].escape_default()));
                        }
                    }
                }
                self.text(");").end();
            }
            StmtKind::Assert(cond) => self.keyword("assert").text("(").expr(*cond).text(");").end(),
            StmtKind::Expr(call) => self.expr(*call).text(";").end(),
            StmtKind::Block(body) => {
                self.text("{").end();
                self.block(body);
                self.close();
            }
        }
    }

    fn expr(&mut self, root: ExprId) -> &mut Self {
        let program = self.program;
        let mut tasks = vec![Task::Expr(root)];
        while let Some(task) = tasks.pop() {
            let expr = match task {
                Task::Text(text) => {
                    self.text(text);
                    continue;
                }
                Task::Array(variable) => {
                    self.variable(variable);
                    continue;
                }
                Task::Expr(expr) => expr,
            };
            match &program.exprs[expr].kind {
                ExprKind::Int(value) => {
                    self.line.put(Kind::Literal, value.to_string());
                }
                ExprKind::Bool(value) => {
                    self.line.put(Kind::Literal, value.to_string());
                }
                ExprKind::Variable(variable) => {
                    self.variable(*variable);
                }
                ExprKind::Unary { op: UnaryOp::IntOfBool, arg } => {
                    self.line.put(Kind::Type, "int");
                    self.text("(");
                    tasks.extend([Task::Text(")"), Task::Expr(*arg)]);
                }
                ExprKind::Unary { op, arg } => {
                    self.text(op.symbol());
                    tasks.push(Task::Expr(*arg));
                }
                ExprKind::Binary { op, left, right } => self.infix(&mut tasks, root, expr, op.symbol(), *left, *right),
                ExprKind::Compare { op, left, right } => self.infix(&mut tasks, root, expr, op.symbol(), *left, *right),
                ExprKind::Logic { op, left, right } => {
                    let symbol = match op {
                        LogicOp::And => "&&",
                        LogicOp::Or => "||",
                    };
                    self.infix(&mut tasks, root, expr, symbol, *left, *right);
                }
                ExprKind::Call { callee, args } => {
                    self.callee(*callee).text("(");
                    tasks.push(Task::Text(")"));
                    for (number, arg) in args.iter().enumerate().rev() {
                        tasks.push(match arg {
                            Arg::Value(value) => Task::Expr(*value),
                            Arg::Array(variable) => Task::Array(*variable),
                        });
                        if number > 0 {
                            tasks.push(Task::Text(", "));
                        }
                    }
                }
                ExprKind::Index { array, index } => {
                    self.variable(*array).text("[");
                    tasks.extend([Task::Text("]"), Task::Expr(*index)]);
                }
                ExprKind::Len(array) => {
                    self.keyword("len").text("(").variable(*array).text(")");
                }
                ExprKind::Read => {
                    self.keyword("read").text("()");
                }
                ExprKind::Eof => {
                    self.keyword("eof").text("()");
                }
            }
        }
        self
    }

    fn infix(
        &mut self,
        tasks: &mut Vec<Task>,
        root: ExprId,
        expr: ExprId,
        symbol: &'static str,
        left: ExprId,
        right: ExprId,
    ) {
        if expr != root {
            self.text("(");
            tasks.push(Task::Text(")"));
        }
        tasks.extend([Task::Expr(right), Task::Text(" "), Task::Text(symbol), Task::Text(" "), Task::Expr(left)]);
    }
}
