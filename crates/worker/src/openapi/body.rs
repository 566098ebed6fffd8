use std::collections::BTreeMap;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use serde_json::{Map, Value};

use super::config::DeepLists;
use super::document::{Encoding, MediaType};
use super::media::BodyKind;
use super::style::{ParameterEncoder, percent_encoded, plain};

mod files;

pub(super) use self::files::files;

const OCTETS: &str = "application/octet-stream";

#[derive(Clone, Debug)]
pub(super) struct BodyEncoder {
    kind: BodyKind,
    media: String,
    encoding: BTreeMap<String, Encoding>,
    files: Vec<String>,
    lists: DeepLists,
}

pub(super) fn choose(content: &Map<String, Value>) -> Option<(&str, BodyKind)> {
    let kinds = content
        .keys()
        .map(|media| (media.as_str(), BodyKind::of(media)));
    kinds.min_by_key(|(_, kind)| *kind as u8)
}

impl BodyEncoder {
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
            lists: DeepLists::default(),
        }
    }

    pub(super) fn write_lists_as(&mut self, lists: DeepLists) {
        self.lists = lists;
    }

    pub(super) fn has_parts(&self) -> bool {
        self.kind == BodyKind::Multipart
    }

    pub(super) fn write(&self, value: &Value) -> Result<(String, Bytes), String> {
        let body = match self.kind {
            BodyKind::Json => value.to_string().into(),
            BodyKind::Text => plain(value).into(),
            BodyKind::Bytes => decoded("body", value)?.into(),
            BodyKind::Form => match value {
                Value::Object(fields) => self.form(fields).into(),
                other => plain(other).into(),
            },
            BodyKind::Multipart => {
                let boundary = uuid::Uuid::new_v4().simple().to_string();
                let body = match value {
                    Value::Object(fields) => self.multipart(fields, &boundary)?,
                    other => {
                        let name = self.files.first().map_or("body", String::as_str);
                        let fields = Map::from_iter([(name.to_owned(), other.clone())]);
                        self.multipart(&fields, &boundary)?
                    }
                };
                let media = format!("multipart/form-data; boundary={boundary}");
                return Ok((media, body.into()));
            }
        };
        Ok((self.media.clone(), body))
    }

    fn form(&self, fields: &Map<String, Value>) -> String {
        let mut pairs = Vec::new();
        for (name, value) in fields.iter().filter(|(_, value)| !value.is_null()) {
            let encoding = self.encoding.get(name);
            let says = |encoding: &Encoding| {
                let style = encoding.style.style.is_some() || encoding.style.explode.is_some();
                style || encoding.explode.is_some()
            };
            if value.is_object() && !encoding.is_some_and(says) {
                // An object in a form is JSON by default.
                pairs.push((percent_encoded(name), percent_encoded(&value.to_string())));
            } else {
                let field = ParameterEncoder::of_field(name, encoding, self.lists);
                pairs.extend(field.pairs(value));
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
            for part in parts.iter().filter(|part| !part.is_null()) {
                let is_file = self.files.contains(name);
                let said = self
                    .encoding
                    .get(name)
                    .and_then(|encoding| encoding.content_type.as_deref());
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

fn decoded(name: &str, value: &Value) -> Result<Vec<u8>, String> {
    let text = value.as_str();
    let decoded = text.and_then(|text| BASE64_STANDARD.decode(text.trim()).ok());
    decoded.ok_or_else(|| format!("the argument {name:?} must be a string of Base64"))
}

fn quoted(name: &str) -> String {
    name.replace('"', "%22")
        .replace('\r', "%0D")
        .replace('\n', "%0A")
}

#[cfg(test)]
mod tests;
