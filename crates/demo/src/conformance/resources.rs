use rmcp::{
    ErrorData,
    model::{CacheScope, ReadResourceResult, Resource, ResourceContents, ResourceTemplate},
};
use serde_json::json;

use super::UNCHANGING_TTL_MS;
use crate::media;

const TEXT: &str = "test://static-text";
const BINARY: &str = "test://static-binary";
const WATCHED: &str = "test://watched-resource";
const TEMPLATE: &str = "test://template/{id}/data";

pub(super) fn list() -> Vec<Resource> {
    vec![
        Resource::new(TEXT, "static-text")
            .with_description("A static text resource")
            .with_mime_type("text/plain"),
        Resource::new(BINARY, "static-binary")
            .with_description("A static binary resource")
            .with_mime_type(media::PNG_TYPE),
        Resource::new(WATCHED, "watched-resource")
            .with_description("A resource to subscribe to")
            .with_mime_type("text/plain"),
    ]
}

pub(super) fn templates() -> Vec<ResourceTemplate> {
    vec![
        ResourceTemplate::new(TEMPLATE, "template")
            .with_description("A resource with a parameter")
            .with_mime_type("application/json"),
    ]
}

pub(super) fn read(uri: &str) -> Result<ReadResourceResult, ErrorData> {
    let contents = match uri {
        TEXT => ResourceContents::text("This is the content of the static text resource.", uri),
        BINARY => ResourceContents::blob(media::png(), uri).with_mime_type(media::PNG_TYPE),
        WATCHED => ResourceContents::text("This resource can be subscribed to.", uri),
        _ => match template_id(uri) {
            Some(id) => {
                let data = format!("Data for ID: {id}");
                let text = json!({ "id": id, "templateTest": true, "data": data }).to_string();
                ResourceContents::text(text, uri).with_mime_type("application/json")
            }
            None => {
                let data = json!({ "uri": uri });
                return Err(ErrorData::resource_not_found(
                    "Resource not found",
                    Some(data),
                ));
            }
        },
    };
    Ok(ReadResourceResult::new(vec![contents])
        .with_ttl_ms(UNCHANGING_TTL_MS)
        .with_cache_scope(CacheScope::Public))
}

fn template_id(uri: &str) -> Option<&str> {
    let id = uri
        .strip_prefix("test://template/")?
        .strip_suffix("/data")?;
    (!id.is_empty() && !id.contains('/')).then_some(id)
}
