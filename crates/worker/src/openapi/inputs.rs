//! What a tool takes: the parameters and the body of its operation as one schema.

use serde_json::{Map, Value, json};

use super::body::{BodyEncoder, BodyKind, choose, files};
use super::document::{Document, MediaType, Parameter, ParameterLocation, RequestBody};
use super::names::UniqueNames;
use super::schema::{SchemaDirection, Schemas, TooLarge};
use super::style::ParameterEncoder;

/// The argument that is a whole body.
const BODY: &str = "body";
/// Keywords of an object whose properties can stand among the parameters; any other one speaks of the object as a whole.
const FLAT: [&str; 11] = [
    "additionalProperties",
    "default",
    "deprecated",
    "description",
    "example",
    "examples",
    "externalDocs",
    "properties",
    "required",
    "title",
    "type",
];

/// The arguments of a tool, and where they go.
#[derive(Clone, Debug)]
pub(super) struct Inputs {
    /// `inputSchema`
    pub(super) schema: Value,
    pub(super) parameters: Vec<ParameterInput>,
    pub(super) body: Option<BodyInput>,
}

/// An argument that is a parameter.
#[derive(Clone, Debug)]
pub(super) struct ParameterInput {
    /// What the tool calls it.
    pub(super) name: String,
    pub(super) location: ParameterLocation,
    pub(super) required: bool,
    pub(super) writer: ParameterEncoder,
}

/// The body, and what it is made of.
#[derive(Clone, Debug)]
pub(super) struct BodyInput {
    pub(super) writer: BodyEncoder,
    /// The argument that it is; else all that are no parameters are its properties.
    pub(super) argument: Option<String>,
    pub(super) required: bool,
}

/// Why an operation cannot be a tool.
#[derive(Debug)]
pub(super) enum Unsupported {
    /// Its schema is too large.
    TooLarge,
    /// Something in it makes no sense.
    Wrong(String),
}

impl From<TooLarge> for Unsupported {
    fn from(_: TooLarge) -> Self {
        Self::TooLarge
    }
}

impl From<String> for Unsupported {
    fn from(wrong: String) -> Self {
        Self::Wrong(wrong)
    }
}

/// Puts parameters and a body together. The schema may have `limit` bytes.
pub(super) fn of(
    document: &Document,
    parameters: &[Parameter],
    body: Option<&RequestBody>,
    limit: usize,
) -> Result<Inputs, Unsupported> {
    let mut builder = InputsBuilder {
        document,
        schemas: Schemas::new(document, SchemaDirection::Input, limit),
        names: UniqueNames::default(),
        properties: Map::new(),
        property_names: None,
        required: Vec::new(),
    };
    let arguments = parameters
        .iter()
        .map(|parameter| builder.parameter(parameter));
    let arguments = arguments.collect::<Result<_, _>>()?;
    let mut others = json!(false);
    let body = body.map(|body| builder.body(body, &mut others));
    let body = body.transpose()?.flatten();
    Ok(Inputs {
        schema: builder.finish(others)?,
        parameters: arguments,
        body,
    })
}

struct InputsBuilder<'a> {
    document: &'a Document,
    schemas: Schemas<'a>,
    names: UniqueNames,
    properties: Map<String, Value>,
    /// What names they may not have.
    property_names: Option<Value>,
    required: Vec<String>,
}

