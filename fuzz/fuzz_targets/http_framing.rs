//! The bytes of an HTTP/1.1 connection.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| shoal_node::fuzz::http_framing(data));
