use std::sync::atomic::Ordering;

use rmcp::{
    ErrorData,
    model::{CacheScope, ReadResourceResult, Resource, ResourceContents, ResourceTemplate},
};
use serde_json::json;

use super::{DemoServer, UNCHANGING_TTL_MS};
use crate::media;

pub(super) const COUNTER: &str = "demo://counter";
pub(super) const GREETING: &str = "demo://greeting/{name}";

const README: &str = "demo://readme";
const LOGO: &str = "demo://logo";
const GREETING_PREFIX: &str = "demo://greeting/";

const README_TEXT: &str = "# Shoal demo\n\n\
    Read `demo://counter`, call `increment_counter` and read it again: subscribers hear about it.\n";

pub(super) fn list() -> Vec<Resource> {
    vec![
        Resource::new(README, "readme")
            .with_title("Read me")
            .with_description("What there is to try")
            .with_mime_type("text/markdown"),
        Resource::new(COUNTER, "counter")
            .with_title("Counter")
            .with_description("Changes with every call of increment_counter")
            .with_mime_type("application/json"),
        Resource::new(LOGO, "logo")
            .with_title("Logo")
            .with_description("One red pixel")
            .with_mime_type(media::PNG_TYPE),
    ]
}

pub(super) fn templates() -> Vec<ResourceTemplate> {
    vec![
        ResourceTemplate::new(GREETING, "greeting")
            .with_title("Greeting")
            .with_description("A greeting for the name in the URI")
            .with_mime_type("text/plain"),
    ]
}

impl DemoServer {
    pub(super) fn read(&self, uri: &str) -> Result<ReadResourceResult, ErrorData> {
        let mut ttl_ms = UNCHANGING_TTL_MS;
        let contents = match uri {
            README => ResourceContents::text(README_TEXT, uri).with_mime_type("text/markdown"),
            LOGO => ResourceContents::blob(media::png(), uri).with_mime_type(media::PNG_TYPE),
            COUNTER => {
                ttl_ms = 0;
                let value = self.state.counter.load(Ordering::Acquire);
                ResourceContents::text(json!({ "value": value }).to_string(), uri)
                    .with_mime_type("application/json")
            }
            _ => match uri.strip_prefix(GREETING_PREFIX) {
                Some(name) if !name.is_empty() && !name.contains('/') => {
                    ResourceContents::text(format!("Hello, {name}!"), uri)
                }
                _ => {
                    let data = json!({ "uri": uri });
                    return Err(ErrorData::resource_not_found(
                        "Resource not found",
                        Some(data),
                    ));
                }
            },
        };
        Ok(ReadResourceResult::new(vec![contents])
            .with_ttl_ms(ttl_ms)
            .with_cache_scope(CacheScope::Public))
    }
}
