//! Floor 2: the intermediate representation, one data structure for every form between the CFG over variables and
//! the code that has left SSA form, with its mirrors: print, parse, verify, interpret.

pub mod effects;
pub mod interpret;
mod lex;
pub mod parse;
pub mod print;
pub mod random;
mod resolve;
#[cfg(test)]
mod tests;
pub mod types;
pub mod verify;

pub use types::*;
