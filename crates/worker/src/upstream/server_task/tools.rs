//! The tools that their server runs as tasks alone.

use std::collections::HashSet;

use parking_lot::RwLock;
use shoal_protocol::{RawJson, RawObject};

/// Names that are kept of tools that are listed to single callers.
const MOST: usize = 10_000;

/// Names of tools, as the server lists them now.
#[derive(Debug, Default)]
pub(crate) struct TaskTools(RwLock<HashSet<String>>);

impl TaskTools {
    /// Takes in the list of a server that makes tasks. Shoal calls these tools for clients with tasks and without, so they are
    /// offered to both.
    pub(crate) fn learn(&self, tools: &mut [RawJson]) {
        let mut found = HashSet::new();
        for tool in tools {
            if let Some((name, offered)) = offered_to_all(tool) {
                *tool = offered;
                found.insert(name);
            }
        }
        *self.0.write() = found;
    }

    /// Takes in what is listed to one caller: to those that are known these come.
    pub(crate) fn add(&self, tools: &mut [RawJson]) {
        for tool in tools {
            let Some((name, offered)) = offered_to_all(tool) else {
                continue;
            };
            *tool = offered;
            if !self.has(&name) {
                let mut known = self.0.write();
                if known.len() < MOST {
                    known.insert(name);
                }
            }
        }
    }

    /// Whether the tool is one of them.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.read().contains(name)
    }

    /// Whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.read().is_empty()
    }
}

/// The name of a tool that needs a task, and the tool as it is offered.
fn offered_to_all(tool: &RawJson) -> Option<(String, RawJson)> {
    let mut execution = RawObject::of(&tool.member("execution")?)?;
    let needs = execution.get("taskSupport")?.string()? == "required";
    let name = needs.then(|| tool.member("name")?.string()).flatten()?;
    let mut offered = RawObject::of(tool)?;
    execution.set("taskSupport", RawJson::from_static(r#""optional""#));
    offered.set("execution", execution.to_json());
    Some((name, offered.to_json()))
}
