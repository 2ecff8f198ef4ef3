//! Tests of the formatter: random trees print and parse back.

use super::*;
use crate::semantics::{BinaryOp, CompareOp, Scalar};
use crate::support::random::Random;
use crate::syntax::ast::{Arm, Function, LogicOp, Name, Param, TypeKind, TypeSyntax};
use crate::syntax::parse;

/// Makes random trees: what they mean does not matter, only that they could have been parsed.
struct Trees {
    ast: Ast,
    random: Random,
}

impl Trees {
    fn name(&mut self) -> Name {
        let texts = ["a", "b", "x1", "_", "value", "len", "read"];
        let text = texts[self.random.below(texts.len())];
        Name { symbol: self.ast.names.intern(text), span: Span::NONE }
    }

    fn exprs(&mut self, depth: u32, least: usize) -> ExprList {
        let count = least + self.random.below(4);
        let list: Vec<ExprId> = (0..count).map(|_| self.expr(depth)).collect();
        self.ast.make_exprs(&list)
    }

    fn expr(&mut self, depth: u32) -> ExprId {
        let kind = match self.random.below(if depth == 0 { 4 } else { 14 }) {
            0 => ExprKind::Int(match self.random.below(4) {
                0 => i64::MIN,
                1 => i64::MAX,
                2 => -(self.random.below(1000) as i64),
                _ => self.random.below(1000) as i64,
            }),
            1 => ExprKind::Bool(self.random.below(2) == 0),
            2 => ExprKind::Name(self.name().symbol),
            3 => ExprKind::Int(7),
            4 | 5 => {
                let ops = [UnaryOp::Neg, UnaryOp::Not, UnaryOp::BitNot, UnaryOp::IntOfBool];
                let op = ops[self.random.below(4)];
                ExprKind::Unary { op, arg: self.expr(depth - 1) }
            }
            6 => ExprKind::Call { callee: self.name(), args: self.exprs(depth - 1, 0) },
            7 => ExprKind::Index { array: self.name(), bracket: 0, index: self.expr(depth - 1) },
            _ => {
                let op = match self.random.below(4) {
                    0 => InfixOp::Compare(CompareOp::ALL[self.random.below(6)]),
                    1 => InfixOp::Logic(if self.random.below(2) == 0 { LogicOp::And } else { LogicOp::Or }),
                    _ => InfixOp::Binary(BinaryOp::ALL[self.random.below(10)]),
                };
                let left = self.expr(depth - 1);
                ExprKind::Infix { op, at: 0, left, right: self.expr(depth - 1) }
            }
        };
        self.ast.expr(kind, Span::NONE)
    }

    fn ty(&mut self) -> TypeSyntax {
        let scalar = if self.random.below(2) == 0 { Scalar::Int } else { Scalar::Bool };
        let kind = if self.random.below(2) == 0 { TypeKind::Scalar(scalar) } else { TypeKind::Array(scalar) };
        TypeSyntax { kind, span: Span::NONE }
    }

    fn block(&mut self, depth: u32) -> Block {
        let count = self.random.below(4);
        let stmts: Vec<StmtId> = (0..count).map(|_| self.stmt(depth)).collect();
        Block { stmts: self.ast.make_stmts(&stmts), span: Span::NONE }
    }

    fn stmt(&mut self, depth: u32) -> StmtId {
        let kind = match self.random.below(if depth == 0 { 9 } else { 12 }) {
            0 | 1 => {
                let ty = (self.random.below(2) == 0).then(|| self.ty());
                let init = match self.random.below(3) {
                    0 => {
                        let list = self.exprs(2, 0);
                        self.ast.expr(ExprKind::ArrayList(list), Span::NONE)
                    }
                    1 => {
                        let (value, len) = (self.expr(2), self.expr(2));
                        self.ast.expr(ExprKind::ArrayRepeat { value, len }, Span::NONE)
                    }
                    _ => self.expr(4),
                };
                StmtKind::Let { name: self.name(), ty, init }
            }
            2 | 3 => {
                let kind = match self.random.below(2) {
                    0 => ExprKind::Name(self.name().symbol),
                    _ => ExprKind::Index { array: self.name(), bracket: 0, index: self.expr(2) },
                };
                let target = self.ast.expr(kind, Span::NONE);
                let op = (self.random.below(2) == 0).then(|| BinaryOp::ALL[self.random.below(10)]);
                StmtKind::Assign { target, op, at: 0, value: self.expr(5) }
            }
            4 => StmtKind::Break,
            5 => StmtKind::Return((self.random.below(2) == 0).then(|| self.expr(2))),
            6 => {
                let text = self.ast.strings.push("a\"\\\n\t\r\0\u{7f}é😀\u{feff}'{}".to_string());
                let text = self.ast.expr(ExprKind::Str(text), Span::NONE);
                let value = self.expr(2);
                StmtKind::Print(self.ast.make_exprs(&[text, value]))
            }
            7 => StmtKind::Assert(self.expr(3)),
            8 => {
                let call = ExprKind::Call { callee: self.name(), args: self.exprs(2, 0) };
                StmtKind::Expr(self.ast.expr(call, Span::NONE))
            }
            9 => StmtKind::While { cond: self.expr(3), body: self.block(depth - 1) },
            10 => StmtKind::Block(self.block(depth - 1)),
            _ => {
                let count = 1 + self.random.below(3);
                let arms: Vec<Arm> =
                    (0..count).map(|_| Arm { cond: self.expr(3), block: self.block(depth - 1) }).collect();
                let els = (self.random.below(2) == 0).then(|| self.block(depth - 1));
                StmtKind::If { arms: self.ast.make_arms(&arms), els }
            }
        };
        self.ast.stmt(kind, Span::NONE)
    }

