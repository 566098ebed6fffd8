//! A URI and a template.
#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| shoal_dispatch::fuzz::resource_uri(text));
