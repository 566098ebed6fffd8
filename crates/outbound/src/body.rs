use bytes::{Bytes, BytesMut};
use reqwest::Response;

use crate::whole_story;

/// Why a body cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Broken {
    /// The connection ended too early.
    Connection(String),
    /// The body exceeds its limit.
    TooLarge,
}

/// Reads a body of at most `limit` bytes.
///
/// # Errors
/// The body is larger, or ends too early.
pub async fn collect(mut answer: Response, limit: usize) -> Result<Bytes, Broken> {
    let mut whole = BytesMut::new();
    loop {
        match answer.chunk().await {
            Ok(Some(bytes)) if bytes.len() > limit - whole.len() => return Err(Broken::TooLarge),
            Ok(Some(bytes)) => whole.extend_from_slice(&bytes),
            Ok(None) => return Ok(whole.freeze()),
            Err(error) => return Err(Broken::Connection(whole_story(&error))),
        }
    }
}
