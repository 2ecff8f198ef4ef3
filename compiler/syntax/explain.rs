//! What to say about a token that cannot stand where it stands, and how to mend the tokens so that parsing goes on.
//!
//! The automaton knows only which terminals could have come next. What people need is the mistake behind it, and that
//! shows in the tokens around: a line that ends where a `;` could stand lacks it; `else` where no `if` went before; a
//! keyword after `let`. The rules stand in order, the surest first; the last one names what could stand there.

use super::token::{Kind, Token};
use crate::support::codes;
use crate::support::diagnostics::Diagnostic;
use crate::support::intern::Interner;
use crate::support::span::{Source, Span};
use std::ops::Range;

/// How the tokens are mended.
pub enum Repair {
    /// Put a token in before this index.
    Insert(usize, Kind),
    /// Put the statement that begins at this index in braces.
    Embrace(usize),
}

/// What could have stood there.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Expected {
    expression: bool,
    operator: bool,
    name: bool,
    ty: bool,
    semicolon: bool,
    comma: bool,
    colon: bool,
    assign: bool,
    arrow: bool,
    paren_open: bool,
    paren_close: bool,
    bracket_close: bool,
    brace_open: bool,
    statement: bool,
    else_: bool,
}

impl Expected {
    /// From the names of terminals.
    pub fn new(terminals: &[String]) -> Expected {
        let has = |name: &str| terminals.iter().any(|terminal| terminal.trim_matches('"') == name);
        Expected {
            expression: has("INT"),
            operator: has("*"),
            name: has("IDENT") && !has("INT") && !has("int"),
            ty: has("bool"),
            semicolon: has(";"),
            comma: has(","),
            colon: has(":"),
            assign: has("="),
            arrow: has("->"),
            paren_open: has("("),
            paren_close: has(")"),
            bracket_close: has("]"),
            brace_open: has("{"),
            statement: has("let"),
            else_: has("else"),
        }
    }
}

/// Where the parser stopped.
pub struct Place<'a> {
    /// The source.
    pub source: &'a Source,
    /// All tokens.
    pub tokens: &'a [Token],
    /// The statement around.
    pub statement: Range<usize>,
    /// The token that cannot stand there; the item's end if tokens are missing.
    pub at: usize,
    /// The item's end.
    pub end: usize,
    /// What could.
    pub expected: Expected,
    /// The identifiers.
    pub names: &'a Interner,
}

/// Is it how other languages begin a loop?
pub fn is_loop_word(word: &str) -> bool {
    matches!(word, "for" | "foreach" | "loop" | "until" | "do" | "repeat")
}

impl Place<'_> {
    fn found(&self) -> Option<Token> {
        (self.at < self.end).then(|| self.tokens[self.at])
    }

    fn before(&self, back: usize) -> Option<Token> {
        self.at.checked_sub(back).map(|index| self.tokens[index])
    }

    fn span(&self) -> Span {
        match self.found() {
            Some(token) => token.span,
            None => self.before(1).map_or(Span::new(0, 0), |token| token.span.after()),
        }
    }

    fn word(&self, token: Token) -> &str {
        match token.kind {
            Kind::Ident(symbol) => self.names.text(symbol),
            other => other.text(),
        }
    }

    fn describe(&self, token: Option<Token>) -> String {
        match token {
            None => "the end of the file".to_string(),
            Some(token) => match token.kind {
                Kind::Ident(symbol) => format!("`{}`", self.names.text(symbol)),
                Kind::Str(_) => "a string".to_string(),
                Kind::Int(_) | Kind::IntMin | Kind::Bad => format!("`{}`", &self.source.text[token.span.range()]),
                kind if kind.is_keyword() => format!("the keyword `{}`", kind.text()),
                kind => format!("`{}`", kind.text()),
            },
        }
    }

    /// Does the token begin a line, so that what stands before it may well be complete?
    fn begins_line(&self) -> bool {
        match (self.before(1), self.found()) {
            (Some(before), Some(found)) => {
                self.source.line_of(before.span.end.max(1) - 1) < self.source.line_of(found.span.start)
            }
            (Some(_), None) => true,
            (None, _) => false,
        }
    }

    fn list(&self) -> String {
        let e = self.expected;
        let mut list = Vec::new();
        let mut add = |yes: bool, text: &str| {
            if yes {
                list.push(text.to_string());
            }
        };
        add(e.statement, "a statement");
        add(e.expression && !e.statement, "an expression");
        add(e.ty && !e.expression, "a type");
        add(e.name && !e.ty, "a name");
        add(e.paren_open && !e.expression && !e.operator, "`(`");
        add(e.colon, "`:`");
        add(e.assign && !e.operator, "`=`");
        add(e.comma, "`,`");
        add(e.arrow, "`->`");
        add(e.brace_open && !e.statement, "`{`");
        let lacks_value = e.assign && e.colon;
        add(e.semicolon && !lacks_value && !(e.statement || e.expression), "`;`");
        add(e.paren_close && !e.expression, "`)`");
        add(e.bracket_close && !e.expression, "`]`");
        if e.operator && list.len() < 2 {
            list.insert(0, "an operator".to_string());
        }
        match list.split_last() {
            None => "something else".to_string(),
            Some((last, [])) => last.clone(),
            Some((last, rest)) => format!("{} or {last}", rest.join(", ")),
        }
    }
}

