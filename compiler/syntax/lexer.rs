//! The lexer: characters → tokens. The only door to logos.
//!
//! logos' automaton finds names, numbers and punctuation; what no regular expression says well — nested comments,
//! strings, characters, and what a mistake looks like — is scanned by hand from its first character.
//!
//! ```text
//! let x = 0x_1F; // …   →   let  x  =  31  ;
//! ```
//!
//! **in**: any text. **out**: tokens in order, with spans inside the text. After a mistake the lexer goes on with a token
//! that lets the parser go on: a bad literal is [`Kind::Bad`], a string lacking its end is cut where its line's closing
//! brackets begin. Cost: linear.

use super::token::{Kind, Token};
use crate::support::codes;
use crate::support::diagnostics::Diagnostic;
use crate::support::ids::StrId;
use crate::support::intern::Interner;
use crate::support::span::{Source, Span};
use cranelift_entity::PrimaryMap;
use logos::Logos;
use rustc_hash::FxHashSet;

/// What the lexer has found.
#[derive(Debug, Default)]
pub struct Lexed {
    /// The tokens.
    pub tokens: Vec<Token>,
    /// The strings, escapes resolved.
    pub strings: PrimaryMap<StrId, String>,
    /// The identifiers.
    pub names: Interner,
    /// The mistakes.
    pub diagnostics: Vec<Diagnostic>,
}

/// What the automaton tells apart.
#[derive(Logos, Clone, Copy, PartialEq, Eq, Debug)]
#[logos(skip r"[ \t\r\n]+")]
enum Raw {
    #[regex(r"[A-Za-z_][A-Za-z0-9_]*")]
    Ident,
    #[regex(r"[0-9][0-9A-Za-z_]*")]
    Number,
    #[token("//")]
    LineComment,
    #[token("/*")]
    BlockComment,
    #[token("\"")]
    Quote,
    #[token("'")]
    Apostrophe,
    #[token("let")]
    Let,
    #[token("fn")]
    Fn,
    #[token("if")]
    If,
    #[token("else")]
    Else,
    #[token("while")]
    While,
    #[token("break")]
    Break,
    #[token("continue")]
    Continue,
    #[token("return")]
    Return,
    #[token("print")]
    Print,
    #[token("assert")]
    Assert,
    #[token("true")]
    True,
    #[token("false")]
    False,
    #[token("int")]
    IntType,
    #[token("bool")]
    BoolType,
    #[token("(")]
    ParenOpen,
    #[token(")")]
    ParenClose,
    #[token("[")]
    BracketOpen,
    #[token("]")]
    BracketClose,
    #[token("{")]
    BraceOpen,
    #[token("}")]
    BraceClose,
    #[token(",")]
    Comma,
    #[token(";")]
    Semicolon,
    #[token(":")]
    Colon,
    #[token("->")]
    Arrow,
    #[token("=")]
    Assign,
    #[token("+=")]
    PlusAssign,
    #[token("-=")]
    MinusAssign,
    #[token("*=")]
    StarAssign,
    #[token("/=")]
    SlashAssign,
    #[token("%=")]
    PercentAssign,
    #[token("&=")]
    AndAssign,
    #[token("|=")]
    OrAssign,
    #[token("^=")]
    XorAssign,
    #[token("<<=")]
    ShlAssign,
    #[token(">>=")]
    ShrAssign,
    #[token("||")]
    OrOr,
    #[token("&&")]
    AndAnd,
    #[token("==")]
    EqEq,
    #[token("!=")]
    NotEq,
    #[token("<")]
    Less,
    #[token("<=")]
    LessEq,
    #[token(">")]
    Greater,
    #[token(">=")]
    GreaterEq,
    #[token("|")]
    Or,
    #[token("^")]
    Xor,
    #[token("&")]
    And,
    #[token("<<")]
    Shl,
    #[token(">>")]
    Shr,
    #[token("+")]
    Plus,
    #[token("++")]
    PlusPlus,
    #[token("-")]
    Minus,
    #[token("*")]
    Star,
    #[token("/")]
    Slash,
    #[token("%")]
    Percent,
    #[token("!")]
    Not,
    #[token("~")]
    Tilde,
}

