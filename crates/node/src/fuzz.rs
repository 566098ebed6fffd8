//! Entry points for `scripts/fuzz`, built with `--cfg fuzzing` only.

/// Parses a configuration file, but follows no references to other files.
pub fn settings(text: &str) {
    let _ = crate::config::fuzz::read(text);
}

/// Parses HTTP/1.1 bytes, and checks that the result does not depend on how the bytes are split.
pub fn http_framing(data: &[u8]) {
    crate::http::fuzz::framing(data);
}
