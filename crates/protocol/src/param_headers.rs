//! Mirrors a tool's arguments in `Mcp-Param-*` headers, as its schema's `x-mcp-header` asks (2026-07-28, SEP-2243).

use serde_json::Value;

use crate::headers::{EXCERPT, HeaderMismatch, MCP_PARAM_PREFIX, decode_value, encode_value};
use crate::shown;

const ANNOTATION: &str = "x-mcp-header";
/// 2^53 − 1, the largest exact integer in JavaScript.
const MAX_SAFE_INTEGER: f64 = 9_007_199_254_740_991.0;

/// A property whose value a header mirrors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParamHeader {
    /// The header's name after `Mcp-Param-`, in lower case.
    pub name: String,
    /// Property names from the root.
    pub path: Vec<String>,
}

/// One tool's mirrored parameters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ParamHeaders(Vec<ParamHeader>);

/// An invalid `x-mcp-header`. Clients ignore a tool that has one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid x-mcp-header: {0}")]
pub struct InvalidParamHeader(pub String);

impl ParamHeaders {
    /// Collects an `inputSchema`'s `x-mcp-header` annotations.
    ///
    /// # Errors
    /// A name is empty, invalid or repeated, the type is not string, integer or boolean, or the property is
    /// not reachable through `properties`.
    pub fn of_schema(schema: &Value) -> Result<Self, InvalidParamHeader> {
        let mut found = Vec::new();
        collect(schema, &mut Vec::new(), true, &mut found)?;
        for (at, header) in found.iter().enumerate() {
            if found[..at]
                .iter()
                .any(|earlier| earlier.name == header.name)
            {
                return Err(InvalidParamHeader(format!(
                    "{:?} is used twice",
                    header.name
                )));
            }
        }
        Ok(Self(found))
    }

    /// Whether there are no parameters.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the parameters.
    pub fn iter(&self) -> impl Iterator<Item = &ParamHeader> {
        self.0.iter()
    }

    /// Returns a call's headers, with encoded values.
    pub fn of_call<'a>(
        &'a self,
        arguments: &'a Value,
    ) -> impl Iterator<Item = (String, String)> + 'a {
        self.0.iter().filter_map(move |param| {
            let mut path = param.path.iter();
            let value = path.try_fold(arguments, |value, key| value.get(key))?;
            let text = match value {
                Value::String(text) => encode_value(text),
                Value::Null => return None,
                other => other.to_string(),
            };
            Some((format!("{MCP_PARAM_PREFIX}{}", param.name), text))
        })
    }

    /// Checks a call's headers against its arguments.
    ///
    /// # Errors
    /// A header is missing, malformed, unexpected, or differs from its argument.
    pub fn check<'h>(
        &self,
        arguments: &Value,
        header: impl Fn(&str) -> Option<&'h [u8]>,
    ) -> Result<(), HeaderMismatch> {
        for param in &self.0 {
            let name = format!("Mcp-Param-{}", param.name);
            let sent = header(&param.name)
                .map(|value| decode_value(&name, value))
                .transpose()?;
            let value = param
                .path
                .iter()
                .try_fold(arguments, |value, key| value.get(key));
            match (value.filter(|value| !value.is_null()), sent) {
                (None, None) => {}
                (None, Some(_)) => {
                    return Err(HeaderMismatch(format!(
                        "{name} has no value in the arguments"
                    )));
                }
                (Some(_), None) => {
                    return Err(HeaderMismatch(format!("the header {name} is missing")));
                }
                (Some(value), Some(sent)) if same(value, &sent.0) => {}
                (Some(value), Some(sent)) => {
                    let (sent, value) =
                        (shown(&sent.0, EXCERPT), shown(&value.to_string(), EXCERPT));
                    return Err(HeaderMismatch(format!(
                        "{name} says {sent:?}, the argument is {value}"
                    )));
                }
            }
        }
        Ok(())
    }
}

fn same(value: &Value, sent: &str) -> bool {
    match value {
        Value::String(text) => text == sent,
        Value::Bool(flag) => sent == if *flag { "true" } else { "false" },
        Value::Number(number) => {
            number.to_string() == sent
                || matches!(
                    (number.as_f64(), sent.trim().parse::<f64>()),
                    (Some(a), Ok(b)) if a == b && a.abs() <= MAX_SAFE_INTEGER
                )
        }
        _ => false,
    }
}

