//! Coverage-guided fuzzing of `atlc::fuzz::targets::ir_graphs`: `cargo +nightly fuzz run ir_graphs`.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| atlc::fuzz::targets::ir_graphs(bytes));
