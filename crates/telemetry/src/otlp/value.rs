use opentelemetry::{Array, KeyValue, Value};
use prost::encoding::{WireType, encode_key, encode_varint, encoded_len_varint};

use super::wire::{bytes, fixed64, nested_len, open};

pub(super) fn attributes(to: &mut Vec<u8>, tag: u32, attributes: &[KeyValue]) {
    for given in attributes {
        attribute(to, tag, given.key.as_str(), &given.value);
    }
}

pub(super) fn attribute(to: &mut Vec<u8>, tag: u32, key: &str, value: &Value) {
    let length = len(value);
    open(to, tag, nested_len(1, key.len()) + nested_len(2, length));
    bytes(to, 1, key.as_bytes());
    open(to, 2, length);
    write(to, value);
}

fn len(value: &Value) -> usize {
    match value {
        Value::String(text) => nested_len(1, text.as_str().len()),
        Value::Bool(_) => 2,
        Value::I64(number) => 1 + encoded_len_varint(number.cast_unsigned()),
        Value::F64(_) => 9,
        Value::Array(array) => nested_len(5, array_len(array)),
        other => nested_len(1, other.as_str().len()),
    }
}

/// Writes even zero or empty values, because the `oneof` must be set.
fn write(to: &mut Vec<u8>, value: &Value) {
    match value {
        Value::String(text) => bytes(to, 1, text.as_str().as_bytes()),
        Value::Bool(is) => varint(to, 2, (*is).into()),
        Value::I64(number) => varint(to, 3, number.cast_unsigned()),
        Value::F64(number) => fixed64(to, 4, number.to_le_bytes()),
        Value::Array(array) => {
            open(to, 5, array_len(array));
            for value in elements(array) {
                open(to, 1, len(&value));
                write(to, &value);
            }
        }
        other => bytes(to, 1, other.as_str().as_bytes()),
    }
}

fn varint(to: &mut Vec<u8>, tag: u32, number: u64) {
    encode_key(tag, WireType::Varint, to);
    encode_varint(number, to);
}

fn array_len(array: &Array) -> usize {
    let elements = elements(array).into_iter();
    elements.map(|value| nested_len(1, len(&value))).sum()
}

/// Copying is acceptable, because Shoal's own attributes have no arrays.
fn elements(array: &Array) -> Vec<Value> {
    match array {
        Array::Bool(values) => values.iter().copied().map(Value::Bool).collect(),
        Array::I64(values) => values.iter().copied().map(Value::I64).collect(),
        Array::F64(values) => values.iter().copied().map(Value::F64).collect(),
        Array::String(values) => values.iter().cloned().map(Value::String).collect(),
        _ => Vec::new(),
    }
}
