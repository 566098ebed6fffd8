//! The catalogs of pools, and the server's facts.

use std::sync::Arc;

use shoal_protocol::{RawJson, RawObject};

use crate::{CallFailure, ListOwner, ListScope, OwnLists, Principal, SessionId};

/// A pool's catalog.
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
    /// The `Resource` objects.
    pub resources: Vec<RawJson>,
    /// The `ResourceTemplate` objects.
    pub resource_templates: Vec<RawJson>,
    /// The `Prompt` objects.
    pub prompts: Vec<RawJson>,
    /// The `ttlMs` of tools, resources, resource templates and prompts.
    pub ttl_ms: [Option<u64>; 4],
    /// Changes announced to tools, resources (with templates) and prompts.
    pub generations: [u64; 3],
    /// Client headers to forward, in lower case.
    pub headers: Vec<Arc<str>>,
    /// Whether callers share the lists. Otherwise these are empty, and the backend answers list methods as calls with
    /// all pages in one.
    pub lists: ListScope,
    /// Operations that could not become tools, and why.
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
    /// Whether the backend declared a capability.
    pub fn declares(&self, capability: &str) -> bool {
        RawObject::of(&self.capabilities.0).is_some_and(|declared| declared.has(capability))
    }
}

/// The content of `initialize` and `server/discover`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerFacts {
    /// The server's `Implementation`.
    pub server_info: RawJson,
    /// `ServerCapabilities` of all pools, with `resources.subscribe` and `listChanged`, which Shoal serves.
    pub capabilities: RawJson,
    /// The instructions of all pools, joined.
    pub instructions: Option<String>,
    /// Versions of tools, resources (with templates) and prompts, equal on all nodes with equal contents.
    pub versions: [u64; 3],
    /// Client headers that any pool asks for.
    pub headers: Arc<[Arc<str>]>,
    /// The owners of separate lists.
    pub own: OwnLists,
}

impl ServerFacts {
    /// The [versions](Self::versions) that a caller sees.
    pub fn versions_of(&self, session: Option<&SessionId>, principal: &Principal) -> [u64; 3] {
        let mut versions = self.versions;
        if self.own.is_empty() {
            return versions;
        }
        let owners = ListOwner::of(session, principal);
        for own in owners.iter().filter_map(|owner| self.own.get(owner)) {
            for (version, own) in versions.iter_mut().zip(own) {
                // A sum of hashes identifies the pair.
                *version = version.wrapping_add(*own);
            }
        }
        versions
    }
}

/// The server's facts, and whether they are complete.
#[derive(Clone, Debug)]
pub struct SettledFacts {
    /// The current facts.
    pub facts: Arc<ServerFacts>,
    /// Why the facts may be incomplete, and when to ask again.
    pub lacks: Option<CallFailure>,
}

/// Whether a call may run again after a loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Repeat {
    /// The tool may run again. The call is not journaled.
    Safe,
    /// The call runs at most once: its owner holds it, then journals it.
    Never,
}
