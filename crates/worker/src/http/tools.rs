//! Which arguments of which tools travel in headers as well (`x-mcp-header`).

use std::collections::{HashMap, HashSet};

use parking_lot::Mutex;
use serde_json::Value;
use shoal_protocol::{Era, InvalidParamHeader, ParamHeaders, RawJson};

/// The mirrored arguments of the server's tools.
#[derive(Default)]
pub(super) struct Tools(Mutex<Known>);

#[derive(Default)]
struct Known {
    mirrored: HashMap<String, ParamHeaders>,
    /// Tools that were left out.
    refused: HashSet<String>,
}

impl Tools {
    /// Takes in the server's list. In the modern era a client must leave out a tool whose annotations break the rules: nobody knows which
    /// headers its server expects.
    pub(super) fn learn(&self, era: Era, tools: &mut Vec<RawJson>) {
        let mut learnt = Known::default();
        let mut known = self.0.lock();
        tools.retain(|tool| {
            let (Some(name), Some(headers)) = (name(tool), headers(tool)) else {
                return true;
            };
            match headers {
                Ok(headers) if headers.is_empty() => {}
                Ok(headers) => drop(learnt.mirrored.insert(name, headers)),
                Err(_) if era == Era::Legacy => {}
                Err(why) => {
                    if !known.refused.contains(&name) {
                        tracing::warn!(target: "shoal::http", tool = name, %why, "a tool of the server is left out");
                    }
                    learnt.refused.insert(name);
                    return false;
                }
            }
            true
        });
        *known = learnt;
    }

    /// The headers of a call with these parameters.
    pub(super) fn mirrored(&self, tool: &str, params: Option<&RawJson>) -> Vec<(String, String)> {
        let known = self.0.lock();
        let Some(mirrored) = known.mirrored.get(tool) else {
            return Vec::new();
        };
        let arguments = params.and_then(|params| params.member("arguments"));
        let arguments = arguments.and_then(|arguments| arguments.read().ok());
        let arguments: Value = arguments.unwrap_or_default();
        mirrored.of_call(&arguments).collect()
    }
}

fn name(tool: &RawJson) -> Option<String> {
    tool.member("name")?.string()
}

fn headers(tool: &RawJson) -> Option<Result<ParamHeaders, InvalidParamHeader>> {
    let schema: Value = tool.member("inputSchema")?.read().ok()?;
    Some(ParamHeaders::of_schema(&schema))
}
