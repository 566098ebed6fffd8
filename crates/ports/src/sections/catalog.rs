use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Period, settings};

settings! {
    /// How the server presents itself and its lists.
    #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(default, deny_unknown_fields, expecting = "a table")]
    #[schemars(rename = "Catalog")]
    pub struct CatalogSettings {
        /// Name and version that Shoal reports; by default those of the only pool, or `shoal`.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub server_info: Option<ServerInfo> = None,
        /// Instructions for models, instead of the pools'.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub instructions: Option<String> = None,
        /// Items on a list's page.
        pub page_size: usize = 1_000,
        /// Delay before Shoal announces a changed list, so that all nodes have it.
        pub announce_after: Period = Period::millis(200),
        /// How long modern clients may cache `server/discover`.
        pub discover_ttl: Period = Period::seconds(300),
        /// How long modern clients may cache lists, and how long Shoal caches [each caller's
        /// lists](server-credentials.md#lists-of-each-caller); less if the backend says so.
        pub list_ttl: Period = Period::seconds(60),
        /// Callers that may share cached lists.
        pub list_cache_scope: CacheScope = CacheScope::Public,
        /// How long modern clients may cache resources, unless the backend says otherwise.
        pub read_ttl: Period = Period::ZERO,
        /// Callers that may share cached resources, unless the backend says otherwise.
        pub read_cache_scope: CacheScope = CacheScope::Private,
        /// Offers pools that the configuration does not name. If false, nodes offer a new pool only after they have
        /// read its settings ([reloads](operations.md#reload-a-cluster)).
        pub unnamed_pools: bool = true,
        /// Checks calls' arguments against the tool's `inputSchema`.
        pub validate_arguments: bool = true,
        /// Maximum steps (about one per value) to check a call's arguments. Shoal refuses calls that need more.
        pub validation_steps: u64 = 10_000_000,
    }
}

/// The server's name for itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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

/// Sharing of a copy (`cacheScope`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CacheScope {
    /// Any caller.
    Public,
    /// Only the same principal.
    Private,
}

impl CacheScope {
    /// Returns the protocol's name of the scope.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Public => "public",
            Self::Private => "private",
        }
    }
}
