//! `[catalog]`: what the server tells of itself and of what it offers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shoal_dispatch::{CacheScope, Config as Dispatch, ServerInfo as Info};
use shoal_edge::Timing;
use shoal_ports::settings;

use super::Period;

settings! {
    /// What the server tells of itself and of what it offers.
    #[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
    #[serde(default, deny_unknown_fields, expecting = "a table")]
    pub struct Catalog {
        /// What the server calls itself: `{ name = "tools", version = "1.0" }`, with `title`, `description`
        /// and `website_url` if you like. Unset, it is what the pool says if there is just one, else the
        /// name `shoal`.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub server_info: Option<ServerInfo> = None,
        /// Instructions for models, in place of the pools' own.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub instructions: Option<String> = None,
        /// Items on one page of a list.
        pub page_size: usize = Dispatch::default().page_size,
        /// How long Shoal waits before it tells clients that a list has changed, so that every node knows the new list
        /// when a client fetches it. Only if processes share sessions.
        pub announce_after: Period = Period::millis(200),
        /// How long a modern client may keep the answer to `server/discover`.
        pub discover_ttl: Period = Timing::default().discover_ttl.into(),
        /// How long a modern client may keep a list; shorter where a pool's backend says so.
        /// Also how long Shoal believes what a server lists to one caller.
        pub list_ttl: Period = Dispatch::default().list_ttl.into(),
        /// Who may share a list that was kept.
        pub list_cache_scope: CacheScope = Dispatch::default().list_cache_scope,
        /// How long a modern client may keep a resource, where its backend says nothing.
        pub read_ttl: Period = Dispatch::default().read_ttl.into(),
        /// Who may share a resource that was kept, where its backend says nothing.
        pub read_cache_scope: CacheScope = Dispatch::default().read_cache_scope,
        /// Offers pools that this process's configuration does not name, with the defaults. Edges and session nodes offer a pool
        /// that is not named only if this is true. With false, a new pool takes no call before the node has read the file that names it, and the
        /// policy rules and quotas that came with it ([reloads](operations.md#changing-the-configuration)).
        pub unnamed_pools: bool = Dispatch::default().unnamed_pools,
        /// Checks arguments against a tool's `inputSchema` before a worker sees them.
        pub validate_arguments: bool = Dispatch::default().validate_arguments,
        /// How many steps the check of one call's arguments may take; a call whose arguments need more is refused. A step is
        /// about one look at one value. What takes more than 20,000 is checked on threads of its own.
        pub validation_steps: u64 = Dispatch::default().validation_steps,
    }
}

/// The server's name for itself.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a table with name and version")]
pub struct ServerInfo {
    /// The name for programs.
    pub name: String,
    /// The version.
    pub version: String,
    /// The name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What the server is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Where to read more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub website_url: Option<String>,
}

impl From<&ServerInfo> for Info {
    fn from(info: &ServerInfo) -> Self {
        Self {
            name: info.name.clone(),
            version: info.version.clone(),
            title: info.title.clone(),
            description: info.description.clone(),
            website_url: info.website_url.clone(),
        }
    }
}
