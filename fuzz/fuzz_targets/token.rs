//! An access token of a client.
#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| shoal_auth::fuzz::token(text));
