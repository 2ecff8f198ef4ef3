//! The tree as source text: canonical spelling, and the listing that shows how the parser has grouped operands.
//!
//! [`format`] puts parentheses only where the tree needs them, so that parsing its text gives the same tree;
//! [`print_ast`] puts them around every operation. Expressions are walked in a loop, so that chains of any length print.
//!
//! ```text
//! let x=(1+2)*3 ;   →   let x = (1 + 2) * 3;        (listing: let x = ((1 + 2) * 3);)
//! ```
//!
//! **in**: a tree. **out**: its text, which parses to the same tree if the tree has no `Error` nodes (they print as `?`).
//! Cost: linear; recursion is as deep as blocks nest.

use super::ast::{Ast, Block, ExprId, ExprKind, ExprList, FnId, InfixOp, StmtId, StmtKind};
use super::token::{Kind as TokenKind, Token};
use crate::semantics::UnaryOp;
use crate::support::intern::Symbol;
use crate::support::listing::{Kind, Line, Listing, Section};
use crate::support::span::{Source, Span};

/// The tree as canonical source text.
pub fn format(ast: &Ast) -> String {
    lines(ast, false).iter().map(|line| line.text() + "\n").collect()
}

/// The tree as a listing with parentheses around every operation.
pub fn print_ast(ast: &Ast) -> Listing {
    Listing::plain(lines(ast, true))
}

/// The tokens as a listing, one a line: where it stands, what class it is of, and its text.
pub fn print_tokens(tokens: &[Token], source: &Source) -> Listing {
    let lines = tokens.iter().map(|token| {
        let mut line = Line { span: token.span, ..Line::new() };
        let text = &source.text[token.span.range()];
        let (class, kind) = match token.kind {
            TokenKind::Ident(_) => ("identifier", Kind::Name),
            TokenKind::Int(_) | TokenKind::IntMin => ("integer", Kind::Literal),
            TokenKind::Str(_) => ("string", Kind::Literal),
            TokenKind::Bad => ("mistake", Kind::Plain),
            TokenKind::IntType | TokenKind::BoolType => ("keyword", Kind::Type),
            other if other.is_keyword() => ("keyword", Kind::Keyword),
            _ => ("punctuation", Kind::Plain),
        };
        line.put(Kind::Plain, format!("{:<8}", source.position(token.span.start).to_string()));
        line.put(Kind::Plain, format!("{class:<12} "));
        line.put(kind, text);
        if let (TokenKind::Int(value), false) = (token.kind, text.bytes().all(|b| b.is_ascii_digit())) {
            line.put(Kind::Comment, format!(" = {value}"));
        }
        line
    });
    Listing { sections: vec![Section { function: None, lines: lines.collect() }] }
}

fn lines(ast: &Ast, explicit: bool) -> Vec<Line> {
    let mut printer = Printer { ast, explicit, lines: Vec::new(), line: Line::new(), indent: 0 };
    for item in &ast.items {
        printer.stmt(*item);
    }
    printer.lines
}

/// What is left to print of an expression.
enum Task {
    /// This one, in parentheses if it binds looser than this.
    Expr(ExprId, u8),
    /// Punctuation or an operator.
    Text(&'static str),
}

/// Prefix operators bind tighter than every operator between operands.
const PREFIX: u8 = 9;

struct Printer<'a> {
    ast: &'a Ast,
    /// Are there parentheses around every operation?
    explicit: bool,
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

    fn name(&mut self, symbol: Symbol) -> &mut Self {
        self.line.put(Kind::Name, self.ast.names.text(symbol));
        self
    }

    fn stmt(&mut self, stmt: StmtId) {
        let data = self.ast.stmts[stmt];
        if let StmtKind::Function(function) = data.kind {
            return self.function(function);
        }
        self.begin(data.span);
        match data.kind {
            StmtKind::Let { name, ty, init } => {
                self.keyword("let").text(" ").name(name.symbol);
                if let Some(ty) = ty {
                    self.text(": ").line.put(Kind::Type, ty.kind.to_string());
                }
                self.text(" = ").expr(init).text(";").end();
            }
            StmtKind::Assign { target, op, value, .. } => {
                let sign = op.map_or("", |op| op.symbol());
                self.expr(target).text(&format!(" {sign}= ")).expr(value).text(";").end();
            }
            StmtKind::If { arms, els } => {
                let ast = self.ast;
                for (number, arm) in ast.arm_list(arms).iter().enumerate() {
                    if number > 0 {
                        self.begin(ast.exprs[arm.cond].span);
                        self.text("} ").keyword("else").text(" ");
                    }
                    self.keyword("if").text(" ").expr(arm.cond).text(" {").end();
                    self.block(arm.block);
                }
                if let Some(els) = els {
                    self.begin(els.span);
                    self.text("} ").keyword("else").text(" {").end();
                    self.block(els);
                }
                self.close();
            }
            StmtKind::While { cond, body } => {
                self.keyword("while").text(" ").expr(cond).text(" {").end();
                self.block(body);
                self.close();
            }
            StmtKind::Break => self.keyword("break").text(";").end(),
            StmtKind::Continue => self.keyword("continue").text(";").end(),
            StmtKind::Return(None) => self.keyword("return").text(";").end(),
            StmtKind::Return(Some(value)) => self.keyword("return").text(" ").expr(value).text(";").end(),
            StmtKind::Print(args) => {
                self.keyword("print").text("(");
                self.list(args);
                self.text(");").end();
            }
            StmtKind::Assert(cond) => self.keyword("assert").text("(").expr(cond).text(");").end(),
            StmtKind::Expr(expr) => self.expr(expr).text(";").end(),
            StmtKind::Block(block) => {
                self.text("{").end();
                self.block(block);
                self.close();
            }
            StmtKind::Function(_) => unreachable!("printed above"),
            StmtKind::Error => self.text("?;").end(),
        }
    }

