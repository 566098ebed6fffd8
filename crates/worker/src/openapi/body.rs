//! Bodies of requests: which kind an operation takes, and writing one.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use serde_json::{Map, Value};

use super::document::{Document, Encoding, MediaType};
use super::style::{ParameterEncoder, percent_encoded, plain};

/// Where a file of unknown type is told from others.
const OCTETS: &str = "application/octet-stream";

/// How a body is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BodyKind {
    Json,
    /// `multipart/form-data`
    Multipart,
    /// `application/x-www-form-urlencoded`
    Form,
    Text,
    /// Given as Base64.
    Bytes,
}

/// What an operation takes.
#[derive(Clone, Debug)]
pub(super) struct BodyEncoder {
    kind: BodyKind,
    /// Its `Content-Type`.
    media: String,
    encoding: BTreeMap<String, Encoding>,
    /// Properties of a form that are files, given as Base64.
    files: Vec<String>,
}

impl BodyKind {
    /// That of a media type.
    pub(super) fn of(media: &str) -> Self {
        let bare = essence(media);
        match bare.as_str() {
            "application/json" | "application/*" | "*/*" => Self::Json,
            "application/x-www-form-urlencoded" => Self::Form,
            "multipart/form-data" => Self::Multipart,
            "application/xml" => Self::Text,
            other if other.ends_with("+json") => Self::Json,
            other if other.starts_with("text/") || other.ends_with("+xml") => Self::Text,
            _ => Self::Bytes,
        }
    }
}

/// The kind of body to be sent, of those that an operation takes: the one that says most of itself.
pub(super) fn choose(content: &Map<String, Value>) -> Option<(&str, BodyKind)> {
    let kinds = content
        .keys()
        .map(|media| (media.as_str(), BodyKind::of(media)));
    kinds.min_by_key(|(_, kind)| *kind as u8)
}

/// A media type without its parameters.
pub(super) fn essence(media: &str) -> String {
    let bare = media.split(';').next().unwrap_or_default();
    bare.trim().to_ascii_lowercase()
}

/// Whether a schema describes bytes: in JSON they are Base64.
pub(super) fn is_binary(document: &Document, schema: &Value) -> bool {
    let schema = document.resolve(schema).unwrap_or(schema);
    let says = |keyword: &str, word: &str| schema.get(keyword).is_some_and(|said| said == word);
    says("format", "binary")
        || says("contentEncoding", "base64")
        || schema.get("contentMediaType").is_some() && schema.get("contentEncoding").is_none()
        || schema
            .get("items")
            .is_some_and(|items| is_binary(document, items))
}

impl BodyEncoder {
    /// For a body of this media type.
    pub(super) fn new(
        media: &str,
        kind: BodyKind,
        content: &MediaType,
        files: Vec<String>,
    ) -> Self {
        let media = match (kind, media.contains('*')) {
            (_, false) => media,
            (BodyKind::Json, true) => "application/json",
            (BodyKind::Text, true) => "text/plain",
            (_, true) => OCTETS,
        };
        Self {
            kind,
            media: media.to_owned(),
            encoding: content.encoding.clone(),
            files,
        }
    }

    /// The body and its `Content-Type`.
    ///
    /// # Errors
    /// What is wrong with the value.
    pub(super) fn write(&self, value: &Value) -> Result<(String, Bytes), String> {
        let body = match self.kind {
            BodyKind::Json => value.to_string().into(),
            BodyKind::Text => plain(value).into(),
            BodyKind::Bytes => decoded("body", value)?.into(),
            BodyKind::Form => self.form(fields(value)?).into(),
            BodyKind::Multipart => {
                let boundary = uuid::Uuid::new_v4().simple().to_string();
                let body = self.multipart(fields(value)?, &boundary)?;
                let media = format!("multipart/form-data; boundary={boundary}");
                return Ok((media, body.into()));
            }
        };
        Ok((self.media.clone(), body))
    }

    fn form(&self, fields: &Map<String, Value>) -> String {
        let mut pairs = Vec::new();
        for (name, value) in fields {
            let encoding = self.encoding.get(name);
            let style = encoding.and_then(|encoding| encoding.style);
            let explode = encoding.and_then(|encoding| encoding.explode);
            if value.is_object() && style.is_none() && explode.is_none() {
                // Its media type is JSON unless said.
                pairs.push((percent_encoded(name), percent_encoded(&value.to_string())));
            } else {
                pairs.extend(ParameterEncoder::of_field(name, style, explode).pairs(value));
            }
        }
        let pairs: Vec<String> = pairs
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        pairs.join("&")
    }

    fn multipart(&self, fields: &Map<String, Value>, boundary: &str) -> Result<Vec<u8>, String> {
        let mut body = Vec::new();
        for (name, value) in fields {
            let parts = match value {
                Value::Array(items) => items.as_slice(),
                one => std::slice::from_ref(one),
            };
            for part in parts {
                let is_file = self.files.contains(name);
                let said = self
                    .encoding
                    .get(name)
                    .and_then(|encoding| encoding.content_type.as_deref());
                // Of several that are allowed, the first; a pattern is no type.
                let said = said.and_then(|said| {
                    said.split(',')
                        .map(str::trim)
                        .find(|said| !said.contains('*'))
                });
                let (content, media) = match part {
                    part if is_file => (decoded(name, part)?, Some(said.unwrap_or(OCTETS))),
                    Value::Object(_) | Value::Array(_) => (
                        part.to_string().into_bytes(),
                        Some(said.unwrap_or("application/json")),
                    ),
                    part => (plain(part).into_bytes(), said),
                };
                let name = quoted(name);
                let mut head =
                    format!("--{boundary}\r\nContent-Disposition: form-data; name=\"{name}\"");
                if is_file {
                    head.push_str(&format!("; filename=\"{name}\""));
                }
                if let Some(media) = media.filter(|media| !media.contains(['\r', '\n'])) {
                    head.push_str(&format!("\r\nContent-Type: {media}"));
                }
                body.extend_from_slice(head.as_bytes());
                body.extend_from_slice(b"\r\n\r\n");
                body.extend_from_slice(&content);
                body.extend_from_slice(b"\r\n");
            }
        }
        body.extend_from_slice(format!("--{boundary}--\r\n").as_bytes());
        Ok(body)
    }
}

fn fields(value: &Value) -> Result<&Map<String, Value>, String> {
    let fields = value.as_object();
    fields.ok_or_else(|| "the body must be an object".to_owned())
}

fn decoded(name: &str, value: &Value) -> Result<Vec<u8>, String> {
    let text = value.as_str();
    let decoded = text.and_then(|text| BASE64_STANDARD.decode(text.trim()).ok());
    decoded.ok_or_else(|| format!("{name} must be a string of Base64"))
}

/// A name as it may stand between quotes: as browsers write it.
fn quoted(name: &str) -> String {
    name.replace('"', "%22")
        .replace('\r', "%0D")
        .replace('\n', "%0A")
}

#[cfg(test)]
mod tests;
