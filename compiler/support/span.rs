//! Source files and positions in them.
//!
//! A [`Span`] is a half-open range of byte offsets into one source file; [`Source::position`] turns an offset into the
//! line and column that people read (both from 1, columns in characters, a tab is one, a byte-order mark is none).
//! [`Positions`] is what a program carries on its way to machine code: it answers the same question for a span, whether
//! the program came from a source file or from IR text that only names the positions.
//!
//! Cost: a span is 8 bytes; a position is found by binary search over the line starts, and by counting characters from
//! the nearest checkpoint, so that a file of one long line costs no more than others.

use super::codes;
use super::diagnostics::Diagnostic;
use std::fmt;
use std::sync::Arc;

/// A half-open range of byte offsets into the source file. `Span::NONE` means "no place in the source".
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Span {
    /// Offset of the first byte.
    pub start: u32,
    /// Offset behind the last byte.
    pub end: u32,
}

impl Span {
    /// No place in the source, for what the compiler made up.
    pub const NONE: Span = Span { start: u32::MAX, end: u32::MAX };

    /// The bytes `start..end`.
    pub fn new(start: usize, end: usize) -> Span {
        Span { start: start as u32, end: end as u32 }
    }

    /// Is this the absent span?
    pub fn is_none(self) -> bool {
        self == Span::NONE
    }

    /// The smallest span that covers both; an absent one does not count.
    pub fn to(self, other: Span) -> Span {
        if self.is_none() {
            return other;
        }
        if other.is_none() {
            return self;
        }
        Span { start: self.start.min(other.start), end: self.end.max(other.end) }
    }

    /// The empty span right behind this one.
    pub fn after(self) -> Span {
        Span { start: self.end, end: self.end }
    }

    /// As a range of indices into the text.
    pub fn range(self) -> std::ops::Range<usize> {
        self.start as usize..self.end as usize
    }
}

impl Default for Span {
    fn default() -> Span {
        Span::NONE
    }
}

impl fmt::Debug for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_none() { f.write_str("?") } else { write!(f, "{}..{}", self.start, self.end) }
    }
}

/// A line and a column as people count them: from 1, columns in characters.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Position {
    /// The line, from 1.
    pub line: u32,
    /// The column in characters, from 1.
    pub column: u32,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// Every so many bytes of a text, the characters before them are known.
const CHECKPOINT: usize = 256;

/// One source file: its name as the user gave it, and its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// The name as on the command line; errors show it unchanged.
    pub name: String,
    /// The text, with its byte-order mark if it has one.
    pub text: String,
    line_starts: Vec<u32>,
    /// How many characters start before byte `CHECKPOINT * n`.
    checkpoints: Vec<u32>,
}

impl Source {
    /// Indexes the lines of `text`. Texts must be shorter than 4 GiB.
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Source {
        let (name, text) = (name.into(), text.into());
        assert!(text.len() < u32::MAX as usize, "a source file must be shorter than 4 GiB");
        let mut line_starts = vec![0];
        line_starts.extend(text.bytes().enumerate().filter(|(_, b)| *b == b'\n').map(|(i, _)| i as u32 + 1));
        let mut checkpoints = vec![0];
        for chunk in text.as_bytes().chunks(CHECKPOINT) {
            checkpoints.push(checkpoints[checkpoints.len() - 1] + count_characters(chunk));
        }
        Source { name, text, line_starts, checkpoints }
    }

    /// A source file from its bytes, which must be UTF-8. Otherwise gives the message, which names the first byte that is
    /// not, and the text with replacement characters that it is to be shown over.
    pub fn from_bytes(name: impl Into<String>, bytes: Vec<u8>) -> Result<Source, Box<(Source, Diagnostic)>> {
        let name = name.into();
        match String::from_utf8(bytes) {
            Ok(text) => Ok(Source::new(name, text)),
            Err(error) => {
                let good = error.utf8_error().valid_up_to();
                let bytes = error.into_bytes();
                let bad = bytes[good];
                let source = Source::new(name, String::from_utf8_lossy(&bytes));
                let span = Span::new(good, good + '\u{fffd}'.len_utf8());
                let diagnostic = Diagnostic::error(codes::INVALID_UTF8, span, "the source is not valid UTF-8")
                    .label(format!("the byte 0x{bad:02X} does not belong here"))
                    .help("save the file as UTF-8");
                Err(Box::new((source, diagnostic)))
            }
        }
    }

    /// How many characters start before the byte offset.
    fn characters_before(&self, offset: usize) -> u32 {
        let checkpoint = offset / CHECKPOINT;
        self.checkpoints[checkpoint] + count_characters(&self.text.as_bytes()[checkpoint * CHECKPOINT..offset])
    }

    /// How many lines the text has; a final line end opens no further line unless text follows.
    pub fn line_count(&self) -> usize {
        self.line_starts.len()
    }

