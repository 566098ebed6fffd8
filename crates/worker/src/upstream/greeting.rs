//! A server's answer to the opening of a connection.

use shoal_protocol::task::declares_tasks;
use shoal_protocol::{Era, RawJson, RawObject};

#[derive(Clone, Debug)]
pub(crate) struct Greeting {
    pub(crate) era: Era,
    /// The server's `Implementation`.
    pub(crate) server_info: Option<RawJson>,
    /// The server's `ServerCapabilities`.
    pub(crate) capabilities: RawJson,
    pub(crate) instructions: Option<String>,
    pub(crate) tasks: bool,
}

impl Greeting {
    pub(crate) const NONE: Self = Self {
        era: Era::Legacy,
        server_info: None,
        capabilities: RawJson::from_static("{}"),
        instructions: None,
        tasks: false,
    };

    pub(crate) fn declares(&self, capability: &str) -> bool {
        RawObject::of(&self.capabilities).is_some_and(|declared| declared.has(capability))
    }

    pub(crate) fn offers(&self, capability: &str, flag: &str) -> bool {
        let declared = RawObject::of(&self.capabilities);
        let capability = declared.and_then(|declared| RawObject::of(&declared.get(capability)?));
        capability
            .and_then(|capability| capability.get(flag))
            .is_some_and(|flag| flag.as_str() == "true")
    }

    pub(super) fn of(era: Era, result: &RawObject, server_info: Option<RawJson>) -> Self {
        let capabilities = result
            .get("capabilities")
            .filter(RawJson::is_object)
            .unwrap_or(RawJson::from_static("{}"));
        Self {
            era,
            server_info,
            tasks: match era {
                Era::Legacy => makes_tasks_of_calls(&capabilities).is_some(),
                Era::Modern => declares_tasks(&capabilities),
            },
            capabilities,
            instructions: result.get("instructions").and_then(|text| text.string()),
        }
    }
}

fn makes_tasks_of_calls(capabilities: &RawJson) -> Option<RawJson> {
    let requests = capabilities.member("tasks")?.member("requests")?;
    requests.member("tools")?.member("call")
}