impl InputsBuilder<'_> {
    fn parameter(&mut self, parameter: &Parameter) -> Result<ParameterInput, Unsupported> {
        let writer = ParameterEncoder::of(parameter)?;
        let place = match parameter.location {
            ParameterLocation::Path => "path",
            ParameterLocation::Query
            | ParameterLocation::QueryString
            | ParameterLocation::Bound => "query",
            ParameterLocation::Header => "header",
            ParameterLocation::Cookie => "cookie",
        };
        let name = self.names.argument(&parameter.name, place);
        let content = parameter.content.values().next();
        let content = content.and_then(|content| content.get("schema"));
        let schema = match parameter.schema.as_ref().or(content) {
            Some(schema) => self.schemas.convert(schema)?,
            None => json!({}),
        };
        let schema = described(schema, parameter.description.as_deref());
        self.properties.insert(name.clone(), schema);
        let required = parameter.required || parameter.location == ParameterLocation::Path;
        if required {
            self.required.push(name.clone());
        }
        Ok(ParameterInput {
            name,
            location: parameter.location,
            required,
            writer,
        })
    }

    fn body(
        &mut self,
        body: &RequestBody,
        others: &mut Value,
    ) -> Result<Option<BodyInput>, Unsupported> {
        let Some((media, kind)) = choose(&body.content) else {
            return Ok(None);
        };
        let content: MediaType = self.document.read(&body.content[media])?;
        let schema = content.schema.clone().unwrap_or_else(|| json!(true));
        let resolved = self.document.resolve(&schema)?.clone();
        let files = match kind {
            BodyKind::Multipart => files(self.document, &resolved),
            _ => Vec::new(),
        };
        let writer = BodyEncoder::new(media, kind, &content, files.clone());
        let structured = matches!(kind, BodyKind::Json | BodyKind::Form | BodyKind::Multipart);
        if structured && self.is_flat(&resolved, body.required) {
            self.flatten(&resolved, &files, others)?;
            return Ok(Some(BodyInput {
                writer,
                argument: None,
                required: body.required,
            }));
        }
        let name = self.names.argument(BODY, "request");
        let schema = match kind {
            BodyKind::Json | BodyKind::Form | BodyKind::Multipart => {
                self.schemas.convert(&schema)?
            }
            BodyKind::Text => json!({ "type": "string" }),
            BodyKind::Bytes => json!({
                "type": "string", "contentEncoding": "base64", "contentMediaType": media,
            }),
        };
        let note = body.description.clone().unwrap_or_default();
        let note = match kind {
            BodyKind::Bytes => format!("{note} ({media}, as Base64)").trim().to_owned(),
            _ => note,
        };
        let schema = described(
            schema,
            Some(&note)
                .filter(|note| !note.is_empty())
                .map(String::as_str),
        );
        self.properties.insert(name.clone(), schema);
        if body.required {
            self.required.push(name.clone());
        }
        Ok(Some(BodyInput {
            writer,
            argument: Some(name),
            required: body.required,
        }))
    }

    /// Whether the properties of a body can stand among the parameters.
    fn is_flat(&self, schema: &Value, required: bool) -> bool {
        let Some(members) = schema.as_object() else {
            return false;
        };
        let Some(Value::Object(properties)) = members.get("properties") else {
            return false;
        };
        let is_object = members.get("type").is_none_or(|kind| kind == "object");
        let plain =
            |keyword: &String| FLAT.contains(&keyword.as_str()) || keyword.starts_with("x-");
        // If the body may be missing, what it requires is not required of the tool.
        let requires = members.get("required").and_then(Value::as_array);
        let requires = requires.is_some_and(|names| !names.is_empty());
        let free = properties.keys().all(|name| self.names.is_free(name));
        // A property may be of any name, that of a parameter too.
        let open = members
            .get("additionalProperties")
            .is_some_and(|other| *other != Value::Bool(false));
        let has_parameters = !self.properties.is_empty();
        is_object
            && !properties.is_empty()
            && members.keys().all(plain)
            && (required || !requires)
            && free
            && !(open && has_parameters)
    }

    fn flatten(
        &mut self,
        schema: &Value,
        files: &[String],
        others: &mut Value,
    ) -> Result<(), Unsupported> {
        let Value::Object(mut converted) = self.schemas.convert(schema)? else {
            return Ok(());
        };
        if let Some(Value::Object(properties)) = converted.remove("properties") {
            for (name, property) in properties {
                let property = match files.contains(&name) {
                    true => as_base64(property),
                    false => property,
                };
                self.properties.insert(name, property);
            }
        }
        if let Some(Value::Array(required)) = converted.remove("required") {
            let names = required.iter().filter_map(Value::as_str).map(str::to_owned);
            self.required.extend(names);
        }
        self.property_names = converted.remove("propertyNames");
        *others = converted
            .remove("additionalProperties")
            .unwrap_or(json!(true));
        Ok(())
    }

    fn finish(self, others: Value) -> Result<Value, Unsupported> {
        let mut schema = Map::new();
        schema.insert("type".into(), json!("object"));
        schema.insert("properties".into(), Value::Object(self.properties));
        if !self.required.is_empty() {
            schema.insert("required".into(), json!(self.required));
        }
        if others != json!(true) {
            schema.insert("additionalProperties".into(), others);
        }
        if let Some(names) = self.property_names {
            schema.insert("propertyNames".into(), names);
        }
        let definitions = self.schemas.definitions()?;
        if !definitions.is_empty() {
            schema.insert("$defs".into(), Value::Object(definitions));
        }
        Ok(Value::Object(schema))
    }
}

/// A file, or several, as a client gives it.
fn as_base64(property: Value) -> Value {
    let description = property.get("description").and_then(Value::as_str);
    let description = format!("{} (Base64)", description.unwrap_or("A file"));
    let file = json!({ "type": "string", "contentEncoding": "base64" });
    match property.get("items") {
        Some(_) => json!({ "type": "array", "items": file, "description": description }),
        None => described(file, Some(&description)),
    }
}

/// A schema with a description: what is said of the place goes before what is said of the type.
fn described(schema: Value, description: Option<&str>) -> Value {
    match (schema, description) {
        (Value::Object(mut schema), Some(description)) => {
            schema.insert("description".into(), description.into());
            Value::Object(schema)
        }
        (Value::Bool(true), Some(description)) => json!({ "description": description }),
        (schema, _) => schema,
    }
}

#[cfg(test)]
mod tests;