    /// The line (from 1) that holds the byte offset.
    pub fn line_of(&self, offset: u32) -> u32 {
        self.line_starts.partition_point(|start| *start <= offset) as u32
    }

    /// The position of a byte offset. An offset within a character counts as that character.
    pub fn position(&self, offset: u32) -> Position {
        let offset = offset.min(self.text.len() as u32);
        let line = self.line_of(offset);
        let start = self.line_starts[line as usize - 1] as usize;
        let mark = if start == 0 && self.text.starts_with('\u{feff}') { 1 } else { 0 };
        let characters = self.characters_before(offset as usize) - self.characters_before(start);
        Position { line, column: characters.saturating_sub(mark) + 1 }
    }

    /// The text of a line (from 1), without its line end.
    pub fn line(&self, line: u32) -> &str {
        let start = self.line_starts[line as usize - 1] as usize;
        let end = self.line_starts.get(line as usize).map_or(self.text.len(), |next| *next as usize);
        self.text[start..end].trim_end_matches(['\n', '\r']).trim_start_matches('\u{feff}')
    }
}

/// How many characters start in these bytes of UTF-8.
fn count_characters(bytes: &[u8]) -> u32 {
    bytes.iter().filter(|byte| (**byte & 0xC0) != 0x80).count() as u32
}

/// Where the spans of a program are, as run-time errors show it. Cheap to clone.
///
/// A program from a source file asks the file. A program from IR text has spans into that text, and the positions that
/// stand behind its instructions (`@3:9`), which are those of the file that it was once made from.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Positions(Kind);

#[derive(Clone, Debug, PartialEq, Eq, Default)]
enum Kind {
    #[default]
    Unknown,
    Source(Arc<Source>),
    /// The position of each span by where the span starts, in order.
    Table(Arc<[(u32, Position)]>),
}

impl Positions {
    /// No span has a position: for programs that were made up.
    pub fn unknown() -> Positions {
        Positions(Kind::Unknown)
    }

    /// The positions in a source file.
    pub fn of_source(source: &Source) -> Positions {
        Positions(Kind::Source(Arc::new(source.clone())))
    }

    /// Positions by the start of a span; where a start recurs, the first counts.
    pub fn of_pairs(mut pairs: Vec<(u32, Position)>) -> Positions {
        pairs.sort_by_key(|(start, _)| *start);
        pairs.dedup_by_key(|(start, _)| *start);
        Positions(Kind::Table(pairs.into()))
    }

    /// Where the span starts, if that is known.
    pub fn position(&self, span: Span) -> Option<Position> {
        if span.is_none() {
            return None;
        }
        match &self.0 {
            Kind::Unknown => None,
            Kind::Source(source) => Some(source.position(span.start)),
            Kind::Table(pairs) => {
                pairs.binary_search_by_key(&span.start, |(start, _)| *start).ok().map(|found| pairs[found].1)
            }
        }
    }

    /// The source file, if the program was made from one: for listings that show its lines.
    pub fn source(&self) -> Option<&Source> {
        match &self.0 {
            Kind::Source(source) => Some(source),
            Kind::Unknown | Kind::Table(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_are_no_text() {
        let (source, diagnostic) = *Source::from_bytes("a", b"let a = 1;\n// \xFF\xFE".to_vec()).unwrap_err();
        assert_eq!(source.position(diagnostic.primary.span.start), Position { line: 2, column: 4 });
        assert!(diagnostic.primary.text.contains("0xFF"));
        assert!(Source::from_bytes("a", "é".as_bytes().to_vec()).is_ok());
    }

    #[test]
    fn positions_in_a_long_line() {
        // Every character is two bytes, so that checkpoints fall into characters as well as between them.
        let source = Source::new("a", format!("x\nab{}", "é".repeat(1000)));
        for n in [0, 1, 2, 127, 128, 129, 500, 1000] {
            assert_eq!(source.position(4 + 2 * n), Position { line: 2, column: 3 + n });
        }
        let positions = Positions::of_source(&source);
        assert_eq!(positions.position(Span::new(2, 3)), Some(Position { line: 2, column: 1 }));
        assert_eq!(positions.position(Span::NONE), None);
        let pairs =
            Positions::of_pairs(vec![(9, Position { line: 3, column: 1 }), (4, Position { line: 2, column: 7 })]);
        assert_eq!(pairs.position(Span::new(4, 8)), Some(Position { line: 2, column: 7 }));
        assert_eq!(pairs.position(Span::new(5, 8)), None);
    }

    #[test]
    fn columns_count_characters_and_skip_the_mark() {
        let source = Source::new("a", "\u{feff}ab\r\n\té x\n");
        assert_eq!(source.position(3), Position { line: 1, column: 1 });
        assert_eq!(source.position(4), Position { line: 1, column: 2 });
        let x = source.text.find('x').unwrap() as u32;
        assert_eq!(source.position(x), Position { line: 2, column: 4 });
        assert_eq!(source.line(1), "ab");
        assert_eq!(source.line(2), "\té x");
    }
}
