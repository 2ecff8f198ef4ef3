//! Balances brackets before the grammar sees them, and bounds their nesting.
//!
//! One pass with a stack of open brackets. Where they do not match, it reports the mistake and mends the tokens — it
//! puts a missing closing bracket in, or leaves a stray one out — so that one lost bracket costs one message and the rest
//! of the file is read as it was meant. It uses what the grammar knows of brackets: braces never stand inside parentheses,
//! a `;` never stands directly inside parentheses, and some keywords only begin statements.
//!
//! ```text
//! if (a < b { f(); }   →   if (a < b) { f(); }      and "this `(` is never closed"
//! ```
//!
//! **in**: tokens in order. **out**: tokens whose brackets match, nested at most [`MAX_NESTING`] deep, prefix operators
//! counted as well; the input untouched if it was so. Cost: linear.

use super::token::{Kind, Token};
use crate::support::codes;
use crate::support::diagnostics::Diagnostic;
use crate::support::span::{Source, Span};
use std::borrow::Cow;

/// How deep brackets and prefix operators may nest. What follows the parser may recurse as deep as this.
pub const MAX_NESTING: usize = 2_500;

struct Open {
    kind: Kind,
    span: Span,
    /// How many prefix operators were waiting for their operand outside of it.
    prefixes: usize,
}

/// The closing bracket of an opening one.
fn closer(kind: Kind) -> Kind {
    match kind {
        Kind::ParenOpen => Kind::ParenClose,
        Kind::BracketOpen => Kind::BracketClose,
        Kind::BraceOpen => Kind::BraceClose,
        other => unreachable!("{other:?} opens nothing"),
    }
}

/// Balances the tokens. `lexical` are the spans of mistakes in literals, in order: a bracket that lost its partner to one
/// is mended in silence. `None` if they nest too deep, which has been reported then.
pub fn run<'t>(
    source: &Source,
    tokens: &'t [Token],
    lexical: &[Span],
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<Cow<'t, [Token]>> {
    let mut balance =
        Balance { source, lexical, diagnostics, tokens, mended: None, stack: Vec::new(), prefixes: 0, suspect: None };
    for (index, token) in tokens.iter().enumerate() {
        balance.token(index);
        if balance.stack.len() + balance.prefixes > MAX_NESTING {
            balance.diagnostics.push(
                Diagnostic::error(codes::NESTING_TOO_DEEP, token.span, "nesting too deep")
                    .label(format!("more than {MAX_NESTING} brackets and prefix operators are open here"))
                    .help("compute a part first and keep it in a variable, or move a block into a function"),
            );
            return None;
        }
    }
    balance.end();
    Some(balance.mended.map_or(Cow::Borrowed(tokens), Cow::Owned))
}

struct Balance<'a, 't> {
    source: &'a Source,
    lexical: &'a [Span],
    diagnostics: &'a mut Vec<Diagnostic>,
    tokens: &'t [Token],
    /// The tokens so far, once they differ from the given ones.
    mended: Option<Vec<Token>>,
    stack: Vec<Open>,
    /// Prefix operators that wait for their operand, in all open brackets together.
    prefixes: usize,
    /// The first `{` closed by a `}` of another indentation: where a brace is missing, it most likely is there.
    suspect: Option<(Span, Span)>,
}

impl Balance<'_, '_> {
    fn token(&mut self, index: usize) {
        let token = self.tokens[index];
        let previous = index.checked_sub(1).map(|before| self.tokens[before]);
        match token.kind {
            Kind::ParenOpen | Kind::BracketOpen => self.open(token),
            Kind::BraceOpen => {
                self.close_up_to_brace(token, index);
                self.open(token);
            }
            Kind::ParenClose | Kind::BracketClose | Kind::BraceClose => {
                self.close(token, index);
                return;
            }
            Kind::Semicolon => {
                // In `[value; length]` it stands directly inside brackets, and nowhere else inside any.
                let inside = self.stack.last().map(|open| open.kind);
                if (inside == Some(Kind::ParenOpen) && !self.closes_soon(index))
                    || (inside == Some(Kind::BracketOpen) && self.never_closes(index))
                {
                    self.close_up_to_brace(token, index);
                }
            }
            kind if kind.begins_statement() && self.begins_line(index) => self.close_up_to_brace(token, index),
            Kind::Minus | Kind::Not | Kind::Tilde if !previous.is_some_and(|previous| previous.kind.ends_operand()) => {
                self.prefixes += 1;
            }
            kind if kind.ends_operand() => self.end_operand(),
            _ => {}
        }
        self.keep(token);
    }

