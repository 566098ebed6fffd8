//! A tool's schema and arguments.
#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| shoal_dispatch::fuzz::tool_schema(text));
