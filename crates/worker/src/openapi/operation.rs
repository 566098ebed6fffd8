use http::{HeaderValue, Method};
use serde_json::{Map, Value, json};
use shoal_ports::shown;
use shoal_protocol::RawJson;

use super::config::OpenApiConfig;
use super::document::{Document, OperationObject, Parameter, ParameterLocation, RequestBody};
use super::inputs::{self, Inputs, Unsupported};
use super::path::{BoundPath, PathTemplate};
use super::responses::{ResponseSchema, SuccessResponses};
use super::schema::Patterns;
use super::security::RequestCredential;
use super::text;
use crate::http_client::is_settable;

const TITLE: usize = 200;
const NO_PARAMETERS: [&str; 2] = ["authorization", "cookie"];

#[derive(Debug)]
pub(super) struct CompiledOperation {
    pub(super) tool: RawJson,
    pub(super) method: Method,
    pub(super) path: BoundPath,
    pub(super) inputs: Inputs,
    pub(super) accept: HeaderValue,
    pub(super) credentials: Vec<RequestCredential>,
    pub(super) output: Option<RawJson>,
    pub(super) cut: Vec<String>,
}

pub(super) struct OperationSource<'a> {
    pub(super) method: &'a str,
    pub(super) path: &'a str,
    pub(super) object: OperationObject,
    /// Parameters of the path.
    pub(super) common: &'a [Value],
    pub(super) keys: &'a [(ParameterLocation, &'a str)],
    pub(super) credentials: Vec<RequestCredential>,
    pub(super) patterns: &'a Patterns,
    pub(super) output_bytes: usize,
}

impl CompiledOperation {
    pub(super) fn compile(
        document: &Document,
        config: &OpenApiConfig,
        name: &str,
        written: OperationSource<'_>,
    ) -> Result<Self, Unsupported> {
        let OperationSource {
            method,
            path,
            object,
            common,
            keys,
            credentials,
            patterns,
            output_bytes,
        } = written;
        let declared = declared(document, common, &object)?;
        let template = PathTemplate::parse(path, &declared)?;
        let parameters = parameters(declared, config, &template, keys);
        let body = object.request_body.as_ref();
        let body: Option<RequestBody> = body.map(|body| document.read(body)).transpose()?;
        let limit = config.schema_bytes;
        let mut inputs = inputs::of(document, &parameters, body.as_ref(), patterns, limit)?;
        for parameter in &mut inputs.parameters {
            parameter.writer.write_lists_as(config.deep_lists);
        }
        if let Some(body) = &mut inputs.body {
            body.writer.write_lists_as(config.deep_lists);
            if body.writer.has_parts() {
                say_base64(&mut inputs.schema);
            }
        }
        let answers = SuccessResponses::of(document, &object);
        let output = match config.output_schemas {
            true => answers.schema(document, config.schema_bytes.min(output_bytes)),
            false => ResponseSchema::default(),
        };
        let cuts = [("inputSchema", inputs.cut), ("outputSchema", output.cut)];
        let cut = cuts
            .into_iter()
            .filter_map(|(of, cut)| Some(format!("its {of} is listed {}", cut?)));
        let cut = cut.collect();
        let output = output.schema.as_ref().map(RawJson::of);
        let mut tool = Map::new();
        tool.insert("name".into(), name.into());
        if let Some(summary) = &object.summary {
            let summary = text::short(summary, TITLE);
            tool.insert("title".into(), shown(&summary, TITLE).into());
        }
        let told = text::of_operation(&object).unwrap_or_else(|| format!("{method} {path}"));
        tool.insert("description".into(), told.into());
        // Only the list needs the schema, which may be large.
        tool.insert("inputSchema".into(), std::mem::take(&mut inputs.schema));
        if let Some(Ok(output)) = output.as_ref().map(RawJson::read::<Value>) {
            tool.insert("outputSchema".into(), output);
        }
        if let Some(hints) = hints(method) {
            tool.insert("annotations".into(), hints);
        }
        let method = Method::from_bytes(method.as_bytes())
            .map_err(|_| format!("{method:?} is no method"))?;
        Ok(Self {
            tool: RawJson::of(&tool),
            method,
            path: template.bind(&inputs),
            inputs,
            accept: answers.accept(),
            credentials,
            output,
            cut,
        })
    }
}

