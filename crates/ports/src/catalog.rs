use std::sync::Arc;

use shoal_protocol::{RawJson, RawObject};

use crate::{CallFailure, ListOwner, ListScope, OwnLists, Principal, SessionId};

/// The tools, resources and prompts that a pool's backend offers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PoolCatalog {
    /// The backend's `Implementation`.
    pub server_info: Option<RawJson>,
    /// The backend's instructions for models.
    pub instructions: Option<String>,
    /// The backend's `ServerCapabilities`.
    pub capabilities: RawObjectOrEmpty,
    /// The `Tool` objects, in the backend's order.
    pub tools: Vec<RawJson>,
    /// The backend's `Resource` objects.
    pub resources: Vec<RawJson>,
    /// The backend's `ResourceTemplate` objects.
    pub resource_templates: Vec<RawJson>,
    /// The backend's `Prompt` objects.
    pub prompts: Vec<RawJson>,
    /// The backend's `ttlMs` for the lists of tools, resources, resource templates and prompts.
    pub ttl_ms: [Option<u64>; 4],
    /// Counts announced changes of tools, resources (with templates) and prompts.
    pub generations: [u64; 3],
    /// Client headers to forward to the pool, in lower case.
    pub headers: Vec<Arc<str>>,
    /// Whether all callers share the pool's lists. If not, the lists here are empty, and the worker answers list
    /// methods as calls, in one page.
    pub lists: ListScope,
    /// OpenAPI operations that could not become tools, and why.
    pub left_out: Vec<String>,
    /// Tools whose listed schemas are shortened, and how.
    pub cut: Vec<String>,
}

/// A JSON object, `{}` by default.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawObjectOrEmpty(pub RawJson);

impl Default for RawObjectOrEmpty {
    fn default() -> Self {
        Self(RawJson::from_static("{}"))
    }
}

impl PoolCatalog {
    /// Whether the backend declares a capability.
    pub fn declares(&self, capability: &str) -> bool {
        RawObject::of(&self.capabilities.0).is_some_and(|declared| declared.has(capability))
    }
}

/// Facts about the server, among them those that `initialize` and `server/discover` tell clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerFacts {
    /// The server's `Implementation` object.
    pub server_info: RawJson,
    /// All pools' `ServerCapabilities`, with `resources.subscribe` and `listChanged`, which Shoal
    /// serves.
    pub capabilities: RawJson,
    /// All pools' instructions, joined.
    pub instructions: Option<String>,
    /// Versions of the lists of tools, resources (with templates) and prompts. Lists with equal contents have equal
    /// versions on all nodes.
    pub versions: [u64; 3],
    /// Client headers that any pool asks for.
    pub headers: Arc<[Arc<str>]>,
    /// List versions of the callers with lists of their own.
    pub own: OwnLists,
}

impl ServerFacts {
    /// Returns the [versions](Self::versions) that a caller sees.
    pub fn versions_of(&self, session: Option<&SessionId>, principal: &Principal) -> [u64; 3] {
        let mut versions = self.versions;
        if self.own.is_empty() {
            return versions;
        }
        let owners = ListOwner::of(session, principal);
        for own in owners.iter().filter_map(|owner| self.own.get(owner)) {
            for (version, own) in versions.iter_mut().zip(own) {
                // The sum of two hashes identifies the pair.
                *version = version.wrapping_add(*own);
            }
        }
        versions
    }
}

/// The server's facts, and whether they are complete.
#[derive(Clone, Debug)]
pub struct SettledFacts {
    /// The facts that the node knows.
    pub facts: Arc<ServerFacts>,
    /// Why the facts may be incomplete, and when to ask again. `None` if complete.
    pub lacks: Option<CallFailure>,
}

/// Whether Shoal may run a call again after it was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Repeat {
    /// Shoal may run the call again, so the call needs no journal entry.
    Safe,
    /// The call runs at most once. Before it starts, its session's owner journals it, or it is bound to one worker.
    Never,
}
