//! A resource's URI and a template for such URIs.
#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| shoal_dispatch::fuzz::resource_uri(text));
