//! Floor 2: x86-64 machine code, over virtual or over physical registers, with its mirrors: print, verify, interpret.

mod arithmetic;
pub mod interpret;
pub mod parse;
pub mod print;
pub mod random;
pub mod registers;
pub mod runtime;
mod shape;
pub mod types;
pub mod verify;
mod watch;

pub use registers::*;
pub use types::*;
