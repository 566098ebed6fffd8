use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shoal_dispatch::{CacheScope, Config as Dispatch, ServerInfo as Info};
use shoal_edge::Timing;
use shoal_ports::settings;

use super::Period;

settings! {
    /// How the server presents itself and its lists.
    #[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
    #[serde(default, deny_unknown_fields, expecting = "a table")]
    pub struct Catalog {
        /// Name and version that Shoal reports; by default those of the only pool, or `shoal`.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub server_info: Option<ServerInfo> = None,
        /// Instructions for models, instead of the pools'.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub instructions: Option<String> = None,
        /// Items on a list's page.
        pub page_size: usize = Dispatch::default().page_size,
        /// Delay before Shoal announces a changed list, so that all nodes have it.
        pub announce_after: Period = Period::millis(200),
        /// How long modern clients may cache `server/discover`.
        pub discover_ttl: Period = Timing::default().discover_ttl.into(),
        /// How long modern clients may cache lists (less if the backend says so), and Shoal each caller's lists.
        pub list_ttl: Period = Dispatch::default().list_ttl.into(),
        /// Callers that may share cached lists.
        pub list_cache_scope: CacheScope = Dispatch::default().list_cache_scope,
        /// How long modern clients may cache resources, unless the backend says otherwise.
        pub read_ttl: Period = Dispatch::default().read_ttl.into(),
        /// Callers that may share cached resources, unless the backend says otherwise.
        pub read_cache_scope: CacheScope = Dispatch::default().read_cache_scope,
        /// Offers pools that the configuration does not name. If false, a pool waits for the file that names it, the
        /// policy rules and the quotas ([reloads](operations.md#changing-the-configuration)).
        pub unnamed_pools: bool = Dispatch::default().unnamed_pools,
        /// Checks calls' arguments against the tool's `inputSchema`.
        pub validate_arguments: bool = Dispatch::default().validate_arguments,
        /// Maximum steps (about one per value) to check a call's arguments. Shoal refuses calls that need more.
        pub validation_steps: u64 = Dispatch::default().validation_steps,
    }
}

/// The server's name for itself.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a table with name and version")]
pub struct ServerInfo {
    /// Name for programs.
    pub name: String,
    /// Version of the server.
    pub version: String,
    /// Name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Purpose of the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// URL of a page about the server.
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
