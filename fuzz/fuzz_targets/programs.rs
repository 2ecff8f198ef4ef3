//! Coverage-guided fuzzing of `atlc::fuzz::targets::programs`: `cargo +nightly fuzz run programs`.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| atlc::fuzz::targets::programs(bytes));
