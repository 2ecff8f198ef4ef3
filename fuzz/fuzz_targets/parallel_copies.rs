//! Coverage-guided fuzzing of `atlc::fuzz::targets::parallel_copies`: `cargo +nightly fuzz run parallel_copies`.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| atlc::fuzz::targets::parallel_copies(bytes));
