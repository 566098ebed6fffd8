//! Converts Swagger 2.0 to OpenAPI 3.0. Schemas stay in place, so references to them stay valid.

mod parameters;

use serde_json::{Map, Value, json};

use self::parameters::{GivenParameters, given};
use super::{Document, text};

const METHODS: [&str; 7] = ["get", "put", "post", "delete", "options", "head", "patch"];
const JSON: &str = "application/json";

pub(super) fn converted(document: &Document) -> Result<Value, String> {
    let Value::Object(mut root) = document.root.clone() else {
        return Err("it is no object".to_owned());
    };
    root.remove("swagger");
    root.insert("openapi".into(), "3.0.3".into());
    root.insert("servers".into(), servers(&root));
    let schemes = root.get("securityDefinitions").and_then(Value::as_object);
    let schemes: Map<String, Value> = schemes
        .into_iter()
        .flatten()
        .map(|(name, scheme)| (name.clone(), security_scheme(scheme)))
        .collect();
    root.insert("components".into(), json!({ "securitySchemes": schemes }));
    let usual = Usual {
        document,
        consumes: types(root.get("consumes")),
        produces: types(root.get("produces")),
    };
    let paths = document.member("paths").and_then(Value::as_object);
    let paths: Map<String, Value> = paths
        .into_iter()
        .flatten()
        .filter(|(path, _)| path.starts_with('/'))
        .map(|(path, item)| (path.clone(), usual.path(item)))
        .collect();
    root.insert("paths".into(), Value::Object(paths));
    rename_nullable(&mut root);
    Ok(Value::Object(root))
}

/// Without a host, the service is where the document is.
fn servers(root: &Map<String, Value>) -> Value {
    let says = |name: &str| root.get(name).map(text).filter(|said| !said.is_empty());
    let path = says("basePath").unwrap_or_else(|| "/".to_owned());
    let Some(host) = says("host") else {
        return json!([{ "url": path }]);
    };
    let schemes = root.get("schemes").and_then(Value::as_array);
    let schemes: Vec<String> = schemes.into_iter().flatten().map(text).collect();
    let scheme = ["https", "http"]
        .into_iter()
        .find(|known| schemes.iter().any(|scheme| scheme == known));
    // Without `schemes`, the URL inherits the document's scheme.
    let scheme = scheme.map_or_else(String::new, |scheme| format!("{scheme}:"));
    let path = path.trim_start_matches('/');
    json!([{ "url": format!("{scheme}//{host}/{path}") }])
}

fn security_scheme(scheme: &Value) -> Value {
    match scheme.get("type").and_then(Value::as_str) {
        Some("basic") => json!({ "type": "http", "scheme": "basic" }),
        Some("oauth2") => json!({ "type": "oauth2", "flows": {} }),
        _ => scheme.clone(),
    }
}

fn types(said: Option<&Value>) -> Vec<String> {
    let said = said.and_then(Value::as_array);
    said.into_iter().flatten().map(text).collect()
}

struct Usual<'a> {
    document: &'a Document,
    consumes: Vec<String>,
    produces: Vec<String>,
}

impl Usual<'_> {
    fn path(&self, item: &Value) -> Value {
        let Ok(Value::Object(item)) = self.document.resolve(item) else {
            return item.clone();
        };
        let common = item.get("parameters");
        let mut converted = item.clone();
        converted.remove("parameters");
        for method in METHODS {
            if let Some(operation) = item.get(method) {
                let operation = self.document.resolve(operation).unwrap_or(operation);
                converted.insert(method.into(), self.operation(operation, common));
            }
        }
        Value::Object(converted)
    }

    fn operation(&self, operation: &Value, common: Option<&Value>) -> Value {
        let Value::Object(members) = operation else {
            return operation.clone();
        };
        let own = |name: &str, usual: &Vec<String>| match members.get(name) {
            Some(said) => types(Some(said)),
            None => usual.clone(),
        };
        let (consumes, produces) = (
            own("consumes", &self.consumes),
            own("produces", &self.produces),
        );
        let mut converted = members.clone();
        let GivenParameters { parameters, body } =
            given(self.document, common, members.get("parameters"), &consumes);
        converted.insert("parameters".into(), Value::Array(parameters));
        if let Some(body) = body {
            converted.insert("requestBody".into(), body);
        }
        let responses = members.get("responses").and_then(Value::as_object);
        let responses: Map<String, Value> = responses
            .into_iter()
            .flatten()
            .map(|(status, response)| (status.clone(), self.response(response, &produces)))
            .collect();
        converted.insert("responses".into(), Value::Object(responses));
        Value::Object(converted)
    }

    fn response(&self, response: &Value, produces: &[String]) -> Value {
        let Ok(Value::Object(response)) = self.document.resolve(response) else {
            return response.clone();
        };
        let mut converted = response.clone();
        if let Some(schema) = converted.remove("schema") {
            let schema = match schema.get("type").is_some_and(|kind| kind == "file") {
                true => json!({ "type": "string", "format": "binary" }),
                false => schema,
            };
            let json = [JSON.to_owned()];
            let produces = if produces.is_empty() { &json } else { produces };
            let content = produces
                .iter()
                .map(|media| (media.clone(), json!({ "schema": schema })));
            converted.insert("content".into(), Value::Object(content.collect()));
        }
        Value::Object(converted)
    }
}

fn rename_nullable(members: &mut Map<String, Value>) {
    if members.get("x-nullable").is_some_and(Value::is_boolean)
        && let Some(nullable) = members.remove("x-nullable")
    {
        members.insert("nullable".to_owned(), nullable);
    }
    members.values_mut().for_each(rename_in);
}

fn rename_in(value: &mut Value) {
    match value {
        Value::Object(members) => rename_nullable(members),
        Value::Array(items) => items.iter_mut().for_each(rename_in),
        _ => {}
    }
}

#[cfg(test)]
mod tests;