    fn function(&mut self, function: FnId) {
        let data = &self.ast.functions[function];
        self.begin(data.name.span);
        self.keyword("fn").text(" ").name(data.name.symbol).text("(");
        for (number, param) in data.params.iter().enumerate() {
            self.text(if number == 0 { "" } else { ", " }).name(param.name.symbol).text(": ");
            self.line.put(Kind::Type, param.ty.kind.to_string());
        }
        self.text(")");
        if let Some(result) = data.result {
            self.text(" -> ").line.put(Kind::Type, result.kind.to_string());
        }
        self.text(" {").end();
        self.block(data.body);
        self.close();
    }

    /// The statements of a block, without its braces.
    fn block(&mut self, block: Block) {
        let ast = self.ast;
        self.indent += 1;
        for stmt in ast.stmt_list(block.stmts) {
            self.stmt(*stmt);
        }
        self.indent -= 1;
    }

    fn close(&mut self) {
        self.begin(Span::NONE);
        self.text("}").end();
    }

    fn list(&mut self, list: ExprList) {
        let ast = self.ast;
        for (number, expr) in ast.expr_list(list).iter().enumerate() {
            self.text(if number == 0 { "" } else { ", " }).expr(*expr);
        }
    }

    fn expr(&mut self, root: ExprId) -> &mut Self {
        let ast = self.ast;
        let mut tasks = vec![Task::Expr(root, 0)];
        while let Some(task) = tasks.pop() {
            let (expr, around) = match task {
                Task::Text(text) => {
                    self.text(text);
                    continue;
                }
                Task::Expr(expr, around) => (expr, around),
            };
            match ast.exprs[expr].kind {
                ExprKind::Int(value) => {
                    // A number below zero can only have been a pattern of bits.
                    let text = if value < 0 { format!("{value:#x}") } else { value.to_string() };
                    self.line.put(Kind::Literal, text);
                }
                ExprKind::Bool(value) => {
                    self.line.put(Kind::Literal, value.to_string());
                }
                ExprKind::Str(text) => {
                    self.line.put(Kind::Literal, quote(&ast.strings[text]));
                }
                ExprKind::Name(symbol) => {
                    self.name(symbol);
                }
                ExprKind::Unary { op: UnaryOp::IntOfBool, arg } => {
                    self.line.put(Kind::Type, "int");
                    self.text("(");
                    tasks.extend([Task::Text(")"), Task::Expr(arg, 0)]);
                }
                ExprKind::Unary { op, arg } => {
                    self.text(op.symbol());
                    if op == UnaryOp::Neg && ast.exprs[arg].kind == ExprKind::Int(i64::MIN) {
                        self.line.put(Kind::Literal, i64::MIN.unsigned_abs().to_string());
                    } else {
                        tasks.push(Task::Expr(arg, PREFIX));
                    }
                }
                ExprKind::Infix { op, left, right, .. } => {
                    let own = op.precedence();
                    let parentheses = own < around || (self.explicit && expr != root);
                    if parentheses {
                        self.text("(");
                        tasks.push(Task::Text(")"));
                    }
                    let chains = !matches!(op, InfixOp::Compare(_));
                    tasks.push(Task::Expr(right, own + 1));
                    tasks.push(Task::Text(" "));
                    tasks.push(Task::Text(op.symbol()));
                    tasks.push(Task::Text(" "));
                    tasks.push(Task::Expr(left, if chains { own } else { own + 1 }));
                }
                ExprKind::Call { callee, args } => {
                    self.name(callee.symbol).text("(");
                    self.push_list(&mut tasks, args, ")");
                }
                ExprKind::Index { array, index, .. } => {
                    self.name(array.symbol).text("[");
                    tasks.extend([Task::Text("]"), Task::Expr(index, 0)]);
                }
                ExprKind::ArrayList(elements) => {
                    self.text("[");
                    self.push_list(&mut tasks, elements, "]");
                }
                ExprKind::ArrayRepeat { value, len } => {
                    self.text("[");
                    tasks.extend([Task::Text("]"), Task::Expr(len, 0), Task::Text("; "), Task::Expr(value, 0)]);
                }
                ExprKind::Error => {
                    self.text("?");
                }
            }
        }
        self
    }

    fn push_list(&self, tasks: &mut Vec<Task>, list: ExprList, close: &'static str) {
        tasks.push(Task::Text(close));
        for (number, expr) in self.ast.expr_list(list).iter().enumerate().rev() {
            tasks.push(Task::Expr(*expr, 0));
            if number > 0 {
                tasks.push(Task::Text(", "));
            }
        }
    }
}

/// A string as a literal.
pub fn quote(text: &str) -> String {
    let mut literal = String::from("\"");
    for character in text.chars() {
        match character {
            '\n' => literal.push_str("\\n"),
            '\r' => literal.push_str("\\r"),
            '\t' => literal.push_str("\\t"),
            '\0' => literal.push_str("\\0"),
            '\\' => literal.push_str("\\\\"),
            '"' => literal.push_str("\\\""),
            c if c.is_control() || c == '\u{feff}' => literal.push_str(&format!("\\u{{{:X}}}", u32::from(c))),
            c => literal.push(c),
        }
    }
    literal.push('"');
    literal
}

#[cfg(test)]
#[path = "format_tests.rs"]
mod tests;
