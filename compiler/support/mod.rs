//! Floor 0: what every other module may use and what knows nothing of compiling: source positions, diagnostics and
//! their codes, internal errors, interned names and the neutral listing.

pub mod codes;
pub mod diagnostics;
pub mod diff;
pub mod ids;
pub mod intern;
pub mod internal;
pub mod listing;
pub mod random;
pub mod span;