fn collect(
    schema: &Value,
    path: &mut Vec<String>,
    reachable: bool,
    found: &mut Vec<ParamHeader>,
) -> Result<(), InvalidParamHeader> {
    let Value::Object(members) = schema else {
        if let Value::Array(items) = schema {
            for item in items {
                collect(item, path, false, found)?;
            }
        }
        return Ok(());
    };
    if let Some(annotation) = members.get(ANNOTATION) {
        found.push(annotated(annotation, schema, path, reachable)?);
    }
    for (keyword, value) in members {
        match (keyword.as_str(), value) {
            ("properties", Value::Object(properties)) => {
                for (name, property) in properties {
                    path.push(name.clone());
                    collect(property, path, reachable, found)?;
                    path.pop();
                }
            }
            // These values are data, not schemas.
            (ANNOTATION | "default" | "const" | "enum" | "examples", _) => {}
            (_, nested) => collect(nested, path, false, found)?,
        }
    }
    Ok(())
}

fn annotated(
    annotation: &Value,
    schema: &Value,
    path: &[String],
    reachable: bool,
) -> Result<ParamHeader, InvalidParamHeader> {
    let at = path.join(".");
    let name = annotation
        .as_str()
        .filter(|name| !name.is_empty() && name.bytes().all(is_token))
        .ok_or_else(|| InvalidParamHeader(format!("{annotation} at {at:?} is no header token")))?;
    if !reachable || path.is_empty() {
        return Err(InvalidParamHeader(format!(
            "{name:?} is not reachable from the root by properties alone"
        )));
    }
    if !matches!(
        schema.get("type").and_then(Value::as_str),
        Some("string" | "integer" | "boolean")
    ) {
        return Err(InvalidParamHeader(format!(
            "{name:?} at {at:?} must be of type string, integer or boolean"
        )));
    }
    Ok(ParamHeader {
        name: name.to_ascii_lowercase(),
        path: path.to_vec(),
    })
}

fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::ParamHeaders;

    fn region() -> ParamHeaders {
        ParamHeaders::of_schema(&json!({"type":"object","properties":{
            "region":{"type":"string","x-mcp-header":"Region"},
            "deep":{"type":"object","properties":{"n":{"type":"integer","x-mcp-header":"N"}}}}}))
        .unwrap()
    }

    #[test]
    fn header_and_argument_must_agree() {
        let headers = region();
        let arguments = json!({"region":"eu","deep":{"n":42}});
        let send = |region: &'static str, n: &'static str| {
            move |name: &str| match name {
                "region" => Some(region.as_bytes()),
                "n" => Some(n.as_bytes()),
                _ => None,
            }
        };
        assert!(headers.check(&arguments, send("eu", "42")).is_ok());
        assert!(headers.check(&arguments, send("eu", "42.0")).is_ok());
        assert!(headers.check(&arguments, send("us", "42")).is_err());
        assert!(headers.check(&arguments, |_: &str| None).is_err());
        assert!(
            headers
                .check(&json!({"region":null}), |_: &str| None)
                .is_ok()
        );
        assert!(headers.check(&json!({}), send("eu", "42")).is_err());
    }

    #[test]
    fn broken_annotations_are_named() {
        for schema in [
            json!({"properties":{"a":{"type":"string","x-mcp-header":""}}}),
            json!({"properties":{"a":{"type":"string","x-mcp-header":"a b"}}}),
            json!({"properties":{"a":{"type":"number","x-mcp-header":"A"}}}),
            json!({"properties":{"a":{"type":"string","x-mcp-header":"A"},"b":{"type":"string","x-mcp-header":"a"}}}),
            json!({"properties":{"a":{"type":"array","items":{"type":"string","x-mcp-header":"A"}}}}),
            json!({"anyOf":[{"properties":{"a":{"type":"string","x-mcp-header":"A"}}}]}),
        ] {
            assert!(ParamHeaders::of_schema(&schema).is_err(), "{schema}");
        }
    }
}
