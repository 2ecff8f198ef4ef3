//! Cuts one line of IR text into tokens, for `parse`.
//!
//! A `;` starts a comment, except between brackets (`array int [%1; %2]`). A `-` right before a digit belongs to the
//! number, a `%` right before a digit starts a value. Cost: linear.

use crate::support::span::{Position, Span};

/// A token. Names are whatever a keyword, function, variable, block or type can be called; the parser knows which.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Token<'a> {
    Name(&'a str),
    Value(u32),
    Int(i64),
    Str(String),
    /// `@3:9`
    Position(Position),
    /// An operator or a bracket.
    Sign(&'a str),
    /// What follows a `;`, without white space around it.
    Comment(&'a str),
}

/// Signs, longer ones before those that they start with.
const SIGNS: [&str; 28] = [
    "->", "==", "!=", "<=", ">=", "<<", ">>", "(", ")", "{", "}", "[", "]", ",", ":", "=", "<", ">", "+", "-", "*",
    "/", "%", "&", "|", "^", "~", "!",
];

/// The tokens of `line`, which starts at the byte `offset` of the text; or where it cannot be cut, and why.
pub(super) fn tokens<'a>(line: &'a str, offset: usize) -> Result<Vec<(Token<'a>, Span)>, (Span, String)> {
    let mut tokens = Vec::new();
    let mut at = 0;
    let mut brackets = 0;
    while let Some(first) = line[at..].chars().next() {
        let rest = &line[at..];
        if first.is_whitespace() || first == '\u{feff}' {
            at += first.len_utf8();
            continue;
        }
        let (token, length) = match first {
            ';' if brackets == 0 => (Token::Comment(rest[1..].trim()), rest.len()),
            ';' => (Token::Sign(&rest[..1]), 1),
            '"' => string(rest).map_err(|(from, to, why)| (Span::new(offset + at + from, offset + at + to), why))?,
            '@' => position(rest).ok_or_else(|| {
                (
                    Span::new(offset + at, offset + at + 1),
                    "expected a line and a column behind `@`, as in `@3:9`".to_string(),
                )
            })?,
            'a'..='z' | 'A'..='Z' | '_' => {
                let length = name_length(rest);
                (Token::Name(&rest[..length]), length)
            }
            '0'..='9' => number(rest, 0).map_err(|to| too_large(offset + at, to))?,
            '-' if digit_at(rest, 1) => number(rest, 1).map_err(|to| too_large(offset + at, to))?,
            '%' if digit_at(rest, 1) => {
                let length = 1 + digits(&rest[1..]);
                let value = rest[1..length].parse().map_err(|_| too_large(offset + at, length))?;
                (Token::Value(value), length)
            }
            '?' => (Token::Sign(&rest[..1]), 1),
            _ => match SIGNS.iter().find(|sign| rest.starts_with(**sign)) {
                Some(sign) => (Token::Sign(sign), sign.len()),
                None => {
                    let span = Span::new(offset + at, offset + at + first.len_utf8());
                    return Err((span, "this character has no meaning in IR text".to_string()));
                }
            },
        };
        match token {
            Token::Sign("[") => brackets += 1,
            Token::Sign("]") => brackets -= 1,
            _ => {}
        }
        tokens.push((token, Span::new(offset + at, offset + at + length)));
        at += length;
    }
    Ok(tokens)
}

/// Names go on with letters, digits, `_`, `.`, and with a `-` before a letter (`split-ssa`).
fn name_length(text: &str) -> usize {
    let bytes = text.as_bytes();
    let goes_on = |at: usize| match bytes[at] {
        b'_' | b'.' => true,
        b'-' => bytes.get(at + 1).is_some_and(u8::is_ascii_alphabetic),
        byte => byte.is_ascii_alphanumeric(),
    };
    (0..bytes.len()).find(|at| !goes_on(*at)).unwrap_or(bytes.len())
}

fn digits(text: &str) -> usize {
    text.bytes().take_while(u8::is_ascii_digit).count()
}

fn digit_at(text: &str, at: usize) -> bool {
    text.as_bytes().get(at).is_some_and(u8::is_ascii_digit)
}

fn too_large(start: usize, length: usize) -> (Span, String) {
    (Span::new(start, start + length), "this number is too large".to_string())
}

fn number(text: &str, sign: usize) -> Result<(Token<'_>, usize), usize> {
    let length = sign + digits(&text[sign..]);
    text[..length].parse().map(|value| (Token::Int(value), length)).map_err(|_| length)
}

fn position(text: &str) -> Option<(Token<'_>, usize)> {
    let line = 1 + digits(&text[1..]);
    if text.as_bytes().get(line) != Some(&b':') {
        return None;
    }
    let column = line + 1 + digits(&text[line + 1..]);
    let position = Position { line: text[1..line].parse().ok()?, column: text[line + 1..column].parse().ok()? };
    Some((Token::Position(position), column))
}

/// A string literal; on failure the range of bytes that is wrong, and why.
fn string(text: &str) -> Result<(Token<'_>, usize), (usize, usize, String)> {
    let mut value = String::new();
    let mut characters = text.char_indices().skip(1);
    while let Some((at, character)) = characters.next() {
        let escaped = match character {
            '"' => return Ok((Token::Str(value), at + 1)),
            '\\' => characters.next().map(|(_, c)| c),
            c => {
                value.push(c);
                continue;
            }
        };
        match escaped {
            Some('n') => value.push('\n'),
            Some('t') => value.push('\t'),
            Some('r') => value.push('\r'),
            Some('0') => value.push('\0'),
            Some(c @ ('\\' | '"')) => value.push(c),
            Some('u') => {
                let braced = text[at + 2..].strip_prefix('{').and_then(|rest| rest.split_once('}'));
                let code = braced.filter(|(hex, _)| !hex.starts_with('+')).and_then(|(hex, _)| {
                    let character = u32::from_str_radix(hex, 16).ok().and_then(char::from_u32)?;
                    Some((character, hex.chars().count() + 2))
                });
                let Some((code, length)) = code else {
                    return Err((at, at + 2, "expected a code point, as in `\\u{1F600}`".to_string()));
                };
                value.push(code);
                for _ in 0..length {
                    characters.next();
                }
            }
            _ => return Err((at, at + 1, "unknown escape in a string".to_string())),
        }
    }
    Err((0, text.len(), "this string has no end".to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(line: &str) -> Vec<Token<'_>> {
        tokens(line, 0).expect("the line can be cut").into_iter().map(|(token, _)| token).collect()
    }

    #[test]
    fn minus_percent_and_semicolon_depend_on_what_is_around() {
        let (v, i, s) = (Token::Value, Token::Int, Token::Sign);
        assert_eq!(all("%1 % %2 - -3"), [v(1), s("%"), v(2), s("-"), i(-3)]);
        assert_eq!(all("[%1; 2] ; a b "), [s("["), v(1), s(";"), i(2), s("]"), Token::Comment("a b")]);
        assert_eq!(all("-9223372036854775808 <<"), [i(i64::MIN), s("<<")]);
        assert_eq!(all("@3:19"), [Token::Position(Position { line: 3, column: 19 })]);
        assert_eq!(all(r#""a;\n\u{E9}\"é" x.1"#), [Token::Str("a;\né\"é".to_string()), Token::Name("x.1")]);
    }

    #[test]
    fn what_cannot_be_cut_is_an_error() {
        for line in
            ["\"", "\"\\u{}\"", "\"\\q\"", "\"\\", "@", "@1", "@1:", "%99999999999", "9223372036854775808", "é", "$"]
        {
            assert!(tokens(line, 0).is_err(), "{line}");
        }
        assert_eq!(tokens("a  $", 10).unwrap_err().0, Span::new(13, 14));
    }
}
