use serde_json::Value;

use crate::openapi::document::Document;

/// Bounds the search, because schemas may contain themselves.
const DEPTH: usize = 6;
const FILE: &str = "file";

/// One name if the body itself is a file.
pub(in crate::openapi) fn files(document: &Document, schema: &Value) -> Vec<String> {
    let mut found = Vec::new();
    gather(document, schema, DEPTH, &mut found);
    if found.is_empty() && is_binary(document, schema, DEPTH) {
        found.push(FILE.to_owned());
    }
    found
}

fn gather(document: &Document, schema: &Value, depth: usize, found: &mut Vec<String>) {
    let schema = document.resolve(schema).unwrap_or(schema);
    let properties = schema.get("properties").and_then(Value::as_object);
    for (name, property) in properties.into_iter().flatten() {
        if !found.contains(name) && is_binary(document, property, DEPTH) {
            found.push(name.clone());
        }
    }
    if depth > 0 {
        for part in parts(schema) {
            gather(document, part, depth - 1, found);
        }
    }
}

fn parts(schema: &Value) -> impl Iterator<Item = &Value> {
    let lists = ["allOf", "anyOf", "oneOf"].into_iter();
    lists
        .filter_map(|of| schema.get(of).and_then(Value::as_array))
        .flatten()
}

fn is_binary(document: &Document, schema: &Value, depth: usize) -> bool {
    let schema = document.resolve(schema).unwrap_or(schema);
    let says = |keyword: &str, word: &str| schema.get(keyword).is_some_and(|said| said == word);
    if says("format", "binary")
        || says("contentEncoding", "base64")
        || schema.get("contentMediaType").is_some() && schema.get("contentEncoding").is_none()
    {
        return true;
    }
    let inner = schema.get("items").into_iter().chain(parts(schema));
    depth > 0
        && inner
            .into_iter()
            .any(|inner| is_binary(document, inner, depth - 1))
}
