//! Bounds check elimination: removes the checks that cannot fail.
//!
//! Global value numbering with two more facts: constants that values are never below (`lower_bounds`, which sees that an
//! index that starts at 0 and steps up under `i < n` is not negative), and what `i < n` says of `i - 1` and `n + 1`. A check
//! goes if its index is shown not to be negative and to be below the length: by a branch, an earlier check, or the array's
//! making (Bodík, Gupta & Sarkar, "ABCD: eliminating array bounds checks on demand", 2000, does more of the same kind).
//! To be run before loops are rotated: the test at the top dominates the body.
//!
//! ```text
//! b1: %1 = phi i [0 from b0, %3 from b2]        b1: …
//!     %2 = bool %1 < %0                             branch %2 ? b2 : b3
//!     branch %2 ? b2 : b3                   →   b2: store int %9[%1] = 7
//! b2: bounds %1 < %0                                …
//!     store int %9[%1] = 7
//!     …
//! ```
//!
//! **In**: SSA. **Out**: SSA. Cost: that of value numbering.

use super::flow::Flow;
use super::fuel::Fuel;
use super::gvn;
use super::lower_bounds::LowerBounds;
use super::summaries::Summaries;
use crate::ir::Function;

/// Removes checks, and numbers values on the way; gives the number of changes.
pub fn run(function: &mut Function, summaries: &Summaries, fuel: &mut Fuel) -> usize {
    let flow = Flow::compute(function);
    let bounds = LowerBounds::compute(function, &flow);
    gvn::number(function, &flow, summaries, Some(bounds), fuel)
}
