//! A client's proof of possession (DPoP).
#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| shoal_auth::fuzz::dpop_proof(text));