/// Makes tokens of a source file.
pub fn run(source: &Source) -> Lexed {
    let text = source.text.as_str();
    let mut lexed = Lexed::default();
    // The mark at the start is no character of the program.
    let base = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
    let mut lexer = Raw::lexer(&text[base..]);
    let mut unknown_words = FxHashSet::default();
    while let Some(raw) = lexer.next() {
        let range = lexer.span();
        let (start, end) = (base + range.start, base + range.end);
        // Where scanning by hand has ended; the automaton goes on from there.
        let mut stop = end;
        let kind = match raw {
            Ok(raw) => match raw {
                Raw::LineComment => {
                    stop = text[end..].find('\n').map_or(text.len(), |at| end + at);
                    None
                }
                Raw::BlockComment => {
                    stop = block_comment(text, start, &mut lexed);
                    None
                }
                Raw::Quote => {
                    let kind;
                    (kind, stop) = string(text, start, &mut lexed);
                    Some(kind)
                }
                Raw::Apostrophe => {
                    let kind;
                    (kind, stop) = character(text, start, &mut lexed);
                    Some(kind)
                }
                Raw::Number => {
                    stop = fraction(text, start, end, &mut lexed);
                    Some(if stop > end { Kind::Bad } else { number(&text[start..end], start, &mut lexed) })
                }
                Raw::Ident => {
                    if text[end..].chars().next().is_some_and(|c| !c.is_ascii() && c.is_alphanumeric()) {
                        stop = unexpected(text, end, &mut unknown_words, &mut lexed);
                    }
                    Some(Kind::Ident(lexed.names.intern(&text[start..stop])))
                }
                other => Some(fixed(other)),
            },
            Err(()) => {
                stop = unexpected(text, start, &mut unknown_words, &mut lexed);
                // A word of letters beyond ASCII stands for a name, so that the parser does not complain as well.
                let word = &text[start..stop];
                word.chars().next().is_some_and(char::is_alphabetic).then(|| Kind::Ident(lexed.names.intern(word)))
            }
        };
        if let Some(kind) = kind {
            lexed.tokens.push(Token { kind, span: Span::new(start, stop) });
        }
        if stop > end {
            lexer.bump(stop - end);
        }
    }
    lexed
}

/// The token of a keyword or of punctuation.
fn fixed(raw: Raw) -> Kind {
    match raw {
        Raw::Ident | Raw::Number | Raw::LineComment | Raw::BlockComment | Raw::Quote | Raw::Apostrophe => {
            unreachable!("{raw:?} is scanned by hand")
        }
        Raw::Let => Kind::Let,
        Raw::Fn => Kind::Fn,
        Raw::If => Kind::If,
        Raw::Else => Kind::Else,
        Raw::While => Kind::While,
        Raw::Break => Kind::Break,
        Raw::Continue => Kind::Continue,
        Raw::Return => Kind::Return,
        Raw::Print => Kind::Print,
        Raw::Assert => Kind::Assert,
        Raw::True => Kind::True,
        Raw::False => Kind::False,
        Raw::IntType => Kind::IntType,
        Raw::BoolType => Kind::BoolType,
        Raw::ParenOpen => Kind::ParenOpen,
        Raw::ParenClose => Kind::ParenClose,
        Raw::BracketOpen => Kind::BracketOpen,
        Raw::BracketClose => Kind::BracketClose,
        Raw::BraceOpen => Kind::BraceOpen,
        Raw::BraceClose => Kind::BraceClose,
        Raw::Comma => Kind::Comma,
        Raw::Semicolon => Kind::Semicolon,
        Raw::Colon => Kind::Colon,
        Raw::Arrow => Kind::Arrow,
        Raw::Assign => Kind::Assign,
        Raw::PlusAssign => Kind::PlusAssign,
        Raw::MinusAssign => Kind::MinusAssign,
        Raw::StarAssign => Kind::StarAssign,
        Raw::SlashAssign => Kind::SlashAssign,
        Raw::PercentAssign => Kind::PercentAssign,
        Raw::AndAssign => Kind::AndAssign,
        Raw::OrAssign => Kind::OrAssign,
        Raw::XorAssign => Kind::XorAssign,
        Raw::ShlAssign => Kind::ShlAssign,
        Raw::ShrAssign => Kind::ShrAssign,
        Raw::OrOr => Kind::OrOr,
        Raw::AndAnd => Kind::AndAnd,
        Raw::EqEq => Kind::EqEq,
        Raw::NotEq => Kind::NotEq,
        Raw::Less => Kind::Less,
        Raw::LessEq => Kind::LessEq,
        Raw::Greater => Kind::Greater,
        Raw::GreaterEq => Kind::GreaterEq,
        Raw::Or => Kind::Or,
        Raw::Xor => Kind::Xor,
        Raw::And => Kind::And,
        Raw::Shl => Kind::Shl,
        Raw::Shr => Kind::Shr,
        Raw::Plus => Kind::Plus,
        Raw::PlusPlus => Kind::PlusPlus,
        Raw::Minus => Kind::Minus,
        Raw::Star => Kind::Star,
        Raw::Slash => Kind::Slash,
        Raw::Percent => Kind::Percent,
        Raw::Not => Kind::Not,
        Raw::Tilde => Kind::Tilde,
    }
}

