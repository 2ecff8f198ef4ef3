//! Floor 6: why the code is as it is: the fate of every copy, hazards, φs, and what other ways would cost.

pub mod compare;
pub mod copies;
pub mod hazards;
pub mod parallel;
pub mod phis;
pub mod trace;
