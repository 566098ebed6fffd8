//! The claims of an access token.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| shoal_auth::fuzz::claims(data));
