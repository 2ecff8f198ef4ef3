//! Floor 4: into SSA form and out of it again.
//!
//! ```text
//! variables ── construct ──→ SSA ── split_edges ──→ split SSA ── destruct ──→ parallel copies ── sequence ──→ sequenced
//!                             │ ── isolate, or boissinot ─────────────────────────↑
//!                             └── rename ──→ variables again
//! ```
//!
//! There are four ways out ([`OutOfSsa`]), all judged by `validate`.

pub mod boissinot;
pub mod construct;
pub mod destruct;
pub mod isolate;
pub mod rename;
pub mod sequence;
pub mod split_edges;
#[cfg(test)]
mod tests;
pub mod validate;
#[cfg(test)]
mod way_out_tests;

/// The ways out of SSA form.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, Default)]
pub enum OutOfSsa {
    /// Critical edges are split, the copies of each edge sequenced: `split_edges`, `destruct`, `sequence`.
    #[default]
    Split,
    /// A copy into a value of its own at the end of each predecessor, and one from it behind the φs: `isolate`.
    Isolate,
    /// The same copies, of which those between values that do not interfere are never made: `boissinot`.
    Boissinot,
    /// Values that φs connect become one value, where their live ranges allow that: `rename`.
    Rename,
}

impl OutOfSsa {
    /// All of them.
    pub const ALL: [OutOfSsa; 4] = [OutOfSsa::Split, OutOfSsa::Isolate, OutOfSsa::Boissinot, OutOfSsa::Rename];

    /// Its name on the command line and in reports.
    pub fn name(self) -> &'static str {
        match self {
            OutOfSsa::Split => "split",
            OutOfSsa::Isolate => "isolate",
            OutOfSsa::Boissinot => "boissinot",
            OutOfSsa::Rename => "rename",
        }
    }
}
