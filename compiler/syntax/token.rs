//! Tokens: what the lexer makes of the characters and the grammar reads.

use crate::support::ids::StrId;
use crate::support::intern::Symbol;
use crate::support::span::Span;

/// A token and its place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Token {
    /// What it is.
    pub kind: Kind,
    /// Where it stands. A token that the parser put in to go on after a mistake has an empty span.
    pub span: Span,
}

/// What a token is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Kind {
    /// An identifier.
    Ident(Symbol),
    /// A number or a character.
    Int(i64),
    /// The number 9223372036854775808, which is one only directly under a unary minus.
    IntMin,
    /// A string.
    Str(StrId),
    /// A literal with a mistake that has been reported.
    Bad,
    Let,
    Fn,
    If,
    Else,
    While,
    Break,
    Continue,
    Return,
    Print,
    Assert,
    True,
    False,
    IntType,
    BoolType,
    ParenOpen,
    ParenClose,
    BracketOpen,
    BracketClose,
    BraceOpen,
    BraceClose,
    Comma,
    Semicolon,
    Colon,
    Arrow,
    Assign,
    PlusAssign,
    MinusAssign,
    StarAssign,
    SlashAssign,
    PercentAssign,
    AndAssign,
    OrAssign,
    XorAssign,
    ShlAssign,
    ShrAssign,
    OrOr,
    AndAnd,
    EqEq,
    NotEq,
    Less,
    LessEq,
    Greater,
    GreaterEq,
    Or,
    Xor,
    And,
    Shl,
    Shr,
    Plus,
    /// `++`, which Atlas does not have: a token so that the message can say so.
    PlusPlus,
    Minus,
    Star,
    Slash,
    Percent,
    Not,
    Tilde,
}

impl Kind {
    /// The keywords.
    pub const KEYWORDS: [Kind; 14] = [
        Kind::Let,
        Kind::Fn,
        Kind::If,
        Kind::Else,
        Kind::While,
        Kind::Break,
        Kind::Continue,
        Kind::Return,
        Kind::Print,
        Kind::Assert,
        Kind::True,
        Kind::False,
        Kind::IntType,
        Kind::BoolType,
    ];

    /// The spelling of a keyword or of punctuation, or the name of the class for the others.
    pub fn text(self) -> &'static str {
        match self {
            Kind::Ident(_) => "identifier",
            Kind::Int(_) | Kind::IntMin => "integer",
            Kind::Str(_) => "string",
            Kind::Bad => "literal",
            Kind::Let => "let",
            Kind::Fn => "fn",
            Kind::If => "if",
            Kind::Else => "else",
            Kind::While => "while",
            Kind::Break => "break",
            Kind::Continue => "continue",
            Kind::Return => "return",
            Kind::Print => "print",
            Kind::Assert => "assert",
            Kind::True => "true",
            Kind::False => "false",
            Kind::IntType => "int",
            Kind::BoolType => "bool",
            Kind::ParenOpen => "(",
            Kind::ParenClose => ")",
            Kind::BracketOpen => "[",
            Kind::BracketClose => "]",
            Kind::BraceOpen => "{",
            Kind::BraceClose => "}",
            Kind::Comma => ",",
            Kind::Semicolon => ";",
            Kind::Colon => ":",
            Kind::Arrow => "->",
            Kind::Assign => "=",
            Kind::PlusAssign => "+=",
            Kind::MinusAssign => "-=",
            Kind::StarAssign => "*=",
            Kind::SlashAssign => "/=",
            Kind::PercentAssign => "%=",
            Kind::AndAssign => "&=",
            Kind::OrAssign => "|=",
            Kind::XorAssign => "^=",
            Kind::ShlAssign => "<<=",
            Kind::ShrAssign => ">>=",
            Kind::OrOr => "||",
            Kind::AndAnd => "&&",
            Kind::EqEq => "==",
            Kind::NotEq => "!=",
            Kind::Less => "<",
            Kind::LessEq => "<=",
            Kind::Greater => ">",
            Kind::GreaterEq => ">=",
            Kind::Or => "|",
            Kind::Xor => "^",
            Kind::And => "&",
            Kind::Shl => "<<",
            Kind::Shr => ">>",
            Kind::Plus => "+",
            Kind::PlusPlus => "++",
            Kind::Minus => "-",
            Kind::Star => "*",
            Kind::Slash => "/",
            Kind::Percent => "%",
            Kind::Not => "!",
            Kind::Tilde => "~",
        }
    }

    /// Is it a keyword?
    pub fn is_keyword(self) -> bool {
        Kind::KEYWORDS.contains(&self)
    }

    /// Does it begin a statement and nothing else?
    pub fn begins_statement(self) -> bool {
        matches!(
            self,
            Kind::Let
                | Kind::Fn
                | Kind::If
                | Kind::While
                | Kind::Break
                | Kind::Continue
                | Kind::Return
                | Kind::Print
                | Kind::Assert
        )
    }

    /// May an operand end with it, so that a `-` behind it is an operator between two operands?
    pub fn ends_operand(self) -> bool {
        matches!(
            self,
            Kind::Ident(_)
                | Kind::Int(_)
                | Kind::IntMin
                | Kind::Str(_)
                | Kind::Bad
                | Kind::True
                | Kind::False
                | Kind::ParenClose
                | Kind::BracketClose
        )
    }
}
