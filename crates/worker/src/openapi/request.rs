use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use percent_encoding::percent_decode_str;
use reqwest::Url;
use serde_json::{Map, Value};
use shoal_protocol::TraceContext;

use super::document::ParameterLocation;
use super::inputs::{BodyInput, Inputs, ParameterInput};
use super::operation::CompiledOperation;
use super::path::PathPiece;
use super::security::CredentialLocation;
use super::style::percent_encoded;

/// Characters that a cookie cannot contain (RFC 6265, 4.1.1).
const ENDS: [char; 6] = [' ', '"', ',', ';', '\\', '\t'];

#[derive(Debug)]
pub(super) struct OperationRequest {
    pub(super) method: Method,
    pub(super) url: Url,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

pub(super) fn build(
    operation: &CompiledOperation,
    base: &Url,
    arguments: &Map<String, Value>,
    credentials: &[(CredentialLocation, String)],
) -> Result<OperationRequest, String> {
    let inputs = &operation.inputs;
    for parameter in &inputs.parameters {
        if parameter.required && given(arguments, &parameter.name).is_none() {
            return Err(format!("the argument {:?} is missing", parameter.name));
        }
    }
    let mut url = base.clone();
    let path = path(operation, base, arguments)?;
    url.set_path(&path);
    // Setting the path normalises it, so `..` in an argument would lead to another path.
    if url.path() != path {
        return Err("an argument of the path would lead to another path".to_owned());
    }
    let query = query(operation, arguments, credentials)?;
    if !query.is_empty() {
        url.set_query(Some(&query.join("&")));
    }
    let mut headers = HeaderMap::new();
    for parameter in inputs
        .parameters
        .iter()
        .filter(|it| it.location == ParameterLocation::Header)
    {
        if let Some(value) = given(arguments, &parameter.name) {
            let name = &parameter.writer.name;
            insert(&mut headers, name, &parameter.writer.in_header(value))
                .map_err(|why| format!("the argument {:?}: {why}", parameter.name))?;
        }
    }
    let cookies = pairs(
        inputs,
        arguments,
        ParameterLocation::Cookie,
        credentials,
        &[],
    )?;
    if !cookies.is_empty() {
        insert(&mut headers, header::COOKIE.as_str(), &cookies.join("; "))?;
    }
    let body = match &inputs.body {
        Some(body) => self::body(body, inputs, arguments)?,
        None => None,
    };
    let body = match body {
        Some((media, body)) => {
            let media = HeaderValue::try_from(media)
                .map_err(|_| "the body's media type is none".to_owned())?;
            headers.insert(header::CONTENT_TYPE, media);
            body
        }
        None => Bytes::new(),
    };
    headers.insert(header::ACCEPT, operation.accept.clone());
    Ok(OperationRequest {
        method: operation.method.clone(),
        url,
        headers,
        body,
    })
}

pub(super) fn authorize(
    headers: &mut HeaderMap,
    credentials: &[(CredentialLocation, String)],
) -> Result<(), String> {
    for (place, value) in credentials {
        match place {
            CredentialLocation::Header(name) => insert(headers, name, value)?,
            CredentialLocation::Bearer | CredentialLocation::Basic => {
                insert(headers, "authorization", value)?
            }
            CredentialLocation::Query(_) | CredentialLocation::Cookie(_) => {}
        }
    }
    Ok(())
}

pub(super) fn trace(headers: &mut HeaderMap, parent: Option<&TraceContext>) {
    let Some(parent) = parent else {
        return;
    };
    let state = parent.tracestate();
    for (name, value) in [
        ("traceparent", Some(parent.to_traceparent())),
        ("tracestate", state.map(str::to_owned)),
    ] {
        if let Some(value) = value.and_then(|value| HeaderValue::try_from(value).ok()) {
            headers.insert(name, value);
        }
    }
}

/// `null` counts as missing.
fn given<'a>(arguments: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    arguments.get(name).filter(|value| !value.is_null())
}

fn path(
    operation: &CompiledOperation,
    base: &Url,
    arguments: &Map<String, Value>,
) -> Result<String, String> {
    let mut path = base.path().trim_end_matches('/').to_owned();
    for piece in &operation.path.pieces {
        match piece {
            PathPiece::Literal(text) => path.push_str(text),
            PathPiece::Argument(at, segments) => {
                let parameter = &operation.inputs.parameters[*at];
                let value = given(arguments, &parameter.name);
                let value = value.map(|value| parameter.writer.in_path(value, segments));
                let value = value
                    .transpose()
                    .map_err(|why| format!("the argument {:?} {why}", parameter.name))?;
                // An empty segment would lead to another operation's path.
                let value = value.filter(|value| !value.is_empty()).ok_or_else(|| {
                    format!("the argument {:?} must not be empty", parameter.name)
                })?;
                path.push_str(&value);
            }
        }
    }
    Ok(path)
}

