//! Listings as text: with colour if wanted, and with the source line as a comment above the code that came from it.
//!
//! ```text
//!   ; 3 | x = y;
//!   %3 = copy %2 ; x
//! ```
//!
//! Comments are skipped by the parsers of the languages that have one, so a dump with source lines can be read back.
//! Cost: linear, as each shown source line is cut to a screen's width.

use crate::support::listing::{Kind, Line, Listing};
use crate::support::span::Source;
use std::fmt::Write;

/// How a listing becomes text.
pub struct Style<'a> {
    /// The source whose lines are shown; `None` shows none.
    pub source: Option<&'a Source>,
    /// What starts a comment in the listing's language.
    pub comment: &'a str,
    /// Colour by ANSI escapes.
    pub colour: bool,
    /// Only the section of this function, and those of none.
    pub function: Option<&'a str>,
}

/// Characters of a source line that a comment shows.
const WIDEST: usize = 160;

/// The text of a listing.
pub fn text(listing: &Listing, style: &Style<'_>) -> String {
    let mut out = String::new();
    for section in &listing.sections {
        if let (Some(wanted), Some(name)) = (style.function, &section.function)
            && wanted != name
        {
            continue;
        }
        let mut shown = 0;
        for line in &section.lines {
            if let Some(source) = style.source
                && !line.span.is_none()
            {
                let number = source.line_of(line.span.start.min(source.text.len() as u32));
                if number != shown {
                    shown = number;
                    source_comment(&mut out, source, number, line, style);
                }
            }
            write_line(&mut out, line, style.colour);
        }
    }
    out
}

/// The comment stands as deep as the line that it announces.
fn source_comment(out: &mut String, source: &Source, number: u32, line: &Line, style: &Style<'_>) {
    let text = source.line(number).trim();
    if text.is_empty() {
        return;
    }
    let indent: String = line.text().chars().take_while(|c| *c == ' ').collect();
    let mut shown: String = text.chars().take(WIDEST).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if text.chars().nth(WIDEST).is_some() {
        shown.push('…');
    }
    let comment = format!("{indent}{} {number} | {shown}", style.comment);
    if style.colour {
        let _ = writeln!(out, "{}{comment}{RESET}", escape(Kind::Comment));
    } else {
        let _ = writeln!(out, "{comment}");
    }
}

fn write_line(out: &mut String, line: &Line, colour: bool) {
    for piece in &line.pieces {
        let escape = if colour { escape(piece.kind) } else { "" };
        if escape.is_empty() {
            out.push_str(&piece.text);
        } else {
            let _ = write!(out, "{escape}{}{RESET}", piece.text);
        }
    }
    out.push('\n');
}

const RESET: &str = "\x1b[0m";

fn escape(kind: Kind) -> &'static str {
    match kind {
        Kind::Plain => "",
        Kind::Keyword => "\x1b[1m",
        Kind::Value => "\x1b[36m",
        Kind::Block => "\x1b[33m",
        Kind::Literal => "\x1b[32m",
        Kind::Name => "\x1b[34m",
        Kind::Type => "\x1b[35m",
        Kind::Comment => "\x1b[2m",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::support::span::Span;

    fn line(text: &str, span: Span) -> Line {
        let mut line = Line { span, ..Line::new() };
        line.put(Kind::Keyword, text);
        line
    }

    #[test]
    fn the_source_line_stands_once_above_what_came_from_it() {
        let source = Source::new("a.atl", "let x = 1;\n  let y\t= 2;\n");
        let listing = Listing::plain(vec![
            line("a", Span::new(0, 3)),
            line("b", Span::new(4, 5)),
            line("c", Span::NONE),
            line("d", Span::new(13, 16)),
        ]);
        let style = Style { source: Some(&source), comment: ";", colour: false, function: None };
        assert_eq!(text(&listing, &style), "; 1 | let x = 1;\na\nb\nc\n; 2 | let y = 2;\nd\n");
        let style = Style { source: None, comment: ";", colour: true, function: None };
        assert!(text(&listing, &style).starts_with("\x1b[1ma\x1b[0m\n"));
    }

    #[test]
    fn a_function_is_chosen_by_name() {
        let mut listing = Listing::plain(vec![line("head", Span::NONE)]);
        for name in ["f", "g"] {
            let section = crate::support::listing::Section {
                function: Some(name.to_string()),
                lines: vec![line(name, Span::NONE)],
            };
            listing.sections.push(section);
        }
        let style = Style { source: None, comment: ";", colour: false, function: Some("g") };
        assert_eq!(text(&listing, &style), "head\ng\n");
    }
}
