//! Diagnostics as data: what is wrong with the source, where, and what would mend it.
//!
//! A [`Diagnostic`] has a stable code, a message, labelled spans (the first is the primary one) and help. It is collected,
//! never printed, by the stages that find it; only the command line renders.

use super::span::Span;

/// A stable error code, printed as `E0103`. Each is listed in docs/errors.md.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord)]
pub struct Code(pub u16);

impl std::fmt::Display for Code {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "E{:04}", self.0)
    }
}

/// How bad it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Severity {
    /// The program has no meaning; nothing is compiled.
    Error,
    /// The program compiles, but probably does not mean this.
    Warning,
    /// Nothing is wrong: a fact about this place, shown without a code.
    Note,
}

/// A place with a word about it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Label {
    /// Where.
    pub span: Span,
    /// What about it; may be empty.
    pub text: String,
}

/// A help line, with the text that would mend the source where there is one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Help {
    /// The sentence.
    pub text: String,
    /// Replace the span by this text.
    pub replacement: Option<(Span, String)>,
}

/// One mistake.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Diagnostic {
    /// How bad it is.
    pub severity: Severity,
    /// Its stable code.
    pub code: Code,
    /// What is wrong, without a full stop.
    pub message: String,
    /// Where it is wrong: its position is what ` --> FILE:LINE:COL` shows.
    pub primary: Label,
    /// Other places that explain it.
    pub secondary: Vec<Label>,
    /// Further facts, a line each.
    pub notes: Vec<String>,
    /// What to do.
    pub help: Vec<Help>,
}

impl Diagnostic {
    /// An error at a span.
    pub fn error(code: Code, span: Span, message: impl Into<String>) -> Diagnostic {
        Diagnostic {
            severity: Severity::Error,
            code,
            message: message.into(),
            primary: Label { span, text: String::new() },
            secondary: Vec::new(),
            notes: Vec::new(),
            help: Vec::new(),
        }
    }

    /// A fact at a span.
    pub fn fact(span: Span, message: impl Into<String>) -> Diagnostic {
        Diagnostic { severity: Severity::Note, ..Diagnostic::error(Code(0), span, message) }
    }

    /// Sets the text at the primary span.
    pub fn label(mut self, text: impl Into<String>) -> Diagnostic {
        self.primary.text = text.into();
        self
    }

    /// Adds another labelled place.
    pub fn also(mut self, span: Span, text: impl Into<String>) -> Diagnostic {
        self.secondary.push(Label { span, text: text.into() });
        self
    }

    /// Adds a note.
    pub fn note(mut self, text: impl Into<String>) -> Diagnostic {
        self.notes.push(text.into());
        self
    }

    /// Adds a help line.
    pub fn help(mut self, text: impl Into<String>) -> Diagnostic {
        self.help.push(Help { text: text.into(), replacement: None });
        self
    }

    /// Adds a help line with the text that mends it.
    pub fn suggest(mut self, text: impl Into<String>, span: Span, replacement: impl Into<String>) -> Diagnostic {
        self.help.push(Help { text: text.into(), replacement: Some((span, replacement.into())) });
        self
    }
}