/// The message and the repair, if there is a better one than to leave the statement out.
pub fn run(place: &Place) -> (Diagnostic, Option<Repair>) {
    let expected = place.expected;
    let found = place.found();
    let kind = found.map(|token| token.kind);
    let span = place.span();
    let before = place.before(1).filter(|_| place.at > 0);
    let before_kind = before.map(|token| token.kind);

    if let (true, Some(token), Some(kind)) = (expected.name, found, kind)
        && kind.is_keyword()
    {
        let text = kind.text();
        let diagnostic = Diagnostic::error(
            codes::KEYWORD_AS_NAME,
            token.span,
            format!("`{text}` is a keyword and cannot be a name"),
        )
        .label("a keyword")
        .help(format!("choose another name, such as `{text}_`"));
        return (diagnostic, None);
    }
    if let Some(result) = missing_semicolon(place) {
        return result;
    }
    if kind == Some(Kind::Else) && place.at == place.statement.start {
        let diagnostic = Diagnostic::error(codes::SYNTAX, span, "`else` without an `if`")
            .label("belongs to no `if`")
            .note("`else` follows the `}` of an `if` or of an `else if`");
        return (diagnostic, None);
    }
    if let Some(result) = braces_required(place) {
        return result;
    }
    if let Some(diagnostic) = increment(place) {
        return (diagnostic, None);
    }
    if let Some(diagnostic) = foreign_word(place) {
        return (diagnostic, None);
    }

    let mut diagnostic =
        Diagnostic::error(codes::SYNTAX, span, format!("expected {}, found {}", place.list(), place.describe(found)))
            .label("unexpected");
    match kind {
        Some(Kind::Plus) if expected.expression => diagnostic = diagnostic.note("there is no unary `+`"),
        Some(Kind::Colon) if expected.operator => {
            diagnostic = diagnostic.help("a variable is declared by `let`: `let x: int = 0;`");
        }
        Some(Kind::Assign) if expected.operator => diagnostic = diagnostic.help("to compare, write `==`"),
        Some(Kind::Str(_)) if expected.operator => {
            diagnostic = diagnostic.note("between two operands stands an operator");
        }
        Some(_) | None => {}
    }
    if before_kind == Some(Kind::IntType) && expected.paren_open && matches!(kind, Some(Kind::Ident(_))) {
        diagnostic = diagnostic.help("a variable is declared by `let`: `let x: int = 0;`");
    }
    if expected.arrow && kind == Some(Kind::Colon) {
        diagnostic = diagnostic.suggest("what a function returns stands behind `->`", span, " ->");
    }
    (diagnostic, None)
}

/// A statement could end here, and what follows begins another one, or nothing follows.
fn missing_semicolon(place: &Place) -> Option<(Diagnostic, Option<Repair>)> {
    let expected = place.expected;
    if !expected.semicolon || expected.statement {
        return None;
    }
    let before = place.before(1)?;
    let kind = place.found().map(|token| token.kind);
    let ends = match kind {
        None | Some(Kind::BraceClose) => true,
        Some(kind) => kind.begins_statement() || (place.begins_line() && !is_infix(kind)),
    };
    if !ends {
        return None;
    }
    let diagnostic = if expected.assign && expected.colon {
        // `let x` and nothing more lacks its value first.
        Diagnostic::error(
            codes::MISSING_INITIALIZER,
            before.span.after(),
            format!("`{}` needs a value where it is declared", place.word(before)),
        )
        .label("expected `=`, a value and `;`")
    } else if expected.expression {
        // `return` alone, or an operator that lacks its operand.
        Diagnostic::error(codes::MISSING_SEMICOLON, before.span.after(), "expected an expression or `;`")
            .label("`;` is missing here")
            .suggest("end the statement", before.span.after(), ";")
    } else {
        let last = place.describe(Some(before));
        Diagnostic::error(codes::MISSING_SEMICOLON, before.span.after(), format!("expected `;` after {last}"))
            .label("`;` is missing here")
            .suggest("end the statement", before.span.after(), ";")
    };
    let mend = (!(expected.assign && expected.colon)).then_some(Repair::Insert(place.at, Kind::Semicolon));
    Some((diagnostic, mend))
}

/// May it only stand between two operands?
fn is_infix(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::Assign
            | Kind::PlusAssign
            | Kind::MinusAssign
            | Kind::StarAssign
            | Kind::SlashAssign
            | Kind::PercentAssign
            | Kind::AndAssign
            | Kind::OrAssign
            | Kind::XorAssign
            | Kind::ShlAssign
            | Kind::ShrAssign
            | Kind::Comma
            | Kind::Colon
            | Kind::Arrow
    )
}

