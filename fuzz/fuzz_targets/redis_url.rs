//! `scripts/fuzz 60 redis_url`: the URL of a Redis.
#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| shoal_store_redis::fuzz::redis_url(text));
