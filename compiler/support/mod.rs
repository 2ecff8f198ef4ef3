//! Floor 0: what every other module may use and what knows nothing of compiling: source positions, diagnostics,
//! internal errors and the neutral listing.

pub mod diagnostics;
pub mod ids;
pub mod internal;
pub mod listing;
pub mod random;
pub mod span;