/// Where the comment that begins at `start` ends; comments nest.
fn block_comment(text: &str, start: usize, lexed: &mut Lexed) -> usize {
    let bytes = text.as_bytes();
    let mut depth = 1u32;
    let mut at = start + 2;
    // The innermost comment still open is the likeliest to lack its end.
    let mut last_open = start;
    while at + 1 < bytes.len() {
        match (bytes[at], bytes[at + 1]) {
            (b'/', b'*') => {
                depth += 1;
                last_open = at;
                at += 2;
            }
            (b'*', b'/') => {
                depth -= 1;
                at += 2;
                if depth == 0 {
                    return at;
                }
            }
            _ => at += 1,
        }
    }
    let mut diagnostic =
        Diagnostic::error(codes::UNTERMINATED_COMMENT, Span::new(start, start + 2), "this comment is never closed")
            .label("the comment begins here")
            .help("comments nest: each `/*` needs its own `*/`");
    if depth > 1 && last_open != start {
        diagnostic = diagnostic.also(Span::new(last_open, last_open + 2), "another comment begins here, inside it");
    }
    lexed.diagnostics.push(diagnostic);
    text.len()
}

/// Reports a number with a fraction, such as `1.5`; gives where it ends, or `end` if there is none.
fn fraction(text: &str, start: usize, end: usize, lexed: &mut Lexed) -> usize {
    let bytes = text.as_bytes();
    if bytes.get(end) != Some(&b'.') || !bytes.get(end + 1).is_some_and(u8::is_ascii_digit) {
        return end;
    }
    let tail = bytes[end + 1..].iter().take_while(|b| b.is_ascii_alphanumeric() || **b == b'_').count();
    let stop = end + 1 + tail;
    lexed.diagnostics.push(
        Diagnostic::error(codes::FLOATING_POINT, Span::new(start, stop), "there are no floating-point numbers")
            .label("a number with a fraction")
            .note("Atlas computes with 64-bit integers only"),
    );
    stop
}

