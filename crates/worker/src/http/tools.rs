//! Which arguments of which tools travel in headers as well (`x-mcp-header`).

use std::collections::HashMap;

use parking_lot::Mutex;
use serde_json::Value;
use shoal_protocol::{ParamHeaders, RawJson};

/// The mirrored arguments of the server's tools.
#[derive(Default)]
pub(super) struct Tools(Mutex<HashMap<String, ParamHeaders>>);

impl Tools {
    /// Takes in the server's list.
    pub(super) fn learn(&self, tools: &[RawJson]) {
        *self.0.lock() = tools.iter().filter_map(mirrored).collect();
    }

    /// The headers of a call with these parameters.
    pub(super) fn mirrored(&self, tool: &str, params: Option<&RawJson>) -> Vec<(String, String)> {
        let known = self.0.lock();
        let Some(mirrored) = known.get(tool) else {
            return Vec::new();
        };
        let arguments = params.and_then(|params| params.member("arguments"));
        let arguments = arguments.and_then(|arguments| arguments.read().ok());
        let arguments: Value = arguments.unwrap_or_default();
        mirrored.of_call(&arguments).collect()
    }
}

fn mirrored(tool: &RawJson) -> Option<(String, ParamHeaders)> {
    let schema: Value = tool.member("inputSchema")?.read().ok()?;
    // One whose annotations break the rules is not listed.
    let headers = ParamHeaders::of_schema(&schema).ok()?;
    let name = tool.member("name")?.string()?;
    (!headers.is_empty()).then_some((name, headers))
}
