//! Writes JSON-RPC messages, with one allocation each.

use bytes::{BufMut, Bytes, BytesMut};

use crate::{RawJson, RequestId, RpcError};

/// Writes `{"jsonrpc":"2.0","id":…,"result":…}`.
pub fn response(id: &RequestId, result: &RawJson) -> Bytes {
    join([
        br#"{"jsonrpc":"2.0","id":"#.as_slice(),
        id.as_bytes(),
        br#","result":"#,
        result.as_bytes(),
        b"}",
    ])
}

/// Writes `{"jsonrpc":"2.0","id":…,"error":…}`.
pub fn error_response(id: &RequestId, error: &RpcError) -> Bytes {
    let error = error.to_json();
    join([
        br#"{"jsonrpc":"2.0","id":"#.as_slice(),
        id.as_bytes(),
        br#","error":"#,
        error.as_bytes(),
        b"}",
    ])
}

/// Writes an error response without an id, for an unreadable message (2025-11-25).
pub fn error_response_without_id(error: &RpcError) -> Bytes {
    join([
        br#"{"jsonrpc":"2.0","error":"#.as_slice(),
        error.to_json().as_bytes(),
        b"}",
    ])
}

/// Writes `{"jsonrpc":"2.0","id":…,"method":…,"params":…}`.
pub fn request(id: &RequestId, method: &str, params: Option<&RawJson>) -> Bytes {
    let method = RawJson::of(method);
    let head: [&[u8]; 4] = [
        br#"{"jsonrpc":"2.0","id":"#,
        id.as_bytes(),
        br#","method":"#,
        method.as_bytes(),
    ];
    with_params(&head, params)
}

/// Writes `{"jsonrpc":"2.0","method":…,"params":…}`.
pub fn notification(method: &str, params: Option<&RawJson>) -> Bytes {
    let head: &[u8] = br#"{"jsonrpc":"2.0","method":"#;
    if is_plain(method) {
        return with_params(&[head, b"\"", method.as_bytes(), b"\""], params);
    }
    with_params(&[head, RawJson::of(method).as_bytes()], params)
}

fn is_plain(text: &str) -> bool {
    text.bytes()
        .all(|byte| byte >= b' ' && byte != b'"' && byte != b'\\')
}

/// Joins messages into a batch.
pub fn batch(messages: &[Bytes]) -> Bytes {
    let mut text = BytesMut::with_capacity(messages.iter().map(|m| m.len() + 1).sum::<usize>() + 2);
    text.put_u8(b'[');
    for (at, message) in messages.iter().enumerate() {
        if at > 0 {
            text.put_u8(b',');
        }
        text.put_slice(message);
    }
    text.put_u8(b']');
    text.freeze()
}

fn with_params(head: &[&[u8]], params: Option<&RawJson>) -> Bytes {
    let (label, params): (&[u8], &[u8]) = match params {
        Some(params) => (br#","params":"#, params.as_bytes()),
        None => (b"", b""),
    };
    join(head.iter().copied().chain([label, params, b"}"]))
}

fn join<'a>(parts: impl IntoIterator<Item = &'a [u8], IntoIter: Clone>) -> Bytes {
    let parts = parts.into_iter();
    let mut text = Vec::with_capacity(parts.clone().map(<[u8]>::len).sum());
    for part in parts {
        text.extend_from_slice(part);
    }
    text.into()
}
