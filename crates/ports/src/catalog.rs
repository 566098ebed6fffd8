//! What a pool offers, and what the whole server says of itself.

use std::sync::Arc;

use shoal_protocol::{RawJson, RawObject};

use crate::{CallFailure, ListOwner, ListScope, OwnLists, Principal, SessionId};

/// Everything that one pool offers, as its backend described it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PoolCatalog {
    /// `Implementation` of the backend.
    pub server_info: Option<RawJson>,
    /// The backend's instructions for models.
    pub instructions: Option<String>,
    /// `ServerCapabilities` as the backend declared them.
    pub capabilities: RawObjectOrEmpty,
    /// The `Tool` objects, untouched, in the backend's order.
    pub tools: Vec<RawJson>,
    /// The `Resource` objects.
    pub resources: Vec<RawJson>,
    /// The `ResourceTemplate` objects.
    pub resource_templates: Vec<RawJson>,
    /// The `Prompt` objects.
    pub prompts: Vec<RawJson>,
    /// How long the backend lets clients keep its lists (`ttlMs`): tools, resources, resource templates, prompts.
    pub ttl_ms: [Option<u64>; 4],
    /// How often the backend has announced a change of its tools, resources (with templates) and prompts.
    pub generations: [u64; 3],
    /// The headers of clients' requests that the backend's calls are to bring along, in lower case.
    pub headers: Vec<Arc<str>>,
    /// Whose the lists are. Where each caller has its own, the lists here are empty, and the backend answers the list methods
    /// as calls, each with all pages in one.
    pub lists: ListScope,
    /// What could have been a tool and is not, and why, one by one.
    pub left_out: Vec<String>,
    /// Tools whose schemas are listed in less detail than their backend has, and how, one by one.
    pub cut: Vec<String>,
}

/// A JSON object that is `{}` where nothing was said.
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

/// What `initialize` and `server/discover` say of the whole server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerFacts {
    /// `Implementation` of the logical server.
    pub server_info: RawJson,
    /// `ServerCapabilities`, merged from all pools. `resources.subscribe` and the `listChanged` flags are
    /// set wherever the list exists: Shoal serves both itself.
    pub capabilities: RawJson,
    /// Instructions of all pools, joined.
    pub instructions: Option<String>,
    /// Name what the tools, resources (with templates) and prompts are now: others with every change, and
    /// the same on every node that offers the same. So whoever serves a client can tell whether the client
    /// has been told of the newest.
    pub versions: [u64; 3],
    /// The headers of clients' requests that some pool asks for, in lower case.
    pub headers: Arc<[Arc<str>]>,
    /// Who sees other lists.
    pub own: OwnLists,
}

impl ServerFacts {
    /// The [versions](Self::versions) of the lists that a caller sees.
    pub fn versions_of(&self, session: Option<&SessionId>, principal: &Principal) -> [u64; 3] {
        let mut versions = self.versions;
        if self.own.is_empty() {
            return versions;
        }
        let owners = ListOwner::of(session, principal);
        for own in owners.iter().filter_map(|owner| self.own.get(owner)) {
            for (version, own) in versions.iter_mut().zip(own) {
                // They are hashes: a sum of two is no third one.
                *version = version.wrapping_add(*own);
            }
        }
        versions
    }
}

/// The server's facts, with the reason why they may not name everything.
#[derive(Clone, Debug)]
pub struct SettledFacts {
    /// What the server says of itself now.
    pub facts: Arc<ServerFacts>,
    /// Why the server may offer more than the facts name, and when to ask again; `None` where they name everything.
    pub lacks: Option<CallFailure>,
}

/// Whether a call may run again after its outcome was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Repeat {
    /// The tool is safe to run again. Shoal keeps no journal entry for the call, and runs it again after a loss.
    Safe,
    /// The tool may take effect, so that the call runs at most once. Its owner holds it, then journals it.
    Never,
}
