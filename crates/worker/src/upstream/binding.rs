//! For whom a connection is, and what it is told of its client.

use std::sync::Arc;

use shoal_ports::{Caller, ClientInfo};
use shoal_protocol::task::TASKS;
use shoal_protocol::{RawJson, RawObject};

const CLIENT_INFO: &str = concat!(
    r#"{"name":"shoal","version":""#,
    env!("CARGO_PKG_VERSION"),
    r#""}"#
);

/// The extensions of clients that a shared server is told of. Apps: a server must answer in text as well, so a client without it
/// loses nothing, and a server that is not told offers nobody its pages.
const SHARED_EXTENSIONS: &str =
    r#"{"io.modelcontextprotocol/ui":{"mimeTypes":["text/html;profile=mcp-app"]}}"#;

/// For whom a connection is, and so what it is told of its client.
#[derive(Clone, Debug)]
pub(crate) enum Binding {
    /// For everybody.
    Shared {
        /// What it is told that its client can do.
        capabilities: RawJson,
        /// The roots that it is given.
        roots: Roots,
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

/// The roots that a connection is given which callers share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Roots {
    /// Nobody's.
    None,
    /// Those of the client whose call runs there alone.
    OfTheCall,
    /// Those of whoever calls, since all callers are one; also when the server asks before the first call.
    OfTheOwner,
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
        capabilities.set("extensions", RawJson::from_static(SHARED_EXTENSIONS));
        Self::Shared {
            capabilities: capabilities.to_json(),
            roots: match shares_roots {
                true => Roots::OfTheCall,
                false => Roots::None,
            },
            caller: None,
        }
    }

    /// The same for callers who share nothing with others.
    pub(crate) fn of_an_owner(&self) -> Self {
        let mut own = self.clone();
        if let Self::Shared { roots, .. } = &mut own {
            *roots = Roots::OfTheOwner;
        }
        own
    }

    /// Whether the server was told that there may be roots.
    pub(crate) fn declares_roots(&self) -> bool {
        let (Self::Shared { capabilities, .. } | Self::Session { capabilities, .. }) = self;
        capabilities.member("roots").is_some()
    }

    /// Whether the server may ask for roots when there is no call yet.
    pub(crate) fn gives_roots_early(&self) -> bool {
        let is_owned = match self {
            Self::Shared { roots, .. } => *roots == Roots::OfTheOwner,
            Self::Session { .. } => true,
        };
        is_owned && self.declares_roots()
    }

    /// The same for the callers of one principal, of whom this is one: all have its extensions.
    pub(crate) fn for_principal_of(&self, opener: &Arc<Caller>) -> Self {
        let mut own = self.clone();
        if let Self::Shared {
            caller,
            capabilities,
            ..
        } = &mut own
        {
            let mut declared = RawObject::of(capabilities).unwrap_or_default();
            declared.remove("extensions");
            if let Some(extensions) = extensions_of(opener) {
                declared.set("extensions", extensions);
            }
            *capabilities = declared.to_json();
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
        if let Some(extensions) = extensions_of(caller) {
            capabilities.set("extensions", extensions);
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

/// The extensions that a caller's client has declared, but for tasks, which are Shoal's business; `None` if there is none.
pub(crate) fn extensions_of(caller: &Caller) -> Option<RawJson> {
    let mut declared = RawObject::of(&caller.capabilities.member("extensions")?)?;
    declared.remove(TASKS);
    (!declared.is_empty()).then(|| declared.to_json())
}