/// The value of a number. `start` is its offset in the file.
fn number(word: &str, start: usize, lexed: &mut Lexed) -> Kind {
    let span = Span::new(start, start + word.len());
    let (radix, name, digits) = match word.as_bytes() {
        [b'0', b'x', ..] => (16, "hexadecimal", &word[2..]),
        [b'0', b'o', ..] => (8, "octal", &word[2..]),
        [b'0', b'b', ..] => (2, "binary", &word[2..]),
        _ => (10, "decimal", word),
    };
    if let [b'0', letter @ (b'X' | b'O' | b'B'), ..] = word.as_bytes() {
        let lower = format!("0{}", letter.to_ascii_lowercase() as char);
        let prefix = Span::new(start, start + 2);
        let message = format!("the prefix of a number is lower case: `{lower}`");
        lexed.diagnostics.push(
            Diagnostic::error(codes::BAD_NUMBER, prefix, message).label("upper case").suggest("write", prefix, lower),
        );
        return Kind::Bad;
    }
    let at_digits = start + word.len() - digits.len();
    let mut value = Some(0u64);
    let mut any = false;
    for (index, character) in digits.char_indices() {
        if character == '_' {
            continue;
        }
        any = true;
        let Some(digit) = character.to_digit(radix) else {
            let at = at_digits + index;
            let diagnostic = if radix == 10 && character.is_ascii_alphabetic() {
                let message = format!("`{}` cannot follow the number `{}`", &digits[index..], &digits[..index]);
                Diagnostic::error(codes::BAD_NUMBER, span, message).label("neither a number nor a name").help(
                    "a name begins with a letter or `_`; between a number and a name stands a space or an operator",
                )
            } else {
                let place = Span::new(at, at + 1);
                Diagnostic::error(codes::BAD_NUMBER, span, format!("`{character}` is no {name} digit"))
                    .also(place, "this digit")
            };
            lexed.diagnostics.push(diagnostic);
            return Kind::Bad;
        };
        value = value.and_then(|v| v.checked_mul(u64::from(radix))).and_then(|v| v.checked_add(u64::from(digit)));
    }
    if !any {
        let message = format!("a {name} number needs at least one digit after `{}`", &word[..2]);
        lexed.diagnostics.push(Diagnostic::error(codes::BAD_NUMBER, span, message).label("no digits"));
        return Kind::Bad;
    }
    match value {
        Some(value) if radix != 10 => Kind::Int(value as i64),
        Some(value) if value < 1 << 63 => Kind::Int(value as i64),
        Some(value) if value == 1 << 63 => Kind::IntMin,
        Some(_) | None => {
            let diagnostic = Diagnostic::error(codes::NUMBER_TOO_LARGE, span, "this number does not fit 64 bits");
            lexed.diagnostics.push(if radix == 10 {
                diagnostic.label("too large").note("the largest `int` is 9223372036854775807")
            } else {
                diagnostic.label("more than 64 bits").note(format!("a {name} number is a pattern of up to 64 bits"))
            });
            Kind::Bad
        }
    }
}

/// The string that begins at `start`, and where it ends.
fn string(text: &str, start: usize, lexed: &mut Lexed) -> (Kind, usize) {
    let line_end = line_end(text, start);
    let mut value = String::new();
    let mut at = start + 1;
    let mut good = true;
    while at < line_end {
        let rest = &text[at..line_end];
        let character = rest.chars().next().expect("the line has not ended");
        match character {
            '"' => {
                let kind = if good { Kind::Str(lexed.strings.push(value)) } else { Kind::Bad };
                return (kind, at + 1);
            }
            '\\' => match escape(text, at, line_end, '"', lexed) {
                (Some(character), next) => {
                    value.push(character);
                    at = next;
                }
                (None, next) => {
                    good = false;
                    at = next;
                }
            },
            _ => {
                value.push(character);
                at += character.len_utf8();
            }
        }
    }
    lexed.diagnostics.push(
        Diagnostic::error(codes::UNTERMINATED_STRING, Span::new(start, line_end), "this string has no end on its line")
            .label("no `\"` closes it")
            .note("a line break inside a string is written `\\n`"),
    );
    // The brackets and semicolon at the end of the line were most likely meant to stand behind the string.
    let inside = &text[start + 1..line_end];
    (Kind::Bad, start + 1 + inside.trim_end_matches([' ', '\t', ')', ']', ';', '{']).len())
}

