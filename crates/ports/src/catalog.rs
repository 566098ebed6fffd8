//! The catalogs of pools, and the facts of the whole server.

use std::sync::Arc;

use shoal_protocol::{RawJson, RawObject};

use crate::{CallFailure, ListOwner, ListScope, OwnLists, Principal, SessionId};

/// The catalog of one pool, as its backend described it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PoolCatalog {
    /// The backend's `Implementation`.
    pub server_info: Option<RawJson>,
    /// The backend's instructions for models.
    pub instructions: Option<String>,
    /// The backend's `ServerCapabilities`.
    pub capabilities: RawObjectOrEmpty,
    /// The `Tool` objects as sent, in the backend's order.
    pub tools: Vec<RawJson>,
    /// The `Resource` objects.
    pub resources: Vec<RawJson>,
    /// The `ResourceTemplate` objects.
    pub resource_templates: Vec<RawJson>,
    /// The `Prompt` objects.
    pub prompts: Vec<RawJson>,
    /// The backend's `ttlMs` of the lists: tools, resources, resource templates, prompts.
    pub ttl_ms: [Option<u64>; 4],
    /// Number of announced changes to tools, resources (with templates) and prompts.
    pub generations: [u64; 3],
    /// Client headers to forward to the backend, in lower case.
    pub headers: Vec<Arc<str>>,
    /// Whether all callers share the lists. If each has its own, these lists are empty, and the backend answers list
    /// methods as calls with all pages in one.
    pub lists: ListScope,
    /// Operations that could not become tools, with the reasons.
    pub left_out: Vec<String>,
    /// Tools whose listed schemas are shortened, with the details.
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
    /// Whether the backend declared a capability (`tools`, `prompts`, `completions`, …).
    pub fn declares(&self, capability: &str) -> bool {
        RawObject::of(&self.capabilities.0).is_some_and(|declared| declared.has(capability))
    }
}

/// The content of `initialize` and `server/discover`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerFacts {
    /// The server's `Implementation`.
    pub server_info: RawJson,
    /// `ServerCapabilities` of all pools. Shoal itself serves `resources.subscribe` and `listChanged`, and sets them
    /// for every list.
    pub capabilities: RawJson,
    /// The instructions of all pools, joined.
    pub instructions: Option<String>,
    /// Versions of the tools, resources (with templates) and prompts. They change with the contents and are equal on
    /// all nodes with equal contents, so that a node can tell whether a client knows the newest.
    pub versions: [u64; 3],
    /// Client headers that any pool asks for, in lower case.
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
                // The versions are hashes, so a sum identifies the pair.
                *version = version.wrapping_add(*own);
            }
        }
        versions
    }
}

/// The server's facts, with the reason if they may be incomplete.
#[derive(Clone, Debug)]
pub struct SettledFacts {
    /// The current facts.
    pub facts: Arc<ServerFacts>,
    /// Why the facts may be incomplete, and when to ask again; `None` if complete.
    pub lacks: Option<CallFailure>,
}

/// Whether a call may run again after its outcome was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Repeat {
    /// The tool is safe to run again after a loss. Shoal does not journal the call.
    Safe,
    /// The tool may have effects, so the call runs at most once. Its owner holds it, then journals it.
    Never,
}
