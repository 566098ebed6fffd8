//! Entry points for `scripts/fuzz`.

use shoal_protocol::RawJson;

use crate::catalog::fuzz::{check, readings};

/// Matches a URI against a worker's template, given on two lines.
pub fn resource_uri(text: &str) {
    let (uri, template) = text.split_once('\n').unwrap_or((text, "x:{+a}/{b}"));
    readings(uri, template);
}

/// Checks arguments against a tool's schema, given on two lines.
pub fn tool_schema(text: &str) {
    let (schema, arguments) = text.split_once('\n').unwrap_or((text, "{}"));
    let json = |text: &str| RawJson::parse_text(text.to_owned().into());
    if let (Ok(schema), Ok(arguments)) = (json(schema), json(arguments)) {
        check(&schema, &arguments);
    }
}
