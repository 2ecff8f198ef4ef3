//! Floor 6: random programs against everything that can run them. [`generate`] writes them, [`examine`] compiles and compares
//! one, [`campaign`] goes through seeds on several threads, [`reduce`] and [`reduce_ir`] make what was found small,
//! [`targets`] are the bodies of the coverage-guided fuzzers.

pub mod campaign;
pub mod examine;
pub mod generate;
pub mod reduce;
pub mod reduce_ir;
pub mod targets;
