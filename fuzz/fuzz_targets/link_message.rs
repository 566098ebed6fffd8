//! A message that another process sends over a link.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| shoal_rpc::fuzz::link_message(data));
