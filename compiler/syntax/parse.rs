//! The parser: source → tokens → tree, with recovery from mistakes.
//!
//! Tokens are balanced ([`super::brackets`]), then cut into items — a statement or a function at the top level each — and
//! lalrpop's LR(1) automaton (D. Knuth, "On the translation of languages from left to right", 1965) reads one item at a
//! time. Where an item does not parse, the parser says what stood there instead of what, mends the tokens — a missing `;`
//! or brace is put in, a statement that makes no sense leaves what it declares behind and its blocks — and reads that item
//! again. So one run reports many mistakes, one message each.
//!
//! ```text
//! let a = = 1; print(a);   →   "expected an expression, found `=`"; read again as  let a = ?; print(a);
//! ```
//!
//! **in**: any text. **out**: a tree if there are no mistakes, or a tree with `Error` nodes in their places. Cost: linear;
//! an item with mistakes is read again after each, at most [`MAX_ERRORS`] times and while [`REREAD_BUDGET`] lasts.

use super::actions::Actions;
use super::ast::Ast;
use super::explain::{self, Expected, Place, Repair};
use super::token::{Kind, Token};
use super::{brackets, grammar, lexer};
use crate::support::diagnostics::Diagnostic;
use crate::support::span::{Source, Span};
use lalrpop_util::ParseError;
use std::borrow::Cow;
use std::ops::Range;

/// After so many mistakes the parser gives up.
pub const MAX_ERRORS: usize = 50;

/// How many tokens may be read again after mistakes.
const REREAD_BUDGET: usize = 4_000_000;

/// What parsing has found.
#[derive(Debug)]
pub struct Parsed {
    /// The tokens, as the lexer made them.
    pub tokens: Vec<Token>,
    /// The tree. With mistakes it has `Error` nodes, enough for `check` to find further ones; `None` if the parser gave
    /// up.
    pub ast: Option<Ast>,
    /// The mistakes, in the order of their places.
    pub diagnostics: Vec<Diagnostic>,
}

/// Parses a source file.
pub fn parse(source: &Source) -> Parsed {
    let lexed = lexer::run(source);
    let mut diagnostics = lexed.diagnostics;
    let lexical: Vec<Span> = diagnostics.iter().map(|diagnostic| diagnostic.primary.span).collect();
    let Some(balanced) = brackets::run(source, &lexed.tokens, &lexical, &mut diagnostics) else {
        return Parsed { tokens: lexed.tokens, ast: None, diagnostics };
    };
    let mut ast = Ast::new();
    ast.strings = lexed.strings;
    ast.names = lexed.names;
    let mut parser = Parser {
        source,
        lexical: &lexical,
        actions: Actions::new(source, ast, diagnostics),
        tokens: balanced,
        budget: REREAD_BUDGET,
        last_error: None,
    };
    let complete = parser.run();
    let Actions { ast, mut diagnostics, .. } = parser.actions;
    // Messages follow the source, whichever pass found them; the sort is stable.
    diagnostics.sort_by_key(|diagnostic| diagnostic.primary.span.start);
    diagnostics.truncate(MAX_ERRORS);
    Parsed { tokens: lexed.tokens, ast: complete.then_some(ast), diagnostics }
}

struct Parser<'s, 't> {
    source: &'s Source,
    lexical: &'t [Span],
    actions: Actions<'s>,
    tokens: Cow<'t, [Token]>,
    budget: usize,
    /// Where the last mistake was: two in one place are one.
    last_error: Option<u32>,
}

impl Parser<'_, '_> {
    /// Reads all items; `false` if it gave up.
    fn run(&mut self) -> bool {
        let mut start = 0;
        while start < self.tokens.len() {
            let end = self.item_end(start);
            let reported = self.actions.diagnostics.len();
            let Err(at) = self.read_item(start, end) else {
                start = end;
                continue;
            };
            self.actions.roll_back(reported);
            self.recover(start, end, at);
            if self.actions.diagnostics.len() > MAX_ERRORS || self.budget < end - start {
                return false;
            }
            self.budget -= end - start;
        }
        true
    }

    /// Where the item that begins at `start` ends: behind a `;` or `}` outside of all brackets.
    fn item_end(&self, start: usize) -> usize {
        let tokens = &self.tokens;
        let has_block = matches!(tokens[start].kind, Kind::Fn | Kind::If | Kind::While | Kind::Else | Kind::BraceOpen);
        let mut depth = 0u32;
        for at in start..tokens.len() {
            match tokens[at].kind {
                Kind::ParenOpen | Kind::BracketOpen | Kind::BraceOpen => depth += 1,
                Kind::ParenClose | Kind::BracketClose => depth -= 1,
                Kind::BraceClose if depth == 0 => return at,
                Kind::BraceClose => {
                    depth -= 1;
                    let next = tokens.get(at + 1).map(|token| token.kind);
                    let goes_on = next == Some(Kind::Else) || (!has_block && next == Some(Kind::Semicolon));
                    if depth == 0 && !goes_on {
                        return at + 1;
                    }
                }
                Kind::Semicolon if depth == 0 => return at + 1,
                _ => {}
            }
        }
        tokens.len()
    }

