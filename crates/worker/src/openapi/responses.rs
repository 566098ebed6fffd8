//! What an operation answers when it succeeds, as its document says it.

use http::HeaderValue;
use serde_json::{Map, Value};

use super::body::{BodyKind, essence};
use super::document::{Document, MediaType, OperationObject};
use super::inputs::Unsupported;
use super::schema::{SchemaDirection, Schemas};

/// Media types that are asked for by name.
const ACCEPTED: usize = 8;
/// What an operation answers when it succeeds.
pub(super) struct SuccessResponses(Vec<Map<String, Value>>);

impl SuccessResponses {
    /// Those of an operation.
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

    /// The schema of the structured content: there is one where each success is JSON, and an object of one shape.
    pub(super) fn schema(
        &self,
        document: &Document,
        limit: usize,
    ) -> Result<Option<Value>, Unsupported> {
        let [content] = self.0.as_slice() else {
            return Ok(None);
        };
        let mut contents = content.iter();
        let (Some((media, content)), None) = (contents.next(), contents.next()) else {
            return Ok(None);
        };
        if BodyKind::of(media) != BodyKind::Json || media.contains('*') {
            return Ok(None);
        }
        let content: MediaType = document.read(content)?;
        let Some(schema) = content.schema else {
            return Ok(None);
        };
        let resolved = document.resolve(&schema)?;
        if resolved.get("type").is_none_or(|kind| kind != "object") || is_nullable(resolved) {
            return Ok(None);
        }
        let mut schemas = Schemas::new(document, SchemaDirection::Output, limit);
        let Value::Object(mut converted) = schemas.convert(resolved)? else {
            return Ok(None);
        };
        let definitions = schemas.definitions()?;
        if !definitions.is_empty() {
            converted.insert("$defs".into(), Value::Object(definitions));
        }
        Ok(Some(Value::Object(converted)))
    }

    /// What to ask for: what the document says, or whatever there is.
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
