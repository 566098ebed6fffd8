use std::collections::HashSet;

use parking_lot::RwLock;
use shoal_protocol::{RawJson, RawObject};

const MOST: usize = 10_000;

#[derive(Debug, Default)]
pub(crate) struct TaskTools(RwLock<HashSet<String>>);

impl TaskTools {
    /// Replaces the known names of task-only tools. Marks the tasks of these tools as optional in
    /// `tools`, because Shoal calls such tools for all clients.
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

    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.read().contains(name)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.read().is_empty()
    }
}

fn offered_to_all(tool: &RawJson) -> Option<(String, RawJson)> {
    let mut execution = RawObject::of(&tool.member("execution")?)?;
    let needs = execution.get("taskSupport")?.string()? == "required";
    let name = needs.then(|| tool.member("name")?.string()).flatten()?;
    let mut offered = RawObject::of(tool)?;
    execution.set("taskSupport", RawJson::from_static(r#""optional""#));
    offered.set("execution", execution.to_json());
    Some((name, offered.to_json()))
}
