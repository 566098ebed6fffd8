//! The output of a stdio server.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| shoal_worker::fuzz::stdio_lines(data));