    fn function(&mut self) -> StmtId {
        let count = self.random.below(4);
        let params = (0..count).map(|_| Param { name: self.name(), ty: self.ty() }).collect();
        let result = (self.random.below(2) == 0).then(|| self.ty());
        let (name, body) = (self.name(), self.block(3));
        let function = Function { name, params, result, body, span: Span::NONE, broken: false };
        let function = self.ast.functions.push(function);
        self.ast.stmt(StmtKind::Function(function), Span::NONE)
    }
}

#[test]
fn random_trees_print_and_parse_back() {
    for seed in 0..400 {
        let mut trees = Trees { ast: Ast::new(), random: Random::new(seed) };
        for _ in 0..6 {
            let item = if trees.random.below(4) == 0 { trees.function() } else { trees.stmt(3) };
            trees.ast.items.push(item);
        }
        let text = format(&trees.ast);
        let parsed = parse(&Source::new("t.atl", text.clone()));
        assert!(parsed.diagnostics.is_empty(), "seed {seed}: {:?}\n{text}", parsed.diagnostics);
        let ast = parsed.ast.expect("it parses");
        // The listing with all parentheses tells trees apart that the text might not.
        assert_eq!(print_ast(&ast).to_string(), print_ast(&trees.ast).to_string(), "seed {seed}\n{text}");
        assert_eq!(format(&ast), text, "seed {seed}");
    }
}

#[test]
fn parentheses_stand_where_they_are_needed() {
    for (text, canonical) in [
        ("let x=((1+2))*3-(4-5)-6;", "let x = (1 + 2) * 3 - (4 - 5) - 6;\n"),
        ("let x = (a < b) == (c && (d || e));", "let x = (a < b) == (c && (d || e));\n"),
        ("let x = -(-(1)) + ~(a + 1) & !(b);", "let x = --1 + ~(a + 1) & !b;\n"),
        ("let x = -9223372036854775808;", "let x = -9223372036854775808;\n"),
        ("let x = 0xFFFF_FFFF_FFFF_FFFF;", "let x = 0xffffffffffffffff;\n"),
        ("if(a){f((b));}else if b{}else{}", "if a {\n  f(b);\n} else if b {\n} else {\n}\n"),
        ("fn f(v:[int],b:bool)->int{return v[(1)];}", "fn f(v: [int], b: bool) -> int {\n  return v[1];\n}\n"),
    ] {
        let parsed = parse(&Source::new("t.atl", text));
        assert_eq!(format(&parsed.ast.expect("it parses")), canonical);
    }
}

#[test]
fn the_listing_shows_how_operands_are_grouped() {
    let parsed = parse(&Source::new("t.atl", "let x = a + b * c - d << 1;"));
    assert_eq!(print_ast(&parsed.ast.expect("it parses")).to_string(), "let x = ((a + (b * c)) - d) << 1;\n");
}

#[test]
fn tokens_are_listed_with_their_places() {
    let source = Source::new("t.atl", "let x =\n 0x1F;");
    let text = print_tokens(&parse(&source).tokens, &source).to_string();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines,
        [
            "1:1     keyword      let",
            "1:5     identifier   x",
            "1:7     punctuation  =",
            "2:2     integer      0x1F = 31",
            "2:6     punctuation  ;",
        ]
    );
}
