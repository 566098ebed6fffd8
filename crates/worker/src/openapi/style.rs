//! How values of parameters are written (RFC 6570, and what OpenAPI adds).

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

use super::document::{Parameter, ParameterLocation, ParameterStyle};

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

/// How one parameter is written.
#[derive(Clone, Debug)]
pub(super) struct ParameterEncoder {
    pub(super) name: String,
    style: ParameterStyle,
    explode: bool,
    allow_reserved: bool,
    /// As JSON, since it has a `content`.
    as_json: bool,
}

impl ParameterEncoder {
    /// That of a parameter.
    ///
    /// # Errors
    /// When its style has no meaning where it goes.
    pub(super) fn of(parameter: &Parameter) -> Result<Self, String> {
        use ParameterLocation::{Cookie, Header, Path, Query};
        let usual = match parameter.location {
            Query | Cookie => ParameterStyle::Form,
            Path | Header => ParameterStyle::Simple,
        };
        let style = parameter.style.unwrap_or(usual);
        let fits = match style {
            ParameterStyle::Matrix | ParameterStyle::Label => parameter.location == Path,
            ParameterStyle::Simple => matches!(parameter.location, Path | Header),
            ParameterStyle::Form => matches!(parameter.location, Query | Cookie),
            ParameterStyle::SpaceDelimited
            | ParameterStyle::PipeDelimited
            | ParameterStyle::DeepObject => parameter.location == Query,
        };
        if !fits {
            let (name, place) = (&parameter.name, parameter.location);
            return Err(format!(
                "the parameter {name:?} cannot have the style {style:?} in {place:?}"
            ));
        }
        Ok(Self {
            name: parameter.name.clone(),
            style,
            explode: parameter.explode.unwrap_or(style == ParameterStyle::Form),
            allow_reserved: parameter.allow_reserved,
            as_json: !parameter.content.is_empty(),
        })
    }

    /// That of a property of a form.
    pub(super) fn of_field(
        name: &str,
        style: Option<ParameterStyle>,
        explode: Option<bool>,
    ) -> Self {
        let style = style.unwrap_or(ParameterStyle::Form);
        Self {
            name: name.to_owned(),
            style,
            explode: explode.unwrap_or(style == ParameterStyle::Form),
            allow_reserved: false,
            as_json: false,
        }
    }

    /// The value as it stands in a path.
    pub(super) fn in_path(&self, value: &Value) -> String {
        let encode = |text: &str| encoded(text, VALUE);
        if self.as_json {
            return encode(&value.to_string());
        }
        let name = encode(&self.name);
        match (self.style, value) {
            (ParameterStyle::Matrix, Value::Array(items)) if self.explode => items
                .iter()
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
        match self.as_json {
            true => value.to_string(),
            false => joined(value, ",", str::to_owned, self.explode),
        }
    }

    /// The names and values of a query, a cookie or a form, encoded.
    pub(super) fn pairs(&self, value: &Value) -> Vec<(String, String)> {
        let set = if self.allow_reserved { RESERVED } else { VALUE };
        let encode = |text: &str| encoded(text, set);
        let name = encoded(&self.name, VALUE);
        if self.as_json {
            return vec![(name, encode(&value.to_string()))];
        }
        match (self.style, value) {
            (ParameterStyle::DeepObject, Value::Object(_)) => {
                let mut found = Vec::new();
                deep(&name, value, &mut found);
                found
            }
            (_, Value::Array(items))
                if self.explode || self.style == ParameterStyle::DeepObject =>
            {
                let pair = |item| (name.clone(), encode(&plain(item)));
                items.iter().map(pair).collect()
            }
            (_, Value::Array(items)) if items.is_empty() => Vec::new(),
            (_, Value::Object(_)) if self.explode => {
                let key = |text: &str| encoded(text, VALUE);
                let keys = pairs(value, key).map(|(key, _)| key);
                keys.zip(pairs(value, encode).map(|(_, value)| value))
                    .collect()
            }
            (style, value) => {
                let between = match style {
                    ParameterStyle::SpaceDelimited => "%20",
                    ParameterStyle::PipeDelimited => "%7C",
                    _ => ",",
                };
                vec![(name, joined(value, between, encode, false))]
            }
        }
    }
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

fn pairs(value: &Value, encode: impl Fn(&str) -> String) -> impl Iterator<Item = (String, String)> {
    let members = value.as_object().into_iter().flatten();
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
            let items: Vec<String> = items.iter().map(|item| encode(&plain(item))).collect();
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
fn deep(name: &str, value: &Value, found: &mut Vec<(String, String)>) {
    match value {
        Value::Object(members) => {
            for (key, value) in members {
                deep(
                    &format!("{name}%5B{}%5D", encoded(key, VALUE)),
                    value,
                    found,
                );
            }
        }
        Value::Array(items) => {
            for item in items {
                found.push((name.to_owned(), encoded(&plain(item), VALUE)));
            }
        }
        other => found.push((name.to_owned(), encoded(&plain(other), VALUE))),
    }
}

#[cfg(test)]
mod tests;
