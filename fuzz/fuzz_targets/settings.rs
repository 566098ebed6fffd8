//! A configuration file.
#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| shoal_node::fuzz::settings(text));
