//! Tool arguments that are mirrored in headers (`x-mcp-header`, SEP-2243).

use std::collections::HashMap;

use http::{HeaderMap, HeaderName, HeaderValue};
use parking_lot::Mutex;
use serde_json::Value;
use shoal_protocol::{PROGRESS_TOKEN, ParamHeaders, RawJson, RawObject, Request};

const MOST_PAGES: usize = 100;

#[derive(Default)]
pub(super) struct Mirror(Mutex<HashMap<String, ParamHeaders>>);

impl Mirror {
    pub(super) fn learn(&self, result: &RawJson) {
        let tools = RawObject::of(result)
            .and_then(|result| result.get("tools"))
            .and_then(|tools| tools.read::<Vec<RawJson>>().ok());
        let mut known = self.0.lock();
        for tool in tools.into_iter().flatten() {
            let Some((name, headers)) = mirrored(&tool) else {
                continue;
            };
            if headers.is_empty() {
                known.remove(&name);
            } else {
                known.insert(name, headers);
            }
        }
    }

    pub(super) fn add_headers(
        &self,
        tool: &str,
        arguments: Option<&RawJson>,
        headers: &mut HeaderMap,
    ) {
        let known = self.0.lock();
        let Some(mirrored) = known.get(tool) else {
            return;
        };
        let arguments: Value = arguments
            .and_then(|arguments| arguments.read().ok())
            .unwrap_or_default();
        for (name, value) in mirrored.of_call(&arguments) {
            if let (Ok(name), Ok(value)) =
                (HeaderName::try_from(name), HeaderValue::from_str(&value))
            {
                headers.insert(name, value);
            }
        }
    }
}

fn mirrored(tool: &RawJson) -> Option<(String, ParamHeaders)> {
    let tool = RawObject::of(tool)?;
    let schema: Value = tool.get("inputSchema")?.read().ok()?;
    // The server itself refuses calls of tools with invalid annotations.
    let headers = ParamHeaders::of_schema(&schema).unwrap_or_default();
    Some((tool.get("name")?.string()?, headers))
}

pub(super) struct ListPage {
    meta: Option<RawJson>,
    cursor: Option<RawJson>,
    read: usize,
    more: bool,
}

impl ListPage {
    pub(super) fn first(request: &Request) -> Self {
        let meta = request.params.as_ref().and_then(RawObject::of);
        let meta = meta.and_then(|params| RawObject::of(&params.get("_meta")?));
        let meta = meta.map(|mut meta| {
            meta.remove(PROGRESS_TOKEN);
            meta.to_json()
        });
        Self {
            meta,
            cursor: None,
            read: 0,
            more: true,
        }
    }

    /// Returns the parameters of the next request; `None` after the last page.
    pub(super) fn params(&self) -> Option<RawJson> {
        if !self.more {
            return None;
        }
        let mut params = RawObject::default();
        if let Some(meta) = &self.meta {
            params.set("_meta", meta.clone());
        }
        if let Some(cursor) = &self.cursor {
            params.set("cursor", cursor.clone());
        }
        Some(params.to_json())
    }

    pub(super) fn turn(&mut self, result: &RawJson) {
        let cursor = RawObject::of(result).and_then(|result| result.get("nextCursor"));
        self.cursor = cursor.filter(|cursor| cursor.as_str() != "null");
        self.read += 1;
        self.more = self.cursor.is_some() && self.read < MOST_PAGES;
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderMap;
    use serde_json::json;
    use shoal_protocol::{Method, RawJson, Request, RequestId};

    use super::{ListPage, Mirror};

    #[test]
    fn arguments_are_mirrored_as_the_newest_list_says() {
        let mirror = Mirror::default();
        let list = |header: bool| {
            let mut region = json!({ "type": "string" });
            if header {
                region["x-mcp-header"] = "Region".into();
            }
            let schema = json!({ "type": "object", "properties": {
                "region": region, "n": { "type": "integer" } } });
            RawJson::of(&json!({ "tools": [{ "name": "t", "inputSchema": schema }] }))
        };
        let headers = |arguments: serde_json::Value| {
            let mut headers = HeaderMap::new();
            mirror.add_headers("t", Some(&RawJson::of(&arguments)), &mut headers);
            headers
        };
        assert!(headers(json!({ "region": "eu" })).is_empty());
        mirror.learn(&list(true));
        assert_eq!(headers(json!({ "region": "eu" }))["mcp-param-region"], "eu");
        let encoded = &headers(json!({ "region": "ä" }))["mcp-param-region"];
        assert!(encoded.to_str().unwrap().starts_with("=?base64?"));
        assert!(headers(json!({ "region": null })).is_empty());
        mirror.learn(&list(false));
        assert!(headers(json!({ "region": "eu" })).is_empty());
    }

    #[test]
    fn a_list_is_read_to_its_last_page() {
        let request = Request {
            id: RequestId::from_number(1),
            method: Method::ToolsCall,
            params: Some(RawJson::from_static(
                r#"{"name":"t","_meta":{"progressToken":1,"k":"v"}}"#,
            )),
        };
        let mut page = ListPage::first(&request);
        assert_eq!(page.params().unwrap().as_str(), r#"{"_meta":{"k":"v"}}"#);
        page.turn(&RawJson::from_static(r#"{"tools":[],"nextCursor":"c"}"#));
        let second = r#"{"_meta":{"k":"v"},"cursor":"c"}"#;
        assert_eq!(page.params().unwrap().as_str(), second);
        page.turn(&RawJson::from_static(r#"{"tools":[]}"#));
        assert!(page.params().is_none());
    }
}
