//! Floor 4: into SSA form and out of it again.
//!
//! ```text
//! variables ── construct ──→ SSA … split_edges ──→ split SSA ── destruct ──→ parallel copies ── sequence ──→ sequenced
//! ```

pub mod construct;
pub mod destruct;
pub mod sequence;
pub mod split_edges;
#[cfg(test)]
mod tests;
pub mod validate;
