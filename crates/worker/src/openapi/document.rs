mod objects;
mod parts;
mod swagger;
mod tidy;
mod yaml;

use std::borrow::Cow;
use std::collections::BTreeMap;

use percent_encoding::percent_decode_str;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

pub(super) use self::objects::{
    Encoding, InfoObject, MediaType, OperationObject, Parameter, ParameterLocation, ParameterStyle,
    RequestBody, Requirement, SecurityScheme, ServerObject,
};
pub(super) use self::parts::{PartLocation, Parts};

const HOPS: usize = 16;
/// Members whose references `read` does not follow, because the references name the converted schemas.
const SCHEMAS: [&str; 2] = ["schema", "itemSchema"];

/// Schemas stay JSON, because no Rust type would keep all of their keywords.
pub(super) struct Document {
    root: Value,
    version: OpenApiVersion,
    missing: BTreeMap<String, String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OpenApiVersion {
    /// 3.0, a dialect that differs from JSON Schema. Swagger 2.0 is converted to it.
    V3_0,
    /// 3.1 and later: JSON Schema 2020-12.
    V3_1,
}

pub(super) fn read(text: &[u8]) -> Result<Value, String> {
    let mut root = yaml::read(text)?;
    tidy::without_nulls(&mut root);
    Ok(root)
}

impl Document {
    pub(super) fn parse(text: &[u8]) -> Result<Self, String> {
        Self::of(Parts::new(
            read(text)?,
            PartLocation::File("document".into()),
        ))
    }

    pub(super) fn of(parts: Parts) -> Result<Self, String> {
        let gathered = parts.finish();
        let mut document = Self {
            version: OpenApiVersion::of(&gathered.root)?,
            root: gathered.root,
            missing: gathered.missing,
        };
        if document.root.get("swagger").is_some() {
            document.root = swagger::converted(&document)?;
        }
        Ok(document)
    }

    pub(super) fn version(&self) -> OpenApiVersion {
        self.version
    }

    pub(super) fn member(&self, name: &str) -> Option<&Value> {
        self.resolve(self.root.get(name)?).ok()
    }

    pub(super) fn at(&self, reference: &str) -> Result<&Value, String> {
        if let Some(why) = self.missing.get(reference) {
            return Err(format!(
                "the reference {reference:?} is not followed: {why}"
            ));
        }
        let pointer = pointer(reference).ok_or_else(|| {
            format!("the reference {reference:?} leads out of the document, which is not followed")
        })?;
        if let Some(found) = self.root.pointer(&pointer) {
            return Ok(found);
        }
        let of_part = |(part, _): &(&String, &String)| pointer.starts_with(part.as_str());
        match self.missing.iter().find(of_part) {
            Some((_, why)) => Err(format!("a part of the document cannot be read: {why}")),
            None => Err(format!("the reference {reference:?} leads nowhere")),
        }
    }

    pub(super) fn resolve<'a>(&'a self, mut value: &'a Value) -> Result<&'a Value, String> {
        for _ in 0..HOPS {
            let Some(reference) = value.get("$ref").and_then(Value::as_str) else {
                return Ok(value);
            };
            value = self.at(reference)?;
        }
        Err("its references lead to one another without end".to_owned())
    }

    /// Follows references to the object and to its members.
    pub(super) fn read<T: DeserializeOwned>(&self, value: &Value) -> Result<T, String> {
        let value = self.resolve(value)?;
        let value = match value.as_object() {
            Some(members) => self.with_members(value, members),
            None => Cow::Borrowed(value),
        };
        T::deserialize(&*value).map_err(|error| error.to_string())
    }

    /// Replaces members that are references by their targets. A dangling reference stays, so that
    /// parsing reports it.
    fn with_members<'a>(&self, value: &'a Value, members: &Map<String, Value>) -> Cow<'a, Value> {
        let refers = |(key, value): &(&String, &Value)| {
            value.get("$ref").is_some_and(Value::is_string) && !SCHEMAS.contains(&key.as_str())
        };
        if !members.iter().any(|member| refers(&member)) {
            return Cow::Borrowed(value);
        }
        let mut resolved = members.clone();
        for (key, value) in members.iter().filter(refers) {
            if let Ok(found) = self.resolve(value) {
                resolved.insert(key.clone(), found.clone());
            }
        }
        Cow::Owned(Value::Object(resolved))
    }
}

pub(super) fn pointer(reference: &str) -> Option<String> {
    let fragment = reference.strip_prefix('#')?;
    let pointer = percent_decode_str(fragment).decode_utf8().ok()?;
    Some(pointer.into_owned())
}

impl OpenApiVersion {
    fn of(root: &Value) -> Result<Self, String> {
        if let Some(swagger) = root.get("swagger").map(text) {
            return match swagger.split('.').next() {
                Some("2") => Ok(Self::V3_0),
                _ => Err(format!(
                    "it is of the version {swagger:?} of Swagger; 2.0 is supported, and OpenAPI 3"
                )),
            };
        }
        let Some(version) = root.get("openapi").map(text) else {
            return Err("it is no OpenAPI document: it has no member `openapi`".to_owned());
        };
        let mut numbers = version.split(['.', '-']);
        match (numbers.next(), numbers.next()) {
            (Some("3"), Some("0") | None) => Ok(Self::V3_0),
            (Some("3"), Some(_)) => Ok(Self::V3_1),
            _ => Err(format!(
                "it is of the version {version:?} of OpenAPI; 3.0, 3.1, 3.2 and Swagger 2.0 are supported"
            )),
        }
    }
}

/// Converts a value to text. YAML reads an unquoted version as a number.
pub(super) fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

pub(super) fn beginning(text: &str, longest: usize) -> String {
    match text.char_indices().nth(longest) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests;
