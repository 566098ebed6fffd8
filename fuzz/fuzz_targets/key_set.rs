//! The keys that an issuer of tokens publishes.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| shoal_auth::fuzz::key_set(data));
