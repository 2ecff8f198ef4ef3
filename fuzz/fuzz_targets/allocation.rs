//! Coverage-guided fuzzing of `atlc::fuzz::targets::allocation`: `cargo +nightly fuzz run allocation`.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| atlc::fuzz::targets::allocation(bytes));
