//! The source as a language: tokens, the tree, and what turns text into them and back.

pub mod ast;
pub mod format;
pub mod lexer;
pub mod token;

mod actions;
mod brackets;
mod explain;
mod parse;

lalrpop_util::lalrpop_mod!(
    #[allow(clippy::all, unused)] // Generated.
    grammar,
    "/syntax/grammar.rs"
);

pub use format::{format, print_ast, print_tokens};
pub use parse::{Parsed, parse};

use crate::support::codes;
use crate::support::diagnostics::Diagnostic;
use crate::support::span::Span;

/// The message for an array literal that is not the whole initializer of a `let`.
pub fn misplaced_array_literal(literal: Span) -> Diagnostic {
    Diagnostic::error(codes::ARRAY_LITERAL_MISPLACED, literal, "an array literal cannot stand here")
        .label("makes an array without a name")
        .note("an array is made by `let`, which names it for life, so that its memory is free where the block ends")
        .help("name it first, by a `let` whose whole value it is: `let a = [ … ];`")
}
