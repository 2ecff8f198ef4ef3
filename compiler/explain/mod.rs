//! Floor 6: why the code is as it is: the fate of every copy, hazards, φs.

pub mod parallel;