fn query(
    operation: &CompiledOperation,
    arguments: &Map<String, Value>,
    credentials: &[(CredentialLocation, String)],
) -> Result<Vec<String>, String> {
    let inputs = &operation.inputs;
    let mut written = Vec::new();
    for pair in &operation.path.query {
        let Some(value) = &pair.value else {
            written.push(pair.name.clone());
            continue;
        };
        if let Some(value) = own_value(value, inputs, arguments) {
            written.push(format!("{}={value}", pair.name));
        }
    }
    let is_whole = |it: &&ParameterInput| it.location == ParameterLocation::QueryString;
    for parameter in inputs.parameters.iter().filter(is_whole) {
        let value = given(arguments, &parameter.name).map(|value| parameter.writer.as_query(value));
        let value = value.unwrap_or_default();
        for pair in value.split('&').filter(|pair| !pair.is_empty()) {
            let name = pair.split('=').next().unwrap_or_default().replace('+', " ");
            let name = percent_decode_str(&name).decode_utf8_lossy();
            let is_secret = |(place, _): &(CredentialLocation, String)| matches!(place, CredentialLocation::Query(secret) if *secret == name);
            if credentials.iter().any(is_secret) {
                let argument = &parameter.name;
                return Err(format!(
                    "the argument {argument:?} must not have the member {name:?}"
                ));
            }
            written.push(pair.to_owned());
        }
    }
    let fixed = operation.path.query.iter().map(|pair| pair.name.as_str());
    let fixed: Vec<&str> = fixed.collect();
    let pairs = pairs(
        inputs,
        arguments,
        ParameterLocation::Query,
        credentials,
        &fixed,
    )?;
    written.extend(pairs);
    Ok(written)
}

fn own_value(
    pieces: &[PathPiece],
    inputs: &Inputs,
    arguments: &Map<String, Value>,
) -> Option<String> {
    let pieces = pieces.iter().map(|piece| match piece {
        PathPiece::Literal(text) => Some(text.clone()),
        PathPiece::Argument(at, _) => {
            let parameter = &inputs.parameters[*at];
            let value = given(arguments, &parameter.name)?;
            Some(parameter.writer.in_own_query(value))
        }
    });
    pieces.collect()
}

fn pairs(
    inputs: &Inputs,
    arguments: &Map<String, Value>,
    location: ParameterLocation,
    credentials: &[(CredentialLocation, String)],
    fixed: &[&str],
) -> Result<Vec<String>, String> {
    let of_location = || {
        inputs
            .parameters
            .iter()
            .filter(move |it| it.location == location)
    };
    let secrets = credentials.iter().filter_map(|(place, value)| match place {
        CredentialLocation::Query(name) if location == ParameterLocation::Query => {
            Some((percent_encoded(name), value))
        }
        CredentialLocation::Cookie(name) if location == ParameterLocation::Cookie => {
            Some((percent_encoded(name), value))
        }
        _ => None,
    });
    let secrets: Vec<(String, &String)> = secrets.collect();
    let mut written = Vec::new();
    for parameter in of_location() {
        let Some(value) = given(arguments, &parameter.name) else {
            continue;
        };
        let own = percent_encoded(&parameter.writer.name);
        for (name, value) in parameter.writer.pairs(value) {
            let of_other = of_location().any(|other| percent_encoded(&other.writer.name) == name);
            let of_secret = secrets.iter().any(|(secret, _)| *secret == name);
            let of_path = fixed.contains(&name.as_str());
            if name != own && (of_other || of_secret || of_path) {
                // An object's members must not replace other parameters or credentials.
                return Err(format!(
                    "the argument {:?} must not have the member {name:?}",
                    parameter.name
                ));
            }
            if parameter.writer.is_unencoded() && [&name, &value].iter().any(|it| it.contains(ENDS))
            {
                return Err(format!(
                    "the argument {:?} must not have spaces, commas, quotes or semicolons: no cookie can",
                    parameter.name
                ));
            }
            written.push(format!("{name}={value}"));
        }
    }
    let secrets = secrets.into_iter();
    written.extend(secrets.map(|(name, value)| format!("{name}={}", percent_encoded(value))));
    Ok(written)
}

fn body(
    body: &BodyInput,
    inputs: &Inputs,
    arguments: &Map<String, Value>,
) -> Result<Option<(String, Bytes)>, String> {
    let value = match &body.argument {
        Some(name) => arguments.get(name).cloned(),
        None => {
            let is_parameter = |name: &String| inputs.parameters.iter().any(|it| it.name == *name);
            let rest = arguments.iter().filter(|(name, _)| !is_parameter(name));
            let rest: Map<String, Value> = rest.map(|(k, v)| (k.clone(), v.clone())).collect();
            (body.required || !rest.is_empty()).then_some(Value::Object(rest))
        }
    };
    match value {
        Some(value) => body.writer.write(&value).map(Some),
        None if body.required => Err("the argument \"body\" is missing".to_owned()),
        None => Ok(None),
    }
}

/// Errors do not quote the value, which may be a secret.
fn insert(headers: &mut HeaderMap, name: &str, value: &str) -> Result<(), String> {
    let parsed = HeaderName::try_from(name).map_err(|_| format!("{name:?} names no header"))?;
    let mut value = HeaderValue::from_str(value).map_err(|_| {
        format!("the header {name} cannot carry line breaks or characters beyond ASCII")
    })?;
    value.set_sensitive(true);
    headers.insert(parsed, value);
    Ok(())
}

#[cfg(test)]
mod tests;
