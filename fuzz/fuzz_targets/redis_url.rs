#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| shoal_store_redis::fuzz::redis_url(text));
