//! The program with names and types resolved: every variable is declared once in its function, every expression has a
//! type, every call has its function. `check` makes it from the tree.

pub mod interpret;
pub mod print;
pub mod types;

pub use types::*;