/// The character literal that begins at `start`, and where it ends.
fn character(text: &str, start: usize, lexed: &mut Lexed) -> (Kind, usize) {
    let line_end = line_end(text, start);
    let rest = &text[start + 1..line_end];
    let report = |lexed: &mut Lexed, end: usize, message: &str, label: &str| {
        lexed
            .diagnostics
            .push(Diagnostic::error(codes::BAD_CHARACTER, Span::new(start, end), message).label(label.to_string()));
    };
    let (value, next) = match rest.chars().next() {
        None => {
            report(lexed, start + 1, "a character literal needs a character and a closing `'`", "nothing follows");
            return (Kind::Bad, start + 1);
        }
        Some('\'') if rest[1..].starts_with('\'') => {
            report(lexed, start + 3, "an apostrophe in a character literal is written `'\\''`", "not escaped");
            return (Kind::Bad, start + 3);
        }
        Some('\'') => {
            report(lexed, start + 2, "a character literal needs a character", "empty");
            return (Kind::Bad, start + 2);
        }
        Some('\\') => escape(text, start + 1, line_end, '\'', lexed),
        Some(character) => (Some(character), start + 1 + character.len_utf8()),
    };
    if text[next..line_end].starts_with('\'') {
        return (value.map_or(Kind::Bad, |character| Kind::Int(i64::from(u32::from(character)))), next + 1);
    }
    if value.is_none() {
        // The escape has been reported; the literal ends at the next apostrophe of a short distance, or here.
        let end = close_by(text, next, line_end).unwrap_or(next);
        return (Kind::Bad, end);
    }
    match close_by(text, next, line_end) {
        Some(end) => {
            report(lexed, end, "a character literal holds one character only", "more than one character");
            let last = lexed.diagnostics.last_mut().expect("one was just reported");
            last.notes.push("strings stand in double quotes, as arguments of `print`".to_string());
            (Kind::Bad, end)
        }
        None => {
            report(lexed, next, "this character literal has no closing `'`", "no `'` follows");
            (Kind::Bad, next)
        }
    }
}

/// Where the literal with a mistake ends: behind the next apostrophe of the line.
fn close_by(text: &str, from: usize, line_end: usize) -> Option<usize> {
    text[from..line_end].find('\'').map(|at| from + at + 1)
}

/// The end of the line that holds `from`, before its `\n` or `\r\n`.
fn line_end(text: &str, from: usize) -> usize {
    let end = text[from..].find('\n').map_or(text.len(), |at| from + at);
    if text[from..end].ends_with('\r') { end - 1 } else { end }
}

/// The character that the escape at `start` means, or `None` after reporting what is wrong, and where it ends. `quote`
/// is what closes the literal around it.
fn escape(text: &str, start: usize, line_end: usize, quote: char, lexed: &mut Lexed) -> (Option<char>, usize) {
    let rest = &text[start + 1..line_end];
    let mut report = |end: usize, message: String, note: &str| {
        let diagnostic = Diagnostic::error(codes::BAD_ESCAPE, Span::new(start, end), message).label("in this escape");
        lexed.diagnostics.push(if note.is_empty() { diagnostic } else { diagnostic.note(note) });
        (None, end)
    };
    let Some(letter) = rest.chars().next() else {
        return report(start + 1, "a `\\` at the end of the line escapes nothing".to_string(), "");
    };
    let after = start + 1 + letter.len_utf8();
    match letter {
        'n' => (Some('\n'), after),
        'r' => (Some('\r'), after),
        't' => (Some('\t'), after),
        '0' => (Some('\0'), after),
        '\\' => (Some('\\'), after),
        '\'' => (Some('\''), after),
        '"' => (Some('"'), after),
        'x' => {
            let digits: String = rest[1..].chars().take(2).take_while(char::is_ascii_hexdigit).collect();
            let end = after + digits.len();
            if digits.len() < 2 {
                return report(end, "`\\x` needs two hexadecimal digits".to_string(), "");
            }
            let value = u32::from_str_radix(&digits, 16).expect("two hexadecimal digits");
            if value > 0x7F {
                let message = format!("`\\x{digits}` is beyond `\\x7F`");
                return report(end, message, "larger code points are written `\\u{…}`");
            }
            (char::from_u32(value), end)
        }
        'u' => {
            if !rest[1..].starts_with('{') {
                return report(after, "`\\u` needs a code point in braces: `\\u{1F600}`".to_string(), "");
            }
            let body = &rest[2..];
            let length = body.chars().take_while(|c| c.is_ascii_hexdigit() || *c == '_').count();
            let end = after + 1 + length;
            if !body[length..].starts_with('}') {
                let next = body[length..].chars().next();
                return match next {
                    Some(bad) if bad != quote => {
                        report(end + bad.len_utf8(), format!("`{bad}` is no hexadecimal digit of a code point"), "")
                    }
                    Some(_) | None => report(end, "`\\u{` needs a closing `}`".to_string(), ""),
                };
            }
            let end = end + 1;
            let digits = &body[..length];
            if digits.is_empty() {
                return report(end, "`\\u{}` needs at least one hexadecimal digit".to_string(), "");
            }
            if digits.contains('_') {
                return report(end, "a code point has no underscores".to_string(), "");
            }
            let value = u32::from_str_radix(digits.trim_start_matches('0'), 16);
            let value = if digits.bytes().all(|b| b == b'0') { Ok(0) } else { value };
            match value {
                Ok(value) if (0xD800..0xE000).contains(&value) => {
                    report(end, format!("`\\u{{{digits}}}` is a surrogate"), "surrogates are no characters")
                }
                Ok(value) if value <= 0x10FFFF => (char::from_u32(value), end),
                Ok(_) | Err(_) => report(
                    end,
                    format!("`\\u{{{digits}}}` is beyond the last code point"),
                    "the last code point is `\\u{10FFFF}`",
                ),
            }
        }
        other => report(
            after,
            format!("`\\{}` is no escape", other.escape_debug()),
            "the escapes are `\\n \\r \\t \\0 \\\\ \\' \\\" \\xNN \\u{N…}`",
        ),
    }
}

