use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shoal_dispatch::PoolConfig as Offer;
use shoal_ports::settings;
use shoal_worker::{HttpConfig, OpenApiConfig, PoolConfig as Limits, StdioConfig};

settings! {
    /// Equal workers for the same tools, resources and prompts.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
    #[serde(default, deny_unknown_fields, expecting = "a table with backend")]
    #[schemars(extend("required" = ["backend"]))]
    pub struct Pool {
        /// Server that runs the calls: one of the tables `stdio`, `http` and `openapi` below, or:
        #[serde(skip_serializing_if = "Backend::is_unset")]
        pub backend: Backend = Backend::default(),
        /// The tools, prompts and resources, and how Shoal calls them.
        #[serde(flatten)]
        pub offer: Offer = Offer::default(),
        /// Limits of each worker.
        #[serde(flatten)]
        pub limits: Limits = Limits::default(),
    }
}

/// Server that runs the calls of a pool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Backend {
    /// Demo server.
    Demo,
    /// Fixtures of MCP's conformance suite.
    Conformance,
    /// The server in your own program ([Rust](rust.md)). Only workers must run this program.
    Handler,
    /// An MCP server that speaks over its standard input and output.
    Stdio(Box<StdioConfig>),
    /// An MCP server that is reached by a URL.
    Http(Box<HttpConfig>),
    /// A service over HTTP that an OpenAPI document describes.
    OpenApi(Box<OpenApiConfig>),
}

impl Default for Backend {
    /// Returns a placeholder for a backend that is not set yet.
    fn default() -> Self {
        Self::Stdio(Box::default())
    }
}

impl Backend {
    pub(crate) fn is_handler(&self) -> bool {
        matches!(self, Self::Handler)
    }

    pub(super) fn is_unset(&self) -> bool {
        matches!(self, Self::Stdio(stdio) if stdio.command.is_empty())
    }
}

impl Pool {
    /// Creates a pool with defaults.
    pub fn of(backend: Backend) -> Self {
        Self {
            backend,
            ..Self::default()
        }
    }

    /// Creates a worker's settings. `rejoin` is how long its links may be down.
    pub fn to_worker(&self, name: &str, rejoin: Duration) -> Limits {
        Limits {
            pool: name.into(),
            deserted_after: rejoin * 2,
            ..self.limits.clone()
        }
    }
}
