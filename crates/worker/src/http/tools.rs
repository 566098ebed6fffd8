//! Tool arguments that also travel in headers (`x-mcp-header`).

use std::collections::{HashMap, HashSet};

use parking_lot::Mutex;
use serde_json::Value;
use shoal_protocol::{Era, InvalidParamHeader, ParamHeaders, RawJson};

const MOST: usize = 10_000;

#[derive(Default)]
pub(super) struct Tools(Mutex<KnownTools>);

#[derive(Default)]
struct KnownTools {
    mirrored: HashMap<String, ParamHeaders>,
    refused: HashSet<String>,
}

impl Tools {
    /// Replaces the known tools. In the modern era, removes tools with invalid annotations from `tools`,
    /// because their servers may expect any headers.
    pub(super) fn learn(&self, era: Era, tools: &mut Vec<RawJson>) {
        let mut known = self.0.lock();
        let mut learnt = KnownTools::default();
        tools.retain(|tool| learnt.take(era, tool, &known));
        *known = learnt;
    }

    pub(super) fn add(&self, era: Era, tools: &mut Vec<RawJson>) {
        let mut known = self.0.lock();
        let mut learnt = KnownTools::default();
        tools.retain(|tool| learnt.take(era, tool, &known));
        let KnownTools { mirrored, refused } = learnt;
        let fits = |known: usize, more: usize| known + more <= MOST;
        if fits(known.mirrored.len(), mirrored.len()) {
            known.mirrored.extend(mirrored);
        } else {
            // Older names can go, because callers list tools before they call them.
            known.mirrored = mirrored;
        }
        if fits(known.refused.len(), refused.len()) {
            known.refused.extend(refused);
        }
    }

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

impl KnownTools {
    fn take(&mut self, era: Era, tool: &RawJson, before: &Self) -> bool {
        let (Some(name), Some(headers)) = (name(tool), headers(tool)) else {
            return true;
        };
        match headers {
            Ok(headers) if headers.is_empty() => {}
            Ok(headers) => drop(self.mirrored.insert(name, headers)),
            Err(_) if era == Era::Legacy => {}
            Err(why) => {
                if !before.refused.contains(&name) {
                    tracing::warn!(target: "shoal::http", tool = name, %why, "a tool of the server is left out");
                }
                self.refused.insert(name);
                return false;
            }
        }
        true
    }
}

fn name(tool: &RawJson) -> Option<String> {
    tool.member("name")?.string()
}

fn headers(tool: &RawJson) -> Option<Result<ParamHeaders, InvalidParamHeader>> {
    let schema: Value = tool.member("inputSchema")?.read().ok()?;
    Some(ParamHeaders::of_schema(&schema))
}