    /// Reads one item; if it does not parse, gives the index of the token that cannot stand where it stands and the
    /// terminals that could.
    fn read_item(&mut self, start: usize, end: usize) -> Result<(), (usize, Vec<String>)> {
        let mut next = start;
        let tokens = &self.tokens;
        let triples = std::iter::from_fn(|| {
            (next < end).then(|| {
                let token = tokens[next];
                next += 1;
                Ok((token.span.start, token.kind, token.span.end))
            })
        });
        match grammar::ItemParser::new().parse(&mut self.actions, triples) {
            Ok(item) => {
                self.actions.finish_item(item);
                Ok(())
            }
            Err(ParseError::UnrecognizedToken { expected, .. }) => Err((next - 1, expected)),
            Err(ParseError::UnrecognizedEof { expected, .. }) => Err((end, expected)),
            Err(ParseError::ExtraToken { .. } | ParseError::InvalidToken { .. } | ParseError::User { .. }) => {
                unreachable!("the token source does not fail, and an item ends where the tokens end")
            }
        }
    }

    /// Reports the mistake at a token of the item and mends the tokens.
    fn recover(&mut self, start: usize, end: usize, (at, expected): (usize, Vec<String>)) {
        let statement = self.statement_around(start, end, at);
        let expected = Expected::new(&expected);
        let (diagnostic, repair) = explain::run(&Place {
            source: self.source,
            tokens: &self.tokens,
            statement: statement.clone(),
            at,
            end,
            expected,
            names: &self.actions.ast.names,
        });
        let place = self.tokens.get(at).map_or(self.source.text.len() as u32, |token| token.span.start);
        // A second message about one place would not help, nor one about a statement with a mistake in a literal.
        let again = self.last_error == Some(place);
        self.last_error = Some(place);
        if !again && !self.has_lexical_mistake(&statement) {
            self.actions.diagnostics.push(diagnostic);
        }
        match repair {
            Some(Repair::Insert(index, kind)) if !again => self.replace(index..index, &[kind]),
            Some(Repair::Embrace(index)) if !again => {
                let behind = self.item_end(index);
                self.replace(behind..behind, &[Kind::BraceClose]);
                self.replace(index..index, &[Kind::BraceOpen]);
            }
            Some(Repair::Insert(..) | Repair::Embrace(_)) | None => {
                self.drop_statement(statement, start..end, at, again)
            }
        }
    }

    /// The tokens of the innermost statement that holds the token at `at`, within an item: from behind the last `;` or
    /// brace to its `;` inclusive, or to the brace that comes first.
    fn statement_around(&self, start: usize, end: usize, at: usize) -> Range<usize> {
        let mut first = start;
        let mut depth = 0u32;
        for index in start..end {
            let (stop, behind) = match self.tokens[index].kind {
                Kind::ParenOpen | Kind::BracketOpen => {
                    depth += 1;
                    continue;
                }
                Kind::ParenClose | Kind::BracketClose => {
                    depth -= 1;
                    continue;
                }
                Kind::Semicolon if depth == 0 => (index + 1, index + 1),
                Kind::BraceOpen | Kind::BraceClose => (index, index + 1),
                _ => continue,
            };
            if index >= at {
                return first..stop;
            }
            first = behind;
        }
        first..end
    }

    fn has_lexical_mistake(&self, statement: &Range<usize>) -> bool {
        let (Some(first), Some(last)) =
            (self.tokens.get(statement.start), self.tokens.get(statement.end.saturating_sub(1)))
        else {
            return false;
        };
        let next = self.lexical.partition_point(|span| span.end < first.span.start);
        self.lexical.get(next).is_some_and(|span| span.start <= last.span.end)
    }

    /// Takes a statement that makes no sense out of the item. What it declares stays, as unknown, and so does the kind of
    /// its block, so that the rest of the file gives no messages because of it. With `whole`, its block goes too.
    fn drop_statement(&mut self, statement: Range<usize>, item: Range<usize>, at: usize, whole: bool) {
        let block_follows = self.tokens.get(statement.end).is_some_and(|token| token.kind == Kind::BraceOpen);
        if whole || statement.is_empty() {
            let behind = if block_follows { self.item_end(statement.end).min(item.end) } else { statement.end };
            let range = if statement.start < behind { statement.start..behind } else { item };
            self.replace(range, &[]);
            return;
        }
        let first = self.tokens[statement.start].kind;
        let second = if statement.len() > 1 { Some(self.tokens[statement.start + 1].kind) } else { None };
        let stray_else = first == Kind::Else && at == statement.start;
        match (first, second) {
            (Kind::Let, Some(Kind::Ident(_))) => {
                self.replace(statement.start + 2..statement.end, &[Kind::Assign, Kind::Bad, Kind::Semicolon]);
            }
            (Kind::Fn, _) => {
                let named = matches!(second, Some(Kind::Ident(_)));
                let mut kinds = vec![Kind::ParenOpen, Kind::Bad, Kind::ParenClose];
                if !named {
                    kinds.insert(0, Kind::Ident(self.actions.ast.names.intern("")));
                }
                if !block_follows {
                    kinds.extend([Kind::BraceOpen, Kind::BraceClose]);
                }
                self.replace(statement.start + 1 + usize::from(named)..statement.end, &kinds);
            }
            (Kind::If | Kind::While, _) if block_follows => {
                self.replace(statement.start + 1..statement.end, &[Kind::Bad]);
            }
            (Kind::Else, _) if block_follows && !stray_else => {
                self.replace(statement.start + 1..statement.end, &[Kind::If, Kind::Bad]);
            }
            (Kind::Ident(symbol), _) if block_follows && explain::is_loop_word(self.actions.ast.names.text(symbol)) => {
                self.replace(statement, &[Kind::While, Kind::Bad]);
            }
            _ => self.replace(statement, &[]),
        }
    }

