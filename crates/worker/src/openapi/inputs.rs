mod given;
mod restored;

use std::collections::HashSet;

use serde_json::{Map, Value, json};
use shoal_protocol::legal_name;

use super::body::{BodyEncoder, choose, files};
use super::document::{Document, MediaType, Parameter, ParameterLocation, RequestBody};
use super::media::BodyKind;
use super::names::UniqueNames;
use super::schema::{
    Detail, INPUT, Patterns, SchemaDirection, Schemas, TooLarge, WIRE_NAME, aliases,
    without_wire_names,
};
use super::style::ParameterEncoder;

use self::restored::WireNames;

const BODY: &str = "body";
/// If an object's schema has only these keywords, its properties can be arguments of their own.
/// Other keywords concern the whole object.
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

#[derive(Clone, Debug)]
pub(super) struct Inputs {
    /// `CompiledOperation::compile` moves it to the listed tool.
    pub(super) schema: Value,
    pub(super) parameters: Vec<ParameterInput>,
    pub(super) body: Option<BodyInput>,
    known: Option<HashSet<String>>,
    wire_names: Option<WireNames>,
    pub(super) cut: Option<&'static str>,
}

#[derive(Clone, Debug)]
pub(super) struct ParameterInput {
    pub(super) name: String,
    pub(super) location: ParameterLocation,
    pub(super) required: bool,
    pub(super) writer: ParameterEncoder,
}

#[derive(Clone, Debug)]
pub(super) struct BodyInput {
    pub(super) writer: BodyEncoder,
    /// `None` if arguments besides parameters are the body's properties.
    pub(super) argument: Option<String>,
    pub(super) required: bool,
}

#[derive(Debug)]
pub(super) enum Unsupported {
    TooLarge,
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

/// Uses as much detail as fits into `limit` bytes.
pub(super) fn of(
    document: &Document,
    parameters: &[Parameter],
    body: Option<&RequestBody>,
    patterns: &Patterns,
    limit: usize,
) -> Result<Inputs, Unsupported> {
    let mut unsupported = Unsupported::TooLarge;
    for detail in INPUT {
        unsupported = match in_detail(document, parameters, body, (detail, patterns), limit) {
            Err(unsupported @ Unsupported::TooLarge) => unsupported,
            built => return built,
        };
    }
    Err(unsupported)
}

fn in_detail(
    document: &Document,
    parameters: &[Parameter],
    body: Option<&RequestBody>,
    (detail, patterns): (&'static Detail, &Patterns),
    limit: usize,
) -> Result<Inputs, Unsupported> {
    let mut builder = InputsBuilder {
        document,
        schemas: Schemas::new(document, SchemaDirection::Input, detail, patterns, limit),
        names: UniqueNames::default(),
        properties: Map::new(),
        property_names: None,
        required: Vec::new(),
    };
    let names = builder.argument_names(parameters);
    let arguments = parameters.iter().zip(names);
    let arguments = arguments.map(|(parameter, name)| builder.parameter(parameter, name));
    let arguments = arguments.collect::<Result<_, _>>()?;
    let mut others = json!(false);
    let body = body.map(|body| builder.body(body, &mut others));
    let body = body.transpose()?.flatten();
    let is_renamed = builder.schemas.is_renamed();
    let (schema, is_cut) = builder.finish(others)?;
    let is_whole = !is_cut && std::ptr::eq(detail, &INPUT[0]);
    Ok(Inputs {
        known: given::known_names(&schema),
        wire_names: is_renamed.then(|| WireNames(schema.clone())),
        schema: match is_renamed {
            true => without_wire_names(&schema),
            false => schema,
        },
        parameters: arguments,
        body,
        cut: (!is_whole).then_some(detail.about),
    })
}

struct InputsBuilder<'a> {
    document: &'a Document,
    schemas: Schemas<'a>,
    names: UniqueNames,
    properties: Map<String, Value>,
    property_names: Option<Value>,
    required: Vec<String>,
}

impl InputsBuilder<'_> {
    /// Parameters with legal names choose first, so that these names stay unchanged.
    fn argument_names(&mut self, parameters: &[Parameter]) -> Vec<String> {
        let mut order: Vec<(usize, &Parameter)> = parameters.iter().enumerate().collect();
        order.sort_by_key(|(_, parameter)| legal_name(&parameter.name) != parameter.name);
        let mut names = vec![String::new(); parameters.len()];
        for (at, parameter) in order {
            let place = match parameter.location {
                ParameterLocation::Path => "path",
                ParameterLocation::Query
                | ParameterLocation::QueryString
                | ParameterLocation::Bound => "query",
                ParameterLocation::Header => "header",
                ParameterLocation::Cookie => "cookie",
            };
            names[at] = self.names.argument(&parameter.name, place);
        }
        names
    }

    fn parameter(
        &mut self,
        parameter: &Parameter,
        name: String,
    ) -> Result<ParameterInput, Unsupported> {
        let writer = ParameterEncoder::of(parameter)?;
        let content = parameter.content.values().next();
        let content = content.and_then(|content| content.get("schema"));
        let schema = match parameter.schema.as_ref().or(content) {
            Some(schema) => self.schemas.convert(schema)?,
            None => json!({}),
        };
        let schema = self
            .schemas
            .described(schema, parameter.description.as_deref())?;
        let schema = self.schemas.named(schema, &parameter.name)?;
        self.schemas.list(&name)?;
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
        let note = Some(note.as_str()).filter(|note| !note.is_empty());
        let schema = self.schemas.described(schema, note)?;
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
        let required_names = members.get("required").and_then(Value::as_array);
        let requires = required_names.is_some_and(|names| !names.is_empty());
        let keys: Vec<&str> = properties.keys().map(String::as_str).collect();
        // A body may require properties that it does not describe.
        let required_names = required_names.into_iter().flatten();
        let free = aliases(&keys).iter().all(|name| self.names.is_free(name))
            && required_names
                .filter_map(Value::as_str)
                .all(|name| self.names.is_free(name));
        // An open body may have a property with a parameter's name.
        let open = members
            .get("additionalProperties")
            .is_some_and(|other| *other != Value::Bool(false));
        let has_parameters = !self.properties.is_empty();
        is_object
            && !properties.is_empty()
            && members.keys().all(plain)
            // If a body may be left out, its required properties cannot be required arguments.
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
                let own = property.get(WIRE_NAME).and_then(Value::as_str);
                let is_file = files.iter().any(|file| *file == own.unwrap_or(&name));
                let property = match is_file {
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

    fn finish(self, others: Value) -> Result<(Value, bool), Unsupported> {
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
        let (definitions, is_cut) = self.schemas.definitions()?;
        if !definitions.is_empty() {
            schema.insert("$defs".into(), Value::Object(definitions));
        }
        Ok((Value::Object(schema), is_cut))
    }
}

fn as_base64(property: Value) -> Value {
    let description = property.get("description").and_then(Value::as_str);
    let description = format!("{} (Base64)", description.unwrap_or("A file"));
    let file = json!({ "type": "string", "contentEncoding": "base64" });
    let mut encoded = match property.get("items") {
        Some(_) => json!({ "type": "array", "items": file }),
        None => file,
    };
    encoded["description"] = description.into();
    if let Some(name) = property.get(WIRE_NAME) {
        encoded[WIRE_NAME] = name.clone();
    }
    encoded
}

#[cfg(test)]
mod tests;
