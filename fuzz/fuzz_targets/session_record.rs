//! A session's record in Redis.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| shoal_session::fuzz::session_record(data));
