//! Random programs against everything that can run them.

pub mod generate;
