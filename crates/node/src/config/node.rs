use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shoal_ports::settings;

use super::{Period, StoreAddress};

settings! {
    /// The node's name, roles, store and lease.
    #[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
    #[serde(default, deny_unknown_fields, expecting = "a table")]
    pub struct Node {
        /// Prefix of the node's name, such as the pod's name. Shoal appends a random part.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub name: Option<String> = None,
        /// `edge` serves clients, `session` owns legacy sessions, `worker` runs tools.
        pub roles: Vec<Role> = Role::ALL.to_vec(),
        /// Store of sessions, streams and journals. `"memory"` is lost with the process. To share sessions:
        /// `redis://user:password@host:port`, `rediss://…` (TLS), `redis+cluster://host:port,host:port` or
        /// `redis+sentinel://host:port,host:port/master-name`.
        #[schemars(with = "String")]
        pub store: StoreAddress = StoreAddress::new(MEMORY),
        /// How long the node owns its sessions after each renewal of its lease.
        pub lease: Period = Period::seconds(6),
    }
}

/// The value of `node.store` for the embedded store.
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
    /// All roles.
    pub const ALL: [Self; 3] = [Self::Edge, Self::Session, Self::Worker];

    /// Returns the name in settings.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Edge => "edge",
            Self::Session => "session",
            Self::Worker => "worker",
        }
    }
}

impl Node {
    /// Whether the process has this role.
    pub fn is(&self, role: Role) -> bool {
        self.roles.contains(&role)
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
