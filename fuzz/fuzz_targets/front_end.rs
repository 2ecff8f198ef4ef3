//! Coverage-guided fuzzing of `atlc::fuzz::targets::front_end`: `cargo +nightly fuzz run front_end`.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| atlc::fuzz::targets::front_end(bytes));
