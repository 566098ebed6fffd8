//! For whom a process runs, and what it is told of its client.

use shoal_ports::Caller;
use shoal_protocol::{RawJson, RawObject};

use super::config::{Isolation, StdioConfig};

const CLIENT_INFO: &str = concat!(
    r#"{"name":"shoal","version":""#,
    env!("CARGO_PKG_VERSION"),
    r#""}"#
);

/// For whom a process runs, and so what it is told of its client.
#[derive(Clone, Debug)]
pub(super) enum Binding {
    /// For everybody.
    Shared {
        /// What it is told that its client can do.
        capabilities: RawJson,
        /// Whether it is given roots.
        shares_roots: bool,
    },
    /// For one legacy session.
    Session {
        /// What of the client's capabilities can be carried to a process.
        capabilities: RawJson,
        /// How the client named itself.
        client_info: Option<RawJson>,
    },
}

impl Binding {
    /// A process for everybody. Where sessions have processes of their own, its lists are theirs too,
    /// and servers offer tools only to clients with the capabilities that these need.
    pub(super) fn shared(config: &StdioConfig) -> Self {
        let per_session = config.isolation == Isolation::Session;
        let mut capabilities = RawObject::default();
        if config.may_ask || per_session {
            capabilities.set("sampling", RawJson::from_static("{}"));
            let modes = RawJson::from_static(r#"{"form":{},"url":{}}"#);
            capabilities.set("elicitation", modes);
        }
        if config.share_roots || per_session {
            capabilities.set("roots", RawJson::from_static("{}"));
        }
        Self::Shared {
            capabilities: capabilities.to_json(),
            shares_roots: config.share_roots,
        }
    }

    /// A process for this caller's session.
    pub(super) fn session_of(caller: &Caller) -> Self {
        let declared = RawObject::of(&caller.capabilities).unwrap_or_default();
        let mut capabilities = RawObject::default();
        for name in ["sampling", "elicitation", "experimental"] {
            if let Some(capability) = declared.get(name) {
                capabilities.set(name, capability);
            }
        }
        // Without `listChanged`: Shoal does not tell processes of changed roots.
        if declared.has("roots") {
            capabilities.set("roots", RawJson::from_static("{}"));
        }
        Self::Session {
            capabilities: capabilities.to_json(),
            client_info: caller.client_info.clone(),
        }
    }

    /// `ClientCapabilities` for requests of Shoal's own and for `initialize`.
    pub(super) fn capabilities(&self) -> RawJson {
        match self {
            Self::Shared { capabilities, .. } | Self::Session { capabilities, .. } => {
                capabilities.clone()
            }
        }
    }

    /// `Implementation` likewise.
    pub(super) fn client_info(&self) -> RawJson {
        match self {
            Self::Session {
                client_info: Some(info),
                ..
            } => info.clone(),
            _ => RawJson::from_static(CLIENT_INFO),
        }
    }
}
