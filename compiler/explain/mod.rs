//! Floor 6: why the code is as it is: the fate of every copy, hazards, φs.

pub mod copies;
pub mod hazards;
pub mod parallel;
pub mod phis;
pub mod trace;
