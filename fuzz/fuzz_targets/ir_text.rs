//! Coverage-guided fuzzing of `atlc::fuzz::targets::ir_text`: `cargo +nightly fuzz run ir_text`.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| atlc::fuzz::targets::ir_text(bytes));