/// The body of an `if`, `else` or `while` without braces.
fn braces_required(place: &Place) -> Option<(Diagnostic, Option<Repair>)> {
    let expected = place.expected;
    let first = place.tokens.get(place.statement.start)?;
    if !expected.brace_open || expected.statement || expected.expression {
        return None;
    }
    let head = match first.kind {
        Kind::If | Kind::While | Kind::Else => first.kind.text(),
        _ => return None,
    };
    let found = place.found()?;
    let begins = found.kind.begins_statement()
        || matches!(found.kind, Kind::Ident(_))
        || (found.kind == Kind::Semicolon && !expected.semicolon);
    if !begins {
        return None;
    }
    let diagnostic =
        Diagnostic::error(codes::BRACES_REQUIRED, found.span, format!("the body of this `{head}` needs braces"))
            .label("expected `{`")
            .also(first.span, "its body follows the condition")
            .help("put the body in braces: `{ … }`");
    let diagnostic = if head == "else" {
        let mut diagnostic = diagnostic;
        diagnostic.secondary[0].text = "its body follows".to_string();
        diagnostic
    } else {
        diagnostic
    };
    Some((diagnostic, Some(Repair::Embrace(place.at))))
}

/// `++` and `--`.
fn increment(place: &Place) -> Option<Diagnostic> {
    let found = place.found()?;
    if found.kind == Kind::PlusPlus {
        return Some(
            Diagnostic::error(codes::INCREMENT, found.span, "there is no `++`")
                .label("no operator of Atlas")
                .help("add 1 by a statement of its own: `x += 1;`"),
        );
    }
    let (last, first) = (place.before(1)?, place.before(2)?);
    if found.kind == Kind::Semicolon
        && last.kind == Kind::Minus
        && first.kind == Kind::Minus
        && first.span.end == last.span.start
    {
        let sign = first.span.to(last.span);
        return Some(
            Diagnostic::error(codes::INCREMENT, sign, "there is no `--`").label("no operator of Atlas").suggest(
                "take 1 away",
                sign,
                " -= 1",
            ),
        );
    }
    None
}

/// A word that means something in other languages, and nothing here.
fn foreign_word(place: &Place) -> Option<Diagnostic> {
    let found = place.found()?;
    // An operator in words stands where an operator could.
    if place.expected.operator && matches!(found.kind, Kind::Ident(_)) {
        let sign = match place.word(found) {
            "and" => Some("&&"),
            "or" => Some("||"),
            "xor" => Some("^"),
            "mod" => Some("%"),
            "div" => Some("/"),
            "is" => Some("=="),
            _ => None,
        };
        if let Some(sign) = sign {
            let word = place.word(found);
            return Some(
                Diagnostic::error(codes::SYNTAX, found.span, format!("`{word}` is no operator"))
                    .label("a name cannot stand here")
                    .suggest("the operator is", found.span, sign),
            );
        }
    }
    let first = place.tokens[place.statement.start];
    let block_follows = place.tokens.get(place.statement.end).is_some_and(|token| token.kind == Kind::BraceOpen);
    if matches!(first.kind, Kind::Ident(_)) && block_follows && is_loop_word(place.word(first)) {
        return Some(no_such_word(first.span, place.word(first), LOOP_HELP));
    }
    let before = place.before(1)?;
    let Kind::Ident(_) = before.kind else {
        return None;
    };
    let word = place.word(before);
    if place.at != place.statement.start + 1 {
        let second_of_let =
            place.at == place.statement.start + 2 && place.tokens[place.statement.start].kind == Kind::Let;
        if second_of_let && word == "mut" && matches!(found.kind, Kind::Ident(_)) {
            return Some(
                Diagnostic::error(codes::SYNTAX, before.span, "there is no `mut`")
                    .label("every variable can be changed")
                    .suggest("remove it", Span { start: before.span.start, end: found.span.start }, ""),
            );
        }
        return None;
    }
    let help = match word {
        word if is_loop_word(word) => LOOP_HELP,
        "var" | "const" | "auto" | "def" | "local" | "mut" | "val" if !matches!(found.kind, Kind::ParenOpen) => {
            "a variable is declared by `let`: `let x = 0;`"
        }
        "func" | "function" | "fun" | "proc" | "sub" | "def" => "a function begins with `fn`",
        "elif" | "elsif" | "elseif" => "write `else if`",
        "switch" | "match" | "case" => "write a chain of `if` and `else if`",
        "struct" | "class" | "enum" | "type" | "import" | "use" | "mod" | "include" => {
            "a program is functions and statements only"
        }
        _ => return None,
    };
    Some(no_such_word(before.span, word, help))
}

const LOOP_HELP: &str = "the one loop is `while`: `let i = 0; while (i < n) { …; i += 1; }`";

fn no_such_word(span: Span, word: &str, help: &str) -> Diagnostic {
    Diagnostic::error(codes::SYNTAX, span, format!("there is no `{word}`")).label("not a word of Atlas").help(help)
}
