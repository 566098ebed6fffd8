#![no_main]
#![allow(dead_code)]

#[path = "../../crates/protocol/tests/fuzz/checks.rs"]
mod checks;

libfuzzer_sys::fuzz_target!(|data: &[u8]| checks::trace_context(data));
