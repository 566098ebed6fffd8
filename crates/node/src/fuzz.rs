//! What `scripts/fuzz` gets at: there only with `--cfg fuzzing`.

/// A configuration file, up to the rules that look at other files.
pub fn settings(text: &str) {
    let _ = crate::config::fuzz::read(text);
}

/// The bytes of an HTTP/1.1 connection: the same requests, however they are cut.
pub fn http_framing(data: &[u8]) {
    crate::http::fuzz::framing(data);
}