/// Reports the characters at `start` that belong to no token, as one mistake; gives where they end.
fn unexpected<'a>(text: &'a str, start: usize, words: &mut FxHashSet<&'a str>, lexed: &mut Lexed) -> usize {
    let first = text[start..].chars().next().expect("the automaton stopped at a character");
    let in_word = |c: char| c.is_alphanumeric() || c == '_';
    let run = |belongs: &dyn Fn(char) -> bool| {
        start + text[start..].chars().take_while(|c| belongs(*c)).map(char::len_utf8).sum::<usize>()
    };
    if in_word(first) {
        let end = run(&in_word);
        // A name is reported where it first occurs.
        if words.insert(&text[start..end]) {
            lexed.diagnostics.push(
                Diagnostic::error(
                    codes::UNEXPECTED_CHARACTER,
                    Span::new(start, end),
                    format!("`{first}` cannot stand in a name"),
                )
                .label("not a name")
                .note("names are made of the letters `A`–`Z`, `a`–`z`, digits and `_`"),
            );
        }
        return end;
    }
    let end = run(&|c| c == first);
    let span = Span::new(start, end);
    let shown: String = if first.is_control() || first.is_whitespace() || first == '\u{feff}' || first == '\u{200b}' {
        format!("U+{:04X}", u32::from(first))
    } else {
        format!("`{first}`")
    };
    let diagnostic = Diagnostic::error(codes::UNEXPECTED_CHARACTER, span, format!("unexpected character {shown}"))
        .label("no token begins so");
    lexed.diagnostics.push(match first {
        '“' | '”' | '„' => diagnostic.help("strings stand in straight quotes: `\"`"),
        '‘' | '’' => diagnostic.help("characters stand in straight apostrophes: `'`"),
        '−' | '–' | '—' => diagnostic.suggest("the minus sign is", span, "-"),
        '×' => diagnostic.suggest("multiplication is", span, "*"),
        '≤' => diagnostic.suggest("less or equal is", span, "<="),
        '≥' => diagnostic.suggest("greater or equal is", span, ">="),
        '≠' => diagnostic.suggest("not equal is", span, "!="),
        '#' => diagnostic.help("comments begin with `//`"),
        '.' => diagnostic.note("Atlas has neither fields nor methods nor fractions"),
        '?' => diagnostic.help("there is no conditional expression: use `if` and `else`"),
        first if first.is_whitespace() || first == '\u{200b}' => {
            diagnostic.note("white space is the space, the tab and the line end")
        }
        _ => diagnostic,
    });
    end
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Vec<Kind> {
        let lexed = run(&Source::new("t.atl", text));
        assert!(lexed.diagnostics.is_empty(), "{text}: {:?}", lexed.diagnostics);
        lexed.tokens.iter().map(|token| token.kind).collect()
    }

    fn codes_of(text: &str) -> Vec<String> {
        run(&Source::new("t.atl", text)).diagnostics.iter().map(|d| d.code.to_string()).collect()
    }

    #[test]
    fn numbers() {
        for (text, value) in [
            ("0", 0),
            ("007", 7),
            ("1_000__0_", 10_000),
            ("0x_fF", 255),
            ("0xFFFF_FFFF_FFFF_FFFF", -1),
            ("0x8000000000000000", i64::MIN),
            ("0b1010_", 10),
            ("0o17", 15),
            ("0o1777777777777777777777", -1),
            ("9223372036854775807", i64::MAX),
            ("'a'", 97),
            ("'é'", 0xE9),
            ("'\\u{1F600}'", 0x1F600),
            ("'\\u{000000041}'", 0x41),
            ("'\\''", 39),
            ("'\"'", 34),
            ("'\\x7f'", 127),
            ("'\\0'", 0),
        ] {
            assert_eq!(kinds(text), [Kind::Int(value)], "{text}");
        }
        assert_eq!(kinds("9223372036854775808"), [Kind::IntMin]);
        assert_eq!(kinds("9_223372036854775808"), [Kind::IntMin]);
    }

    #[test]
    fn mistakes_in_literals() {
        for (text, code) in [
            ("0x", "E0102"),
            ("0x_", "E0102"),
            ("0b12", "E0102"),
            ("0o8", "E0102"),
            ("0X1", "E0102"),
            ("0xG", "E0102"),
            ("1e5", "E0102"),
            ("1.5", "E0108"),
            ("9223372036854775809", "E0103"),
            ("0x1_0000_0000_0000_0000", "E0103"),
            ("''", "E0104"),
            ("'''", "E0104"),
            ("'ab'", "E0104"),
            ("'a", "E0104"),
            ("'", "E0104"),
            ("\"abc", "E0105"),
            ("'\\x80'", "E0106"),
            ("'\\x7'", "E0106"),
            ("'\\u{}'", "E0106"),
            ("'\\u{D800}'", "E0106"),
            ("'\\u{110000}'", "E0106"),
            ("'\\u{12'", "E0106"),
            ("'\\u41'", "E0106"),
            ("\"\\q\"", "E0106"),
            ("/* /* */", "E0107"),
            ("@@@", "E0101"),
            ("\u{b}", "E0101"),
            ("a\u{feff}", "E0101"),
            ("naïve", "E0101"),
        ] {
            assert_eq!(codes_of(text), [code], "{text}");
        }
    }

    #[test]
    fn strings_and_comments() {
        let lexed = run(&Source::new("t.atl", "\u{feff}\"a\\n\\\\\\u{e9}// é\" // \"b\r\n/* 'x /* */ \" */ \"\""));
        assert!(lexed.diagnostics.is_empty(), "{:?}", lexed.diagnostics);
        let strings: Vec<&str> = lexed.strings.values().map(String::as_str).collect();
        assert_eq!(strings, ["a\n\\é// é", ""]);
        assert_eq!(lexed.tokens[0].span.start, 3);
    }

    #[test]
    fn the_longest_token_counts() {
        assert_eq!(
            kinds("<<= >>= a<<-b"),
            [
                Kind::ShlAssign,
                Kind::ShrAssign,
                Kind::Ident(crate::support::intern::Symbol::from_u32(0)),
                Kind::Shl,
                Kind::Minus,
                Kind::Ident(crate::support::intern::Symbol::from_u32(1)),
            ]
        );
        assert_eq!(kinds("->-=--="), [Kind::Arrow, Kind::MinusAssign, Kind::Minus, Kind::MinusAssign]);
        assert_eq!(kinds("!= =="), [Kind::NotEq, Kind::EqEq]);
        assert_eq!(kinds("ifx int"), [Kind::Ident(crate::support::intern::Symbol::from_u32(0)), Kind::IntType]);
    }

    #[test]
    fn spellings_and_tokens_agree() {
        for kind in Kind::KEYWORDS {
            assert_eq!(kinds(kind.text()), [kind]);
        }
    }
}