    fn end(&mut self) {
        let Some(innermost) = self.stack.last() else {
            return;
        };
        let at = Span::new(self.source.text.len(), self.source.text.len());
        let (kind, span) = (innermost.kind, innermost.span);
        if !self.lexical_between(span, at) {
            let mut diagnostic =
                Diagnostic::error(codes::UNCLOSED, span, format!("this `{}` is never closed", kind.text()))
                    .label("opened here")
                    .also(at, format!("the file ends without its `{}`", closer(kind).text()));
            if let Some((open, close)) = self.suspect.filter(|_| kind == Kind::BraceOpen) {
                diagnostic = diagnostic
                    .also(open, "a `}` may be missing for this one:")
                    .also(close, "what closes it stands under another line");
            }
            self.diagnostics.push(diagnostic);
        }
        while let Some(open) = self.stack.pop() {
            self.insert(closer(open.kind), at.start, self.tokens.len());
        }
    }

    fn open(&mut self, token: Token) {
        self.stack.push(Open { kind: token.kind, span: token.span, prefixes: self.prefixes });
    }

    fn end_operand(&mut self) {
        self.prefixes = self.stack.last().map_or(0, |open| open.prefixes);
    }

    fn pop(&mut self) -> Open {
        let open = self.stack.pop().expect("the caller saw it");
        self.prefixes = self.stack.last().map_or(0, |outer| outer.prefixes);
        open
    }

    fn close(&mut self, token: Token, index: usize) {
        let matches = |open: &Open| closer(open.kind) == token.kind;
        if self.stack.last().is_some_and(matches) {
            let open = self.pop();
            self.compare_indentation(&open, token, index);
            self.keep(token);
            return;
        }
        // A parenthesis cannot close anything outside of the innermost braces; a brace closes whatever is open in it.
        let inner = self.stack.iter().rev().take_while(|open| open.kind != Kind::BraceOpen).count();
        let reach = if token.kind == Kind::BraceClose { inner + 1 } else { inner };
        let partner = self.stack.iter().rev().take(reach).position(matches);
        match partner {
            Some(above) => {
                for _ in 0..above {
                    self.close_unclosed(token, index);
                }
                self.pop();
                self.keep(token);
            }
            None => {
                if !self.lexical_on_line(token.span) {
                    let text = token.kind.text();
                    let mut diagnostic = Diagnostic::error(
                        codes::UNEXPECTED_CLOSER,
                        token.span,
                        format!("this `{text}` closes nothing"),
                    )
                    .label("no bracket is open for it");
                    match self.stack.last() {
                        Some(open) if open.kind != Kind::BraceOpen => {
                            diagnostic = diagnostic.also(
                                open.span,
                                format!("this `{}` needs a `{}`", open.kind.text(), closer(open.kind).text()),
                            );
                        }
                        Some(_) | None => {}
                    }
                    if let Some((open, close)) = self.suspect.filter(|_| token.kind == Kind::BraceClose) {
                        diagnostic = diagnostic
                            .also(open, "this block may have ended too early:")
                            .also(close, "what closes it stands under another line");
                    }
                    self.diagnostics.push(diagnostic);
                }
                self.mended(index);
            }
        }
    }

    /// Closes all that is open inside the innermost braces, because `token` cannot stand inside it.
    fn close_up_to_brace(&mut self, token: Token, index: usize) {
        while self.stack.last().is_some_and(|open| open.kind != Kind::BraceOpen) {
            self.close_unclosed(token, index);
        }
    }

