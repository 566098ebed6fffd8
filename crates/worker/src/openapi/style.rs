//! Serializes parameters (RFC 6570, and OpenAPI's additions).

use serde_json::Value;

use super::config::DeepLists;
use super::document::{Encoding, Parameter, ParameterLocation, ParameterStyle};
use super::media::BodyKind;
use super::path::Segments;

mod text;

use self::text::{
    RESERVED_IN_PATH, VALUE, deep, defined, encoded, is_empty, joined, keeping_triples, pairs,
};
pub(super) use self::text::{percent_encoded, plain};

#[derive(Clone, Debug)]
pub(super) struct ParameterEncoder {
    pub(super) name: String,
    style: ParameterStyle,
    explode: bool,
    allow_reserved: bool,
    content: Option<BodyKind>,
    lists: DeepLists,
}

impl ParameterEncoder {
    pub(super) fn of(parameter: &Parameter) -> Result<Self, String> {
        use ParameterLocation::{Bound, Cookie, Header, Path, Query, QueryString};
        let usual = match parameter.location {
            Query | QueryString | Cookie => ParameterStyle::Form,
            Path | Header | Bound => ParameterStyle::Simple,
        };
        // In the path's own query, the path decides the style.
        let said = parameter
            .style
            .style
            .filter(|_| parameter.location != Bound);
        let style = said.unwrap_or(usual);
        let fits = match style {
            ParameterStyle::Matrix | ParameterStyle::Label => parameter.location == Path,
            ParameterStyle::Simple => matches!(parameter.location, Path | Header | Bound),
            ParameterStyle::Form => matches!(parameter.location, Query | QueryString | Cookie),
            ParameterStyle::Cookie => parameter.location == Cookie,
            ParameterStyle::SpaceDelimited
            | ParameterStyle::PipeDelimited
            | ParameterStyle::TabDelimited
            | ParameterStyle::DeepObject => parameter.location == Query,
        };
        if !fits {
            let (name, place) = (&parameter.name, parameter.location);
            return Err(format!(
                "the parameter {name:?} cannot have the style {style:?} in {place:?}"
            ));
        }
        let media = parameter.content.keys().next();
        Ok(Self {
            name: parameter.name.clone(),
            style,
            explode: explodes(style, parameter.explode.or(parameter.style.explode)),
            allow_reserved: parameter.allow_reserved,
            content: media.map(|media| BodyKind::of(media)),
            lists: DeepLists::default(),
        })
    }

    pub(super) fn of_field(name: &str, encoding: Option<&Encoding>, lists: DeepLists) -> Self {
        let said = encoding.map(|encoding| encoding.style).unwrap_or_default();
        let explode = encoding.and_then(|encoding| encoding.explode);
        let style = said.style.unwrap_or(ParameterStyle::Form);
        Self {
            name: name.to_owned(),
            style,
            explode: explodes(style, explode.or(said.explode)),
            allow_reserved: encoding.is_some_and(|encoding| encoding.allow_reserved),
            content: None,
            lists,
        }
    }

    pub(super) fn write_lists_as(&mut self, lists: DeepLists) {
        self.lists = lists;
    }

    pub(super) fn in_path(&self, value: &Value, segments: &Segments) -> Result<String, String> {
        let keeps = self.allow_reserved || *segments == Segments::Several;
        let set = if keeps { RESERVED_IN_PATH } else { VALUE };
        if !segments.are_several() {
            return Ok(self.simple(value, |text| encoded(text, set)));
        }
        let encode = |text: &str| {
            let segments: Vec<String> = text.split('/').map(|it| encoded(it, set)).collect();
            segments.join("/")
        };
        let written = self.simple(value, encode);
        segments.check(&written)?;
        Ok(written)
    }

    pub(super) fn in_own_query(&self, value: &Value) -> String {
        self.simple(value, |text| encoded(text, VALUE))
    }

