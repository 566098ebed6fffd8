//! `[node]`: what this process is to its cluster.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Period;

/// What this process is to its cluster.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct Node {
    /// The process's name in the cluster. Unset, it is made up at each start; two processes must
    /// never share one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What the process does. This version has no transport between processes, so all three run
    /// together.
    pub roles: Vec<Role>,
    /// Where sessions, streams and journals are kept. `"memory"` keeps them in the process and loses
    /// them with it; it is the only store of this version.
    pub store: String,
    /// How long the node owns its sessions without renewing its lease; it renews at a third of that.
    pub lease: Period,
}

impl Default for Node {
    fn default() -> Self {
        Self {
            name: None,
            roles: Role::ALL.to_vec(),
            store: MEMORY.to_owned(),
            lease: Period::seconds(6),
        }
    }
}

/// The embedded store.
pub const MEMORY: &str = "memory";

/// A part of the server that a process can run.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// HTTP in, SSE out.
    Edge,
    /// Legacy sessions.
    Session,
    /// Tools, resources and prompts.
    Worker,
}

impl Role {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Edge, Self::Session, Self::Worker];

    /// Its name in settings.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Edge => "edge",
            Self::Session => "session",
            Self::Worker => "worker",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Role {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|role| role.as_str() == text)
            .ok_or_else(|| format!("{text:?} is no role: use edge, session or worker"))
    }
}
