//! Fields of protobuf. As in proto3, zero and empty values are left out.

use std::time::{SystemTime, UNIX_EPOCH};

use prost::encoding::{WireType, encode_key, encode_varint, encoded_len_varint, key_len};

pub(super) fn open(to: &mut Vec<u8>, tag: u32, length: usize) {
    encode_key(tag, WireType::LengthDelimited, to);
    encode_varint(length as u64, to);
}

pub(super) fn nested_len(tag: u32, length: usize) -> usize {
    key_len(tag) + encoded_len_varint(length as u64) + length
}

pub(super) fn bytes(to: &mut Vec<u8>, tag: u32, bytes: &[u8]) {
    open(to, tag, bytes.len());
    to.extend_from_slice(bytes);
}

pub(super) fn string(to: &mut Vec<u8>, tag: u32, text: &str) {
    if !text.is_empty() {
        bytes(to, tag, text.as_bytes());
    }
}

pub(super) fn number(to: &mut Vec<u8>, tag: u32, number: u64) {
    if number != 0 {
        encode_key(tag, WireType::Varint, to);
        encode_varint(number, to);
    }
}

pub(super) fn fixed32(to: &mut Vec<u8>, tag: u32, number: u32) {
    encode_key(tag, WireType::ThirtyTwoBit, to);
    to.extend_from_slice(&number.to_le_bytes());
}

pub(super) fn fixed64(to: &mut Vec<u8>, tag: u32, bytes: [u8; 8]) {
    encode_key(tag, WireType::SixtyFourBit, to);
    to.extend_from_slice(&bytes);
}

/// Writes nanoseconds since 1970.
pub(super) fn time(to: &mut Vec<u8>, tag: u32, time: SystemTime) {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let nanos = u64::try_from(since.as_nanos()).unwrap_or(u64::MAX);
    fixed64(to, tag, nanos.to_le_bytes());
}