    /// Replaces tokens by others, which stand at the place of the first one replaced.
    fn replace(&mut self, range: Range<usize>, kinds: &[Kind]) {
        let before = range.start.checked_sub(1).map_or(0, |index| self.tokens[index].span.end);
        let place = match self.tokens.get(range.start) {
            Some(token) if !range.is_empty() => token.span.start,
            Some(_) | None => before,
        };
        let span = Span { start: place, end: place };
        self.tokens.to_mut().splice(range, kinds.iter().map(|kind| Token { kind: *kind, span }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The codes and positions of the mistakes in a text.
    fn mistakes(text: &str) -> Vec<String> {
        let source = Source::new("t.atl", text);
        let parsed = parse(&source);
        parsed.diagnostics.iter().map(|d| format!("{} {}", source.position(d.primary.span.start), d.code)).collect()
    }

    #[test]
    fn several_mistakes_in_one_run() {
        let text = "let a = 1\nlet b = = 2;\nif (a = b) { a++; }\nfn f(x) { print(x,); }\nlet if = 3;\nprint(1;\n";
        assert_eq!(
            mistakes(text),
            ["1:10 E0202", "2:9 E0201", "3:7 E0207", "3:15 E0208", "4:6 E0216", "4:18 E0214", "5:5 E0209", "6:8 E0203"]
        );
    }

    #[test]
    fn one_mistake_gives_one_message() {
        for (text, expected) in [
            ("foo bar baz;", "1:5 E0201"),
            ("for (i = 0; i < 3; i += 1) { break; }", "1:1 E0201"),
            ("for i in x { break; continue; }", "1:1 E0201"),
            ("while (a < 1 { break; }", "1:14 E0203"),
            ("fn f(a int, b) { return a + b; }", "1:8 E0201"),
            ("fn (a: int) { return a; }", "1:4 E0201"),
            ("let x = 12abc + ;", "1:9 E0102"),
            ("print(\"abc);\nprint(2);", "1:7 E0105"),
            ("if true print(1); else { print(2); }", "1:9 E0217"),
            ("if true { } else print(2);", "1:18 E0217"),
            ("else { print(1); }", "1:1 E0201"),
            ("let a = 1 and 2;", "1:11 E0201"),
            ("let mut a = 1;", "1:5 E0201"),
            ("a--;", "1:2 E0208"),
            ("let x = (1 + 2;", "1:15 E0203"),
            ("let x = [1, 2;", "1:14 E0203"),
            ("print(1)", "1:9 E0202"),
            ("{ print(1) }", "1:11 E0202"),
            ("if true { print(1);", "1:9 E0203"),
            ("print(1); }", "1:11 E0204"),
            ("print(1));", "1:9 E0204"),
            ("print(1 < 2 < 3 < 4);", "1:13 E0206"),
            ("let 5 = 1;", "1:5 E0201"),
            ("print(-(9223372036854775808));", "1:9 E0103"),
            ("/* a /* b */", "1:1 E0107"),
            ("\u{e9} = 1; \u{e9} = 2;", "1:1 E0101"),
        ] {
            assert_eq!(mistakes(text), [expected], "{text}");
        }
    }

    #[test]
    fn what_is_right_parses() {
        for text in [
            "",
            "\u{feff}",
            "print(-9223372036854775808);",
            "let a = - 9223372036854775808;",
            "fn f(v: [int], b: bool) -> int { if b { return v[0]; } else if (!b) { } else { } return len(v); }",
            "let a = [0; 3]; a[1] <<= 2; let b: [bool] = [];",
            "/* a /* nested */ */ print('\\u{1F600}', \"\\x7F\\0\\'\"); // end",
            "if a & b { } let x = (a); (a) = 3;",
        ] {
            assert_eq!(mistakes(text), [""; 0], "{text}");
        }
    }

    #[test]
    fn nesting_is_bounded_at_once() {
        for (open, close) in [("(", ")"), ("[", "]"), ("{", "}"), ("-", ""), ("!", "")] {
            let deep = format!("print({}1{});", open.repeat(100_000), close.repeat(100_000));
            let found = mistakes(&deep);
            assert!(found.last().is_some_and(|last| last.ends_with("E0205")), "{open}: {found:?}");
        }
    }
}
