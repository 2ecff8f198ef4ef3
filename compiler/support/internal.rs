//! Internal errors: a broken invariant of the compiler itself, never the user's fault.
//!
//! An [`Internal`] names the stage, the function and the entity where the invariant broke, so that a report can be
//! acted on. Verifiers and judges return it; the pipeline turns a panic inside a stage into one as well.

use std::fmt;

/// A broken invariant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Internal {
    /// The stage's name, as in `--stage`; empty until the pipeline knows it.
    pub stage: String,
    /// The function's name; empty where it concerns none.
    pub function: String,
    /// The block, value, instruction or register, as listings print it; empty where it concerns none.
    pub entity: String,
    /// What does not hold, as a clause: "%3 is used before it is defined".
    pub message: String,
}

impl Internal {
    /// An error about one entity; the function and the stage are filled in on the way up.
    pub fn new(entity: impl fmt::Display, message: impl Into<String>) -> Internal {
        Internal { stage: String::new(), function: String::new(), entity: entity.to_string(), message: message.into() }
    }

    /// The same error with the function's name, unless it has one.
    pub fn in_function(mut self, name: &str) -> Internal {
        if self.function.is_empty() {
            self.function = name.to_string();
        }
        self
    }

    /// The same error with the stage's name, unless it has one.
    pub fn in_stage(mut self, name: &str) -> Internal {
        if self.stage.is_empty() {
            self.stage = name.to_string();
        }
        self
    }
}

impl fmt::Display for Internal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.message)?;
        let parts = [("stage", &self.stage), ("function", &self.function), ("at", &self.entity)];
        let named: Vec<String> =
            parts.iter().filter(|(_, value)| !value.is_empty()).map(|(key, value)| format!("{key} {value}")).collect();
        if named.is_empty() { Ok(()) } else { write!(f, " ({})", named.join(", ")) }
    }
}

impl std::error::Error for Internal {}
