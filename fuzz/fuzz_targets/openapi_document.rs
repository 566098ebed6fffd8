//! `scripts/fuzz 60 openapi_document`: an OpenAPI document.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| shoal_worker::fuzz::openapi_document(data));
