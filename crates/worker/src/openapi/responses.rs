use http::HeaderValue;
use serde_json::{Map, Value, json};

use super::document::{Document, MediaType, OperationObject};
use super::media::{BodyKind, essence};
use super::schema::{OUTPUT, Patterns, SchemaDirection, Schemas};

const ACCEPTED: usize = 8;

#[derive(Debug, Default)]
pub(super) struct ResponseSchema {
    pub(super) schema: Option<Value>,
    pub(super) cut: Option<&'static str>,
}

pub(super) struct SuccessResponses(Vec<Map<String, Value>>);

impl SuccessResponses {
    pub(super) fn of(document: &Document, object: &OperationObject) -> Self {
        let successes = object
            .responses
            .iter()
            .filter(|(status, _)| status.starts_with('2'));
        let contents = successes.map(|(_, response)| {
            let response = document.resolve(response).ok();
            let content = response.and_then(|response| response.get("content"));
            content
                .and_then(Value::as_object)
                .cloned()
                .unwrap_or_default()
        });
        Self(contents.collect())
    }

    /// Returns a schema only if the operation has one success response, which is a JSON object.
    /// `limit` is in bytes.
    pub(super) fn schema(&self, document: &Document, limit: usize) -> ResponseSchema {
        let Some(schema) = self.object(document) else {
            return ResponseSchema::default();
        };
        let patterns = Patterns::default();
        for detail in OUTPUT {
            let mut schemas =
                Schemas::new(document, SchemaDirection::Output, detail, &patterns, limit);
            let converted = schemas.convert(&schema);
            let converted = converted.and_then(|converted| Ok((converted, schemas.definitions()?)));
            let Ok((Value::Object(mut root), (definitions, is_cut))) = converted else {
                continue;
            };
            root.insert("type".into(), json!("object"));
            if !definitions.is_empty() {
                root.insert("$defs".into(), Value::Object(definitions));
            }
            let is_whole = !is_cut && std::ptr::eq(detail, &OUTPUT[0]);
            return ResponseSchema {
                schema: Some(Value::Object(root)),
                cut: (!is_whole).then_some(detail.about),
            };
        }
        ResponseSchema {
            schema: None,
            cut: Some("not at all"),
        }
    }

    fn object(&self, document: &Document) -> Option<Value> {
        let [content] = self.0.as_slice() else {
            return None;
        };
        let mut contents = content.iter();
        let (Some((media, content)), None) = (contents.next(), contents.next()) else {
            return None;
        };
        if BodyKind::of(media) != BodyKind::Json || media.contains('*') {
            return None;
        }
        let content: MediaType = document.read(content).ok()?;
        let schema = content.schema?;
        let resolved = document.resolve(&schema).ok()?;
        let is_object = resolved.get("type").is_some_and(|kind| kind == "object");
        (is_object && !is_nullable(resolved)).then(|| resolved.clone())
    }

    pub(super) fn accept(&self) -> HeaderValue {
        let mut named: Vec<String> = Vec::new();
        for media in self
            .0
            .iter()
            .flat_map(Map::keys)
            .map(|media| essence(media))
        {
            if named.len() < ACCEPTED && !named.contains(&media) {
                named.push(media);
            }
        }
        if named.is_empty() {
            named.push("application/json".to_owned());
        }
        named.push("*/*;q=0.1".to_owned());
        let accepted = HeaderValue::try_from(named.join(", "));
        accepted.unwrap_or(HeaderValue::from_static("*/*"))
    }
}

fn is_nullable(schema: &Value) -> bool {
    schema.get("nullable") == Some(&Value::Bool(true))
}
