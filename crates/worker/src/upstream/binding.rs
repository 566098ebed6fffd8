//! For whom a connection is, and what it is told of its client.

use std::sync::Arc;

use shoal_ports::{Caller, ClientInfo};
use shoal_protocol::{RawJson, RawObject};

const CLIENT_INFO: &str = concat!(
    r#"{"name":"shoal","version":""#,
    env!("CARGO_PKG_VERSION"),
    r#""}"#
);

/// For whom a connection is, and so what it is told of its client.
#[derive(Clone, Debug)]
pub(crate) enum Binding {
    /// For everybody.
    Shared {
        /// What it is told that its client can do.
        capabilities: RawJson,
        /// Whether it is given roots.
        shares_roots: bool,
        /// One of the principal whose callers alone share it.
        caller: Option<Arc<Caller>>,
    },
    /// For one legacy session.
    Session {
        /// What of the client's capabilities can be carried to a server.
        capabilities: RawJson,
        /// How the client named itself.
        client_info: Option<ClientInfo>,
        /// Who opened it.
        caller: Arc<Caller>,
    },
}

impl Binding {
    /// A connection for everybody, whose server may ask for these things.
    pub(crate) fn shared(may_ask: bool, may_ask_for_roots: bool, shares_roots: bool) -> Self {
        let mut capabilities = RawObject::default();
        if may_ask {
            capabilities.set("sampling", RawJson::from_static("{}"));
            let modes = RawJson::from_static(r#"{"form":{},"url":{}}"#);
            capabilities.set("elicitation", modes);
        }
        if may_ask_for_roots {
            capabilities.set("roots", RawJson::from_static("{}"));
        }
        Self::Shared {
            capabilities: capabilities.to_json(),
            shares_roots,
            caller: None,
        }
    }

    /// The same for the callers of one principal, of whom this is one.
    pub(crate) fn for_principal_of(&self, opener: &Arc<Caller>) -> Self {
        let mut own = self.clone();
        if let Self::Shared { caller, .. } = &mut own {
            *caller = Some(opener.clone());
        }
        own
    }

    /// A connection for this caller's session.
    pub(crate) fn session_of(caller: &Arc<Caller>) -> Self {
        let declared = RawObject::of(&caller.capabilities).unwrap_or_default();
        let mut capabilities = RawObject::default();
        for name in ["sampling", "elicitation", "experimental"] {
            if let Some(capability) = declared.get(name) {
                capabilities.set(name, capability);
            }
        }
        // Without `listChanged`: Shoal does not tell servers of changed roots.
        if declared.has("roots") {
            capabilities.set("roots", RawJson::from_static("{}"));
        }
        Self::Session {
            capabilities: capabilities.to_json(),
            client_info: caller.client_info.clone(),
            caller: caller.clone(),
        }
    }

    /// Who opened it; `None` where it is for everybody.
    pub(crate) fn caller(&self) -> Option<&Arc<Caller>> {
        match self {
            Self::Shared { caller, .. } => caller.as_ref(),
            Self::Session { caller, .. } => Some(caller),
        }
    }

    /// `ClientCapabilities` for requests of Shoal's own and for `initialize`.
    pub(crate) fn capabilities(&self) -> RawJson {
        match self {
            Self::Shared { capabilities, .. } | Self::Session { capabilities, .. } => {
                capabilities.clone()
            }
        }
    }

    /// `Implementation` likewise.
    pub(crate) fn client_info(&self) -> RawJson {
        match self {
            Self::Session {
                client_info: Some(info),
                ..
            } => info.as_json().clone(),
            _ => RawJson::from_static(CLIENT_INFO),
        }
    }
}
