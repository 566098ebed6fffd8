//! The document as it is written: its version, its references, its objects.

use std::collections::BTreeMap;

use percent_encoding::percent_decode_str;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// References that lead to one another are followed this far.
const HOPS: usize = 16;

/// A document of a version that is supported. Its schemas stay as they are: no type would keep all of JSON Schema.
pub(super) struct Document {
    root: Value,
    version: OpenApiVersion,
}

/// How schemas are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OpenApiVersion {
    /// 3.0: a dialect that differs from JSON Schema.
    V3_0,
    /// 3.1 and later: JSON Schema 2020-12.
    V3_1,
}

/// `Info`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct InfoObject {
    pub(super) title: String,
    pub(super) version: Value,
    pub(super) description: Option<String>,
}

/// `Server`.
#[derive(Debug, Deserialize)]
pub(super) struct ServerObject {
    pub(super) url: String,
    #[serde(default)]
    pub(super) variables: BTreeMap<String, ServerVariable>,
}

/// `Server Variable`.
#[derive(Debug, Deserialize)]
pub(super) struct ServerVariable {
    pub(super) default: Option<Value>,
    #[serde(rename = "enum", default)]
    pub(super) choices: Vec<Value>,
}

/// `Operation`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct OperationObject {
    pub(super) operation_id: Option<String>,
    pub(super) summary: Option<String>,
    pub(super) description: Option<String>,
    #[serde(default)]
    pub(super) parameters: Vec<Value>,
    pub(super) request_body: Option<Value>,
    #[serde(default)]
    pub(super) responses: Map<String, Value>,
    pub(super) security: Option<Vec<Requirement>>,
    #[serde(default)]
    pub(super) servers: Vec<ServerObject>,
}

/// `Security Requirement`: schemes that are needed together.
pub(super) type Requirement = BTreeMap<String, Value>;

/// `Parameter`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Parameter {
    pub(super) name: String,
    #[serde(rename = "in")]
    pub(super) location: ParameterLocation,
    pub(super) description: Option<String>,
    #[serde(default)]
    pub(super) required: bool,
    pub(super) style: Option<ParameterStyle>,
    pub(super) explode: Option<bool>,
    #[serde(default)]
    pub(super) allow_reserved: bool,
    pub(super) schema: Option<Value>,
    #[serde(default)]
    pub(super) content: Map<String, Value>,
}

/// Where a parameter goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum ParameterLocation {
    Path,
    Query,
    Header,
    Cookie,
}

/// How a parameter's value is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum ParameterStyle {
    Matrix,
    Label,
    Simple,
    Form,
    SpaceDelimited,
    PipeDelimited,
    DeepObject,
}

/// `Request Body`.
#[derive(Debug, Deserialize)]
pub(super) struct RequestBody {
    pub(super) description: Option<String>,
    #[serde(default)]
    pub(super) required: bool,
    #[serde(default)]
    pub(super) content: Map<String, Value>,
}

/// `Media Type`.
#[derive(Debug, Default, Deserialize)]
pub(super) struct MediaType {
    pub(super) schema: Option<Value>,
    #[serde(default)]
    pub(super) encoding: BTreeMap<String, Encoding>,
}

/// `Encoding`: of a property of a form.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Encoding {
    pub(super) content_type: Option<String>,
    pub(super) style: Option<ParameterStyle>,
    pub(super) explode: Option<bool>,
}

/// `Security Scheme`.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase")]
pub(super) enum SecurityScheme {
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

impl Document {
    /// Reads a document, JSON or YAML.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(super) fn parse(text: &[u8]) -> Result<Self, String> {
        let text = std::str::from_utf8(text).map_err(|_| "it is not UTF-8".to_owned())?;
        let text = text.trim_start_matches('\u{feff}');
        let root: Value = match text.trim_start().starts_with('{') {
            true => {
                serde_json::from_str(text).map_err(|error| format!("it is no JSON: {error}"))?
            }
            false => yaml(text)?,
        };
        let version = OpenApiVersion::of(&root)?;
        Ok(Self { root, version })
    }

    /// How its schemas are written.
    pub(super) fn version(&self) -> OpenApiVersion {
        self.version
    }

    /// A member of the document.
    pub(super) fn member(&self, name: &str) -> Option<&Value> {
        self.root.get(name)
    }

    /// What is written at a reference into this document.
    ///
    /// # Errors
    /// Why there is nothing.
    pub(super) fn at(&self, reference: &str) -> Result<&Value, String> {
        let pointer = pointer(reference).ok_or_else(|| {
            format!("the reference {reference:?} leads out of the document, which is not followed")
        })?;
        let found = self.root.pointer(&pointer);
        found.ok_or_else(|| format!("the reference {reference:?} leads nowhere"))
    }

    /// An object, or what it refers to instead.
    ///
    /// # Errors
    /// When that is nothing.
    pub(super) fn resolve<'a>(&'a self, mut value: &'a Value) -> Result<&'a Value, String> {
        for _ in 0..HOPS {
            let Some(reference) = value.get("$ref").and_then(Value::as_str) else {
                return Ok(value);
            };
            value = self.at(reference)?;
        }
        Err("its references lead to one another without end".to_owned())
    }

    /// Reads an object, or what it refers to instead.
    ///
    /// # Errors
    /// When it is no such object.
    pub(super) fn read<T: DeserializeOwned>(&self, value: &Value) -> Result<T, String> {
        T::deserialize(self.resolve(value)?).map_err(|error| error.to_string())
    }
}

/// The JSON Pointer of a reference into the same document.
pub(super) fn pointer(reference: &str) -> Option<String> {
    let fragment = reference.strip_prefix('#')?;
    let pointer = percent_decode_str(fragment).decode_utf8().ok()?;
    Some(pointer.into_owned())
}

impl OpenApiVersion {
    fn of(root: &Value) -> Result<Self, String> {
        if let Some(swagger) = root.get("swagger") {
            return Err(format!(
                "it is a Swagger {} document, which is not supported; convert it to OpenAPI 3, with swagger2openapi for instance",
                text(swagger)
            ));
        }
        let Some(version) = root.get("openapi").map(text) else {
            return Err("it is no OpenAPI document: it has no member `openapi`".to_owned());
        };
        match version.split('.').take(2).collect::<Vec<_>>()[..] {
            ["3", "0"] => Ok(Self::V3_0),
            ["3", "1" | "2"] => Ok(Self::V3_1),
            _ => Err(format!(
                "it is of the version {version:?} of OpenAPI; 3.0, 3.1 and 3.2 are supported"
            )),
        }
    }
}

/// What a scalar says: a YAML document may have a version without quotes, which is a number then.
pub(super) fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// The beginning of a text, with its lines.
pub(super) fn beginning(text: &str, longest: usize) -> String {
    match text.char_indices().nth(longest) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

fn yaml(text: &str) -> Result<Value, String> {
    let usual = serde_saphyr::Budget::default();
    let options = serde_saphyr::options! {
        // `no` and `on` are words in OpenAPI documents, of which JSON is the other form.
        strict_booleans: true,
        with_snippet: false,
        // A document has a limit in bytes, and what aliases become has one of its own.
        budget: serde_saphyr::budget! {
            max_nodes: text.len().max(usual.max_nodes),
            max_events: (2 * text.len()).max(usual.max_events),
        },
    };
    serde_saphyr::from_str_with_options(text, options)
        .map_err(|error| format!("it is no YAML: {error}"))
}

#[cfg(test)]
mod tests;
