//! A session's hash in Redis.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| shoal_store_redis::fuzz::session_hash(data));