    fn simple(&self, value: &Value, encode: impl Fn(&str) -> String) -> String {
        if let Some(kind) = self.content {
            return encode(&whole(kind, value));
        }
        let name = encoded(&self.name, VALUE);
        match (self.style, value) {
            (ParameterStyle::Matrix, Value::Array(items)) if self.explode => defined(items)
                .map(|item| format!(";{name}={}", encode(&plain(item))))
                .collect(),
            (ParameterStyle::Matrix, Value::Object(_)) if self.explode => pairs(value, encode)
                .map(|(key, value)| format!(";{key}={value}"))
                .collect(),
            (ParameterStyle::Matrix, value) => {
                format!(";{name}={}", joined(value, ",", encode, false))
            }
            (ParameterStyle::Label, value) => {
                let between = if self.explode { "." } else { "," };
                format!(".{}", joined(value, between, encode, self.explode))
            }
            (_, value) => joined(value, ",", encode, self.explode),
        }
    }

    /// Does not check the characters, because `request::insert` does.
    pub(super) fn in_header(&self, value: &Value) -> String {
        match self.content {
            Some(kind) => whole(kind, value),
            None => joined(value, ",", str::to_owned, self.explode),
        }
    }

    pub(super) fn as_query(&self, value: &Value) -> String {
        match self.content {
            Some(BodyKind::Form) | None => as_form(value),
            Some(kind) => percent_encoded(&whole(kind, value)),
        }
    }

    /// Names and values must not contain separators then.
    pub(super) fn is_unencoded(&self) -> bool {
        self.style == ParameterStyle::Cookie && self.content.is_none()
    }

    pub(super) fn pairs(&self, value: &Value) -> Vec<(String, String)> {
        let encode = |text: &str| match (self.is_unencoded(), self.allow_reserved) {
            (true, _) => text.to_owned(),
            (false, true) => keeping_triples(text),
            (false, false) => encoded(text, VALUE),
        };
        let key = |text: &str| match self.is_unencoded() {
            true => text.to_owned(),
            false => encoded(text, VALUE),
        };
        let name = key(&self.name);
        if let Some(kind) = self.content {
            return vec![(name, encode(&whole(kind, value)))];
        }
        match (self.style, value) {
            (ParameterStyle::DeepObject, value) => {
                let mut found = Vec::new();
                deep(&name, value, self.lists, &encode, &mut found);
                found
            }
            (_, Value::Array(items)) if self.explode => {
                let pair = |item| (name.clone(), encode(&plain(item)));
                defined(items).map(pair).collect()
            }
            (_, value) if is_empty(value) => Vec::new(),
            (_, Value::Object(_)) if self.explode => {
                let keys = pairs(value, key).map(|(key, _)| key);
                keys.zip(pairs(value, encode).map(|(_, value)| value))
                    .collect()
            }
            (style, value) => {
                let between = match style {
                    ParameterStyle::SpaceDelimited => "%20",
                    ParameterStyle::PipeDelimited => "%7C",
                    ParameterStyle::TabDelimited => "%09",
                    _ => ",",
                };
                vec![(name, joined(value, between, encode, false))]
            }
        }
    }
}

fn explodes(style: ParameterStyle, said: Option<bool>) -> bool {
    said.unwrap_or(matches!(
        style,
        ParameterStyle::Form | ParameterStyle::Cookie
    ))
}

fn whole(kind: BodyKind, value: &Value) -> String {
    match kind {
        BodyKind::Json => value.to_string(),
        BodyKind::Form => as_form(value),
        BodyKind::Text | BodyKind::Bytes | BodyKind::Multipart => plain(value),
    }
}

fn as_form(value: &Value) -> String {
    let Value::Object(members) = value else {
        return plain(value);
    };
    let fields = members.iter().flat_map(|(name, value)| {
        ParameterEncoder::of_field(name, None, DeepLists::default()).pairs(value)
    });
    let fields: Vec<String> = fields
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    fields.join("&")
}

#[cfg(test)]
mod tests;
