//! Entry points for `scripts/fuzz`, compiled only with `--cfg fuzzing`.

use bytes::BytesMut;
use tokio_util::codec::Decoder as _;

use crate::openapi::fuzz::compile;
use crate::upstream::Lines;

/// Compiles an OpenAPI document into tools.
pub fn openapi_document(text: &[u8]) {
    let _ = compile(text);
}

/// Checks that a stdio server's lines do not depend on how its bytes are split into reads.
pub fn stdio_lines(data: &[u8]) {
    let Some((&cut, text)) = data.split_first() else {
        return;
    };
    let size = usize::from(cut % 16) + 1;
    assert_eq!(lines(text, text.len().max(1)), lines(text, size));
}

fn lines(text: &[u8], size: usize) -> Vec<String> {
    let mut lines = Lines::of_at_most(64);
    let mut waiting = BytesMut::new();
    let mut found = Vec::new();
    for piece in text.chunks(size) {
        waiting.extend_from_slice(piece);
        while let Ok(Some(line)) = lines.decode(&mut waiting) {
            found.push(format!("{line:?}"));
        }
    }
    while let Ok(Some(line)) = lines.decode_eof(&mut waiting) {
        found.push(format!("{line:?}"));
    }
    found
}
