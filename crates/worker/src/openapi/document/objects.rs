use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use super::text;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(in crate::openapi) struct InfoObject {
    #[serde(deserialize_with = "any_text")]
    pub(in crate::openapi) title: String,
    pub(in crate::openapi) version: Value,
    #[serde(deserialize_with = "some_text")]
    pub(in crate::openapi) description: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(in crate::openapi) struct ServerObject {
    #[serde(default, deserialize_with = "any_text")]
    pub(in crate::openapi) url: String,
    #[serde(default)]
    pub(in crate::openapi) variables: BTreeMap<String, ServerVariable>,
}

#[derive(Debug, Deserialize)]
pub(in crate::openapi) struct ServerVariable {
    pub(in crate::openapi) default: Option<Value>,
    #[serde(rename = "enum", default)]
    pub(in crate::openapi) choices: Vec<Value>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::openapi) struct OperationObject {
    #[serde(default, deserialize_with = "some_text")]
    pub(in crate::openapi) operation_id: Option<String>,
    #[serde(default, deserialize_with = "some_text")]
    pub(in crate::openapi) summary: Option<String>,
    #[serde(default, deserialize_with = "some_text")]
    pub(in crate::openapi) description: Option<String>,
    #[serde(default, deserialize_with = "texts")]
    pub(in crate::openapi) tags: Vec<String>,
    #[serde(default)]
    pub(in crate::openapi) parameters: Vec<Value>,
    pub(in crate::openapi) request_body: Option<Value>,
    #[serde(default)]
    pub(in crate::openapi) responses: Map<String, Value>,
    pub(in crate::openapi) security: Option<Vec<Requirement>>,
    #[serde(default)]
    pub(in crate::openapi) servers: Vec<ServerObject>,
}

/// Security schemes, with their scopes. A call needs all of them together.
pub(in crate::openapi) type Requirement = BTreeMap<String, Value>;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::openapi) struct Parameter {
    #[serde(deserialize_with = "any_text")]
    pub(in crate::openapi) name: String,
    #[serde(rename = "in")]
    pub(in crate::openapi) location: ParameterLocation,
    #[serde(default, deserialize_with = "some_text")]
    pub(in crate::openapi) description: Option<String>,
    #[serde(default, deserialize_with = "truth")]
    pub(in crate::openapi) required: bool,
    #[serde(default, deserialize_with = "written_style")]
    pub(in crate::openapi) style: WrittenStyle,
    #[serde(default, deserialize_with = "some_truth")]
    pub(in crate::openapi) explode: Option<bool>,
    #[serde(default, deserialize_with = "truth")]
    pub(in crate::openapi) allow_reserved: bool,
    #[serde(rename = "x-multi-segment", default, deserialize_with = "truth")]
    pub(in crate::openapi) multi_segment: bool,
    pub(in crate::openapi) schema: Option<Value>,
    #[serde(default)]
    pub(in crate::openapi) content: Map<String, Value>,
}

impl Parameter {
    pub(in crate::openapi) fn undescribed(name: &str, location: ParameterLocation) -> Self {
        Self {
            name: name.to_owned(),
            location,
            description: None,
            required: location == ParameterLocation::Path,
            style: WrittenStyle::default(),
            explode: None,
            allow_reserved: false,
            multi_segment: false,
            schema: Some(serde_json::json!({ "type": "string" })),
            content: Map::new(),
        }
    }

    pub(in crate::openapi) fn takes_segments(&self, name: &str) -> bool {
        let may = self.allow_reserved || self.multi_segment;
        self.location == ParameterLocation::Path && may && self.name == name
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(in crate::openapi) enum ParameterLocation {
    Path,
    Query,
    /// The whole query (OpenAPI 3.2).
    QueryString,
    Header,
    Cookie,
    #[serde(skip)]
    Bound,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::openapi) enum ParameterStyle {
    Matrix,
    Label,
    Simple,
    Form,
    SpaceDelimited,
    PipeDelimited,
    DeepObject,
    /// Like `form`, but without encoding (OpenAPI 3.2).
    Cookie,
    /// Swagger 2.0's `tsv`, dropped by OpenAPI 3.0.
    #[serde(rename = "tsv")]
    TabDelimited,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::openapi) struct WrittenStyle {
    /// `None` for the place's default.
    pub(in crate::openapi) style: Option<ParameterStyle>,
    pub(in crate::openapi) explode: Option<bool>,
}

#[derive(Debug, Deserialize)]
pub(in crate::openapi) struct RequestBody {
    #[serde(default, deserialize_with = "some_text")]
    pub(in crate::openapi) description: Option<String>,
    #[serde(default, deserialize_with = "truth")]
    pub(in crate::openapi) required: bool,
    #[serde(default)]
    pub(in crate::openapi) content: Map<String, Value>,
}

#[derive(Debug, Default, Deserialize)]
pub(in crate::openapi) struct MediaType {
    pub(in crate::openapi) schema: Option<Value>,
    #[serde(default)]
    pub(in crate::openapi) encoding: BTreeMap<String, Encoding>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::openapi) struct Encoding {
    #[serde(default, deserialize_with = "some_text")]
    pub(in crate::openapi) content_type: Option<String>,
    #[serde(default, deserialize_with = "written_style")]
    pub(in crate::openapi) style: WrittenStyle,
    #[serde(default, deserialize_with = "some_truth")]
    pub(in crate::openapi) explode: Option<bool>,
    #[serde(default, deserialize_with = "truth")]
    pub(in crate::openapi) allow_reserved: bool,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase")]
pub(in crate::openapi) enum SecurityScheme {
    ApiKey {
        name: String,
        #[serde(rename = "in")]
        location: ParameterLocation,
    },
    Http {
        scheme: String,
    },
    Oauth2 {},
    OpenIdConnect {},
    MutualTLS {},
}

/// YAML may read text as another type, such as a number.
fn any_text<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    Ok(text(&Value::deserialize(from)?))
}

fn some_text<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    let value = Value::deserialize(from)?;
    let is_scalar = !value.is_null() && !value.is_object() && !value.is_array();
    Ok(is_scalar.then(|| text(&value)))
}

fn texts<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    Ok(match Value::deserialize(from)? {
        Value::Array(items) => items.iter().map(text).collect(),
        Value::Null => Vec::new(),
        one => vec![text(&one)],
    })
}

fn truth<'de, D: Deserializer<'de>>(from: D) -> Result<bool, D::Error> {
    Ok(some_truth(from)?.unwrap_or_default())
}

fn some_truth<'de, D: Deserializer<'de>>(from: D) -> Result<Option<bool>, D::Error> {
    Ok(match Value::deserialize(from)? {
        Value::Bool(value) => Some(value),
        Value::String(word) if word.eq_ignore_ascii_case("true") => Some(true),
        Value::String(word) if word.eq_ignore_ascii_case("false") => Some(false),
        _ => None,
    })
}

/// An unknown word counts as the default style.
fn written_style<'de, D: Deserializer<'de>>(from: D) -> Result<WrittenStyle, D::Error> {
    let value = Value::deserialize(from)?;
    let list = |style, explode| WrittenStyle {
        style,
        explode: Some(explode),
    };
    Ok(match value.as_str() {
        Some("csv") => list(None, false),
        Some("multi") => list(None, true),
        Some("ssv") => list(Some(ParameterStyle::SpaceDelimited), false),
        Some("pipes") => list(Some(ParameterStyle::PipeDelimited), false),
        _ => WrittenStyle {
            style: ParameterStyle::deserialize(value).ok(),
            explode: None,
        },
    })
}
