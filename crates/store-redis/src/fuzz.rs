//! Entry points for `scripts/fuzz`, with `--cfg fuzzing`.

use std::collections::HashMap;

use bytes::Bytes;

use crate::journal::open_calls;
use crate::target::RedisTarget;

/// Parses a Redis URL.
pub fn redis_url(text: &str) {
    let _ = RedisTarget::parse(text);
}

/// Reads a session's hash from lines `field=value`.
pub fn session_hash(text: &[u8]) {
    let fields = text.split(|byte| *byte == b'\n').filter_map(|line| {
        let at = line.iter().position(|byte| *byte == b'=')?;
        let (name, value) = (&line[..at], &line[at + 1..]);
        Some((Bytes::copy_from_slice(name), Bytes::copy_from_slice(value)))
    });
    let _ = open_calls(&fields.collect::<HashMap<_, _>>());
}
