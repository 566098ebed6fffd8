//! How values of parameters are written (RFC 6570, and what OpenAPI adds).

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

use super::body::BodyKind;
use super::config::DeepLists;
use super::document::{Encoding, Parameter, ParameterLocation, ParameterStyle};
use super::path::Segments;

/// Everything but unreserved characters: a value cannot leave its place.
const VALUE: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');
/// As `allowReserved` has it, but for what would end the value.
const RESERVED: &AsciiSet = &VALUE
    .remove(b':')
    .remove(b'/')
    .remove(b'?')
    .remove(b'@')
    .remove(b'!')
    .remove(b'$')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')')
    .remove(b'*')
    .remove(b',')
    .remove(b';');

/// The same in a path, where more would end a segment, or the whole path. `;` stays encoded: some servers drop what follows it.
const RESERVED_IN_PATH: &AsciiSet = &VALUE
    .remove(b':')
    .remove(b'@')
    .remove(b'!')
    .remove(b'$')
    .remove(b'&')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')')
    .remove(b'*')
    .remove(b'+')
    .remove(b',')
    .remove(b'=');

/// How one parameter is written.
#[derive(Clone, Debug)]
pub(super) struct ParameterEncoder {
    pub(super) name: String,
    style: ParameterStyle,
    explode: bool,
    allow_reserved: bool,
    /// The kind of its `content`, where it has one.
    content: Option<BodyKind>,
    lists: DeepLists,
}

impl ParameterEncoder {
    /// That of a parameter.
    ///
    /// # Errors
    /// When its style has no meaning where it goes.
    pub(super) fn of(parameter: &Parameter) -> Result<Self, String> {
        use ParameterLocation::{Bound, Cookie, Header, Path, Query, QueryString};
        let usual = match parameter.location {
            Query | QueryString | Cookie => ParameterStyle::Form,
            Path | Header | Bound => ParameterStyle::Simple,
        };
        // Within a query of the path, the path says how a value is written.
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

    /// That of a property of a form.
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

    /// How lists within `deepObject` are written.
    pub(super) fn write_lists_as(&mut self, lists: DeepLists) {
        self.lists = lists;
    }

    /// The value as it stands in a path, where it may be as many segments.
    ///
    /// # Errors
    /// When it would lead elsewhere.
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

    /// The value as it stands in a query that the path has.
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

    /// The value as it stands in a header; what cannot, is refused later.
    pub(super) fn in_header(&self, value: &Value) -> String {
        match self.content {
            Some(kind) => whole(kind, value),
            None => joined(value, ",", str::to_owned, self.explode),
        }
    }

    /// The value as a whole query.
    pub(super) fn as_query(&self, value: &Value) -> String {
        match self.content {
            Some(BodyKind::Form) | None => as_form(value),
            Some(kind) => percent_encoded(&whole(kind, value)),
        }
    }

    /// Whether names and values stand as they are, so that none may hold what ends it.
    pub(super) fn is_unencoded(&self) -> bool {
        self.style == ParameterStyle::Cookie && self.content.is_none()
    }

    /// The names and values of a query, a cookie or a form, encoded.
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

/// A value that a media type says how to write.
fn whole(kind: BodyKind, value: &Value) -> String {
    match kind {
        BodyKind::Json => value.to_string(),
        BodyKind::Form => as_form(value),
        BodyKind::Text | BodyKind::Bytes | BodyKind::Multipart => plain(value),
    }
}

/// Names and values as of a form; text is one already.
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

/// A value as plain text.
pub(super) fn plain(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Text with all but unreserved characters percent-encoded.
pub(super) fn percent_encoded(text: &str) -> String {
    encoded(text, VALUE)
}

fn encoded(text: &str, set: &'static AsciiSet) -> String {
    utf8_percent_encode(text, set).to_string()
}

/// Text with reserved characters as they are, and what is encoded already (RFC 6570, 3.2.3).
fn keeping_triples(text: &str) -> String {
    let mut written = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('%') {
        let (before, from) = rest.split_at(at);
        written.push_str(&encoded(before, RESERVED));
        let is_triple = from.len() > 2 && from.as_bytes()[1..3].iter().all(u8::is_ascii_hexdigit);
        let (one, after) = from.split_at(if is_triple { 3 } else { 1 });
        written.push_str(if is_triple { one } else { "%25" });
        rest = after;
    }
    written.push_str(&encoded(rest, RESERVED));
    written
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Array(items) => defined(items).next().is_none(),
        Value::Object(members) => members.values().all(Value::is_null),
        _ => false,
    }
}

/// The items that are something: null has no form in a URL (RFC 6570, 2.3).
fn defined(items: &[Value]) -> impl Iterator<Item = &Value> {
    items.iter().filter(|item| !item.is_null())
}

fn pairs(value: &Value, encode: impl Fn(&str) -> String) -> impl Iterator<Item = (String, String)> {
    let members = value.as_object().into_iter().flatten();
    let members = members.filter(|(_, value)| !value.is_null());
    members.map(move |(key, value)| (encode(key), encode(&plain(value))))
}

/// The items of a list, or the names and values of an object, one after the other.
fn joined(
    value: &Value,
    between: &str,
    encode: impl Fn(&str) -> String,
    with_equals: bool,
) -> String {
    match value {
        Value::Array(items) => {
            let items: Vec<String> = defined(items).map(|item| encode(&plain(item))).collect();
            items.join(between)
        }
        Value::Object(_) => {
            let inner = if with_equals { "=" } else { between };
            let pairs = pairs(value, encode).map(|(key, value)| format!("{key}{inner}{value}"));
            pairs.collect::<Vec<_>>().join(between)
        }
        other => encode(&plain(other)),
    }
}

/// `name[key]=value`, as deep as it goes.
fn deep(
    name: &str,
    value: &Value,
    lists: DeepLists,
    encode: &impl Fn(&str) -> String,
    found: &mut Vec<(String, String)>,
) {
    match value {
        Value::Null => {}
        Value::Object(members) => {
            for (key, value) in members {
                let name = format!("{name}%5B{}%5D", encoded(key, VALUE));
                deep(&name, value, lists, encode, found);
            }
        }
        Value::Array(items) => {
            let nested = items.iter().any(|item| item.is_object() || item.is_array());
            for (at, item) in defined(items).enumerate() {
                let name = match lists {
                    DeepLists::Indices => format!("{name}%5B{at}%5D"),
                    DeepLists::Mixed if nested => format!("{name}%5B{at}%5D"),
                    DeepLists::Mixed | DeepLists::Brackets => format!("{name}%5B%5D"),
                    DeepLists::Repeat => name.to_owned(),
                };
                deep(&name, item, lists, encode, found);
            }
        }
        other => found.push((name.to_owned(), encode(&plain(other)))),
    }
}

#[cfg(test)]
mod tests;
