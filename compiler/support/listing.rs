//! The neutral listing: what every language of the compiler prints into, and what text, colour, JSON and HTML render.
//!
//! A listing is a list of sections (one a function, or one without a name), a section a list of lines, a line a list of
//! pieces. A piece has a kind, for colour, and may refer to an entity, so that a page can light up one value in every
//! stage. A line may carry the span of the source that it came from. The plain text of a listing is the exact text that
//! the parser of that language reads back.

use super::span::Span;
use std::fmt;

/// What a piece of text is, for colour.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Kind {
    /// Punctuation and white space.
    Plain,
    /// An operation or a keyword.
    Keyword,
    /// A value, register or other thing that holds one.
    Value,
    /// The label of a block.
    Block,
    /// A literal.
    Literal,
    /// The name of a function, variable or symbol.
    Name,
    /// A type.
    Type,
    /// A comment: the parser skips it.
    Comment,
}

/// A thing that a piece refers to. Numbers are the entity's index within its function.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord)]
pub enum Entity {
    /// A function, by index in the program.
    Function(u32),
    /// A source variable of the function.
    Variable(u32),
    /// An IR value.
    Value(u32),
    /// A block of the IR or of machine code.
    Block(u32),
    /// An IR instruction.
    Inst(u32),
    /// A virtual register.
    VReg(u32),
    /// A physical register, by its hardware number.
    PReg(u32),
    /// A stack slot.
    Slot(u32),
}

/// A run of characters with one meaning.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Piece {
    /// The characters; never a line end.
    pub text: String,
    /// What they are.
    pub kind: Kind,
    /// What they refer to.
    pub entity: Option<Entity>,
}

/// One line.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Line {
    /// Its pieces, left to right, indentation included.
    pub pieces: Vec<Piece>,
    /// The source that it came from.
    pub span: Span,
    /// What the line as a whole is: a block's label line, an instruction.
    pub entity: Option<Entity>,
}

impl Line {
    /// An empty line.
    pub fn new() -> Line {
        Line::default()
    }

    /// Appends a piece; returns the line, for chains.
    pub fn put(&mut self, kind: Kind, text: impl Into<String>) -> &mut Line {
        self.pieces.push(Piece { text: text.into(), kind, entity: None });
        self
    }

    /// Appends a piece that refers to an entity.
    pub fn refer(&mut self, kind: Kind, text: impl Into<String>, entity: Entity) -> &mut Line {
        self.pieces.push(Piece { text: text.into(), kind, entity: Some(entity) });
        self
    }

    /// The line's text.
    pub fn text(&self) -> String {
        self.pieces.iter().map(|piece| piece.text.as_str()).collect()
    }
}

/// The lines of one function, or of something that belongs to none.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Section {
    /// The function's name, if it is one's.
    pub function: Option<String>,
    /// Its lines.
    pub lines: Vec<Line>,
}

/// A whole listing.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Listing {
    /// Its sections, in order.
    pub sections: Vec<Section>,
}

impl Listing {
    /// A listing of one section that belongs to no function.
    pub fn plain(lines: Vec<Line>) -> Listing {
        Listing { sections: vec![Section { function: None, lines }] }
    }

    /// All lines, in order.
    pub fn lines(&self) -> impl Iterator<Item = &Line> {
        self.sections.iter().flat_map(|section| section.lines.iter())
    }
}

impl fmt::Display for Listing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for line in self.lines() {
            for piece in &line.pieces {
                f.write_str(&piece.text)?;
            }
            f.write_str("\n")?;
        }
        Ok(())
    }
}
