//! A message of another process.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| shoal_rpc::fuzz::link_message(data));