    /// Closes the innermost bracket before `token`, and reports it.
    fn close_unclosed(&mut self, token: Token, index: usize) {
        let open = self.pop();
        let missing = closer(open.kind);
        let before = if index == 0 { token.span } else { self.tokens[index - 1].span.after() };
        // Where the bracket is missing: before this token if it stands on the same line, else behind the last one.
        let same_line = self.source.line_of(before.start) == self.source.line_of(token.span.start);
        let place = if same_line { token.span } else { before };
        if !self.lexical_between(open.span, token.span) {
            self.diagnostics.push(
                Diagnostic::error(codes::UNCLOSED, place, format!("expected `{}`", missing.text()))
                    .label(format!("`{}` is missing here", missing.text()))
                    .also(open.span, format!("to close this `{}`", open.kind.text()))
                    .suggest("close it", before, missing.text()),
            );
        }
        self.insert(missing, before.start, index);
    }

    fn compare_indentation(&mut self, open: &Open, token: Token, index: usize) {
        if token.kind != Kind::BraceClose || self.suspect.is_some() || !self.begins_line(index) {
            return;
        }
        let indentation = |span: Span| {
            let line = self.source.line(self.source.line_of(span.start));
            line.bytes().take_while(|b| matches!(b, b' ' | b'\t')).count()
        };
        if indentation(open.span) != indentation(token.span) {
            self.suspect = Some((open.span, token.span));
        }
    }

    /// Is the innermost parenthesis closed on the line of this token, not far behind it? Then the token is what does not
    /// belong there, as in `for (i = 0; i < 3; i += 1)`. The look ahead is bounded, so that the pass stays linear.
    fn closes_soon(&self, index: usize) -> bool {
        let line = self.source.line_of(self.tokens[index].span.start);
        let mut depth = 0u32;
        for token in self.tokens[index + 1..].iter().take(100) {
            match token.kind {
                Kind::ParenOpen | Kind::BracketOpen => depth += 1,
                Kind::ParenClose | Kind::BracketClose if depth == 0 => {
                    return token.kind == Kind::ParenClose && self.source.line_of(token.span.start) == line;
                }
                Kind::ParenClose | Kind::BracketClose => depth -= 1,
                Kind::BraceOpen | Kind::BraceClose => return false,
                _ => {}
            }
        }
        false
    }

    /// Does a statement or the file end before the innermost bracket is closed? Where the look ahead does not tell, the
    /// answer is no: what is right must never be mended.
    fn never_closes(&self, index: usize) -> bool {
        let mut depth = 0u32;
        let ahead = &self.tokens[index + 1..];
        for token in ahead.iter().take(100) {
            match token.kind {
                Kind::ParenOpen | Kind::BracketOpen => depth += 1,
                Kind::ParenClose | Kind::BracketClose if depth == 0 => return false,
                Kind::ParenClose | Kind::BracketClose => depth -= 1,
                Kind::BraceOpen | Kind::BraceClose => return true,
                Kind::Semicolon if depth == 0 => return true,
                _ => {}
            }
        }
        ahead.len() <= 100
    }

    fn begins_line(&self, index: usize) -> bool {
        let line = self.source.line_of(self.tokens[index].span.start);
        index == 0 || self.source.line_of(self.tokens[index - 1].span.start) < line
    }

    fn lexical_between(&self, open: Span, close: Span) -> bool {
        let first = self.lexical.partition_point(|span| span.start < open.start);
        self.lexical.get(first).is_some_and(|span| span.start < close.start)
    }

    fn lexical_on_line(&self, place: Span) -> bool {
        let line = self.source.line_of(place.start);
        let next = self.lexical.partition_point(|span| span.start < place.start);
        next > 0 && self.source.line_of(self.lexical[next - 1].start) == line
    }

    fn mended(&mut self, index: usize) -> &mut Vec<Token> {
        self.mended.get_or_insert_with(|| self.tokens[..index].to_vec())
    }

    fn insert(&mut self, kind: Kind, at: u32, index: usize) {
        let span = Span { start: at, end: at };
        self.mended(index).push(Token { kind, span });
    }

    fn keep(&mut self, token: Token) {
        if let Some(mended) = &mut self.mended {
            mended.push(token);
        }
    }
}
