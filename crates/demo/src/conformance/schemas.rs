use rmcp::{
    model::{JsonObject, object},
    tool, tool_router,
};
use serde_json::{Value, json};

use super::ConformanceServer;

#[tool_router(router = schema_tools, vis = "pub(super)")]
impl ConformanceServer {
    /// Tool with JSON Schema 2020-12 features.
    #[tool(input_schema = every_keyword())]
    fn json_schema_2020_12_tool(&self, arguments: JsonObject) -> String {
        format!(
            "JSON Schema 2020-12 tool called with {}",
            Value::Object(arguments)
        )
    }

    /// Mirrors its region into the `Mcp-Param-Region` header (SEP-2243).
    #[tool(input_schema = mirrored_header())]
    fn test_custom_header(&self, arguments: JsonObject) -> String {
        let region = arguments
            .get("region")
            .and_then(Value::as_str)
            .unwrap_or("no region");
        format!("Called for {region}")
    }
}

/// Keywords that a host would lose if it rebuilt schemas (SEP-1613, SEP-2106).
fn every_keyword() -> JsonObject {
    object(json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {
                "$anchor": "addressDef",
                "type": "object",
                "properties": {
                    "street": { "type": "string" },
                    "city": { "type": "string" }
                }
            }
        },
        "properties": {
            "name": { "type": "string" },
            "address": { "$ref": "#/$defs/address" },
            "contactMethod": { "type": "string", "enum": ["phone", "email"] },
            "phone": { "type": "string" },
            "email": { "type": "string" }
        },
        "allOf": [{ "anyOf": [{ "required": ["phone"] }, { "required": ["email"] }] }],
        "if": {
            "properties": { "contactMethod": { "const": "phone" } },
            "required": ["contactMethod"]
        },
        "then": { "required": ["phone"] },
        "else": { "required": ["email"] },
        "additionalProperties": false
    }))
}

fn mirrored_header() -> JsonObject {
    object(json!({
        "type": "object",
        "properties": {
            "region": {
                "type": "string",
                "description": "Where to run",
                "x-mcp-header": "Region"
            }
        }
    }))
}
