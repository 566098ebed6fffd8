//! What `scripts/fuzz` gets at: there only with `--cfg fuzzing`.

use shoal_protocol::RawJson;

use crate::catalog::fuzz::{check, readings};

/// A URI that a client asks for, and a template that a worker announces, on two lines.
pub fn resource_uri(text: &str) {
    let (uri, template) = text.split_once('\n').unwrap_or((text, "x:{+a}/{b}"));
    readings(uri, template);
}

/// The schema of a tool, and arguments that are checked against it, on two lines.
pub fn tool_schema(text: &str) {
    let (schema, arguments) = text.split_once('\n').unwrap_or((text, "{}"));
    let json = |text: &str| RawJson::parse_text(text.to_owned().into());
    if let (Ok(schema), Ok(arguments)) = (json(schema), json(arguments)) {
        check(&schema, &arguments);
    }
}
