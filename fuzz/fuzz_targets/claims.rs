//! The claims of a token.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| shoal_auth::fuzz::claims(data));