/// Annotations by method (RFC 9110, 9.2).
fn hints(method: &str) -> Option<Value> {
    match method {
        "GET" | "HEAD" | "OPTIONS" | "QUERY" => Some(json!({ "readOnlyHint": true })),
        "PUT" => Some(json!({ "idempotentHint": true })),
        "DELETE" => Some(json!({ "idempotentHint": true, "destructiveHint": true })),
        _ => None,
    }
}

/// The operation's parameter replaces the path's (`common`) of the same name and location.
fn declared(
    document: &Document,
    common: &[Value],
    object: &OperationObject,
) -> Result<Vec<Parameter>, Unsupported> {
    let mut parameters: Vec<Parameter> = Vec::new();
    for written in common.iter().chain(&object.parameters) {
        let parameter: Parameter = document
            .read(written)
            .map_err(|why| format!("a parameter cannot be read: {why}"))?;
        let same = |other: &Parameter| {
            other.name == parameter.name && other.location == parameter.location
        };
        match parameters.iter_mut().find(|other| same(other)) {
            Some(other) => *other = parameter,
            None => parameters.push(parameter),
        }
    }
    Ok(parameters)
}

/// Leaves out those that Shoal sets or the path fixes, and adds those that only the path names.
fn parameters(
    mut parameters: Vec<Parameter>,
    config: &OpenApiConfig,
    template: &PathTemplate,
    keys: &[(ParameterLocation, &str)],
) -> Vec<Parameter> {
    let is_key = |parameter: &Parameter| {
        keys.iter().any(|(location, name)| {
            *location == parameter.location && name.eq_ignore_ascii_case(&parameter.name)
        })
    };
    let is_configured = |name: &str| {
        let mut configured = config.headers.keys().chain(&config.forward);
        configured.any(|configured| configured.eq_ignore_ascii_case(name))
    };
    let is_bound = |name: &str| template.query_names().any(|bound| bound == name);
    for parameter in &mut parameters {
        let in_path = template.names().any(|name| name == parameter.name);
        if is_bound(&parameter.name)
            && (parameter.location == ParameterLocation::Query
                || parameter.location == ParameterLocation::Path && !in_path)
        {
            parameter.required |= parameter.location == ParameterLocation::Path;
            parameter.location = ParameterLocation::Bound;
        }
    }
    parameters.retain(|parameter| match parameter.location {
        _ if is_key(parameter) => false,
        ParameterLocation::Path => template.names().any(|name| name == parameter.name),
        ParameterLocation::Header => {
            let name = parameter.name.to_ascii_lowercase();
            is_settable(&name) && !NO_PARAMETERS.contains(&&*name) && !is_configured(&name)
        }
        ParameterLocation::Query => !template.fixes(&parameter.name),
        ParameterLocation::QueryString | ParameterLocation::Cookie | ParameterLocation::Bound => {
            true
        }
    });
    let mut add = |name: &str, location: ParameterLocation| {
        let is_there = |it: &Parameter| it.location == location && it.name == name;
        if !parameters.iter().any(is_there) {
            parameters.push(Parameter::undescribed(name, location));
        }
    };
    for name in template.names() {
        add(name, ParameterLocation::Path);
    }
    for name in template.query_names() {
        add(name, ParameterLocation::Bound);
    }
    for name in template.parameters() {
        let is_secret = keys.contains(&(ParameterLocation::Query, name));
        if !is_secret {
            add(name, ParameterLocation::Query);
        }
    }
    parameters
}

fn say_base64(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            let is_text = members.get("type").is_some_and(|kind| match kind {
                Value::Array(kinds) => kinds.iter().any(|kind| kind == "string"),
                kind => kind == "string",
            });
            if is_text
                && members
                    .get("format")
                    .is_some_and(|format| format == "binary")
            {
                members.remove("format");
                members.insert("contentEncoding".into(), "base64".into());
                let about = members.get("description").and_then(Value::as_str);
                let about = format!("{} (Base64)", about.unwrap_or("A file"));
                members.insert("description".into(), about.into());
            }
            members.values_mut().for_each(say_base64);
        }
        Value::Array(items) => items.iter_mut().for_each(say_base64),
        _ => {}
    }
}
