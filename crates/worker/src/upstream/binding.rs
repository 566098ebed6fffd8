use std::sync::Arc;

use shoal_ports::{Caller, ClientInfo};
use shoal_protocol::task::TASKS;
use shoal_protocol::{RawJson, RawObject};

const CLIENT_INFO: &str = concat!(
    r#"{"name":"shoal","version":""#,
    env!("CARGO_PKG_VERSION"),
    r#""}"#
);

/// Client extensions that Shoal announces on shared connections: only MCP Apps. A server offers app
/// pages only to clients that announce this extension; clients without it still get text.
const SHARED_EXTENSIONS: &str =
    r#"{"io.modelcontextprotocol/ui":{"mimeTypes":["text/html;profile=mcp-app"]}}"#;

#[derive(Clone, Debug)]
pub(crate) enum ConnectionBinding {
    Shared {
        capabilities: RawJson,
        roots: Roots,
        caller: Option<Arc<Caller>>,
    },
    Session {
        capabilities: RawJson,
        client_info: Option<ClientInfo>,
        caller: Arc<Caller>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Roots {
    None,
    /// The roots of the client whose call runs alone here.
    OfTheCall,
    /// The roots of any of the owner's callers. The server may ask before the first call.
    OfTheOwner,
}

impl ConnectionBinding {
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

    pub(crate) fn of_an_owner(&self) -> Self {
        let mut own = self.clone();
        if let Self::Shared { roots, .. } = &mut own {
            *roots = Roots::OfTheOwner;
        }
        own
    }

    pub(crate) fn declares_roots(&self) -> bool {
        let (Self::Shared { capabilities, .. } | Self::Session { capabilities, .. }) = self;
        capabilities.member("roots").is_some()
    }

    pub(crate) fn gives_roots_early(&self) -> bool {
        let is_owned = match self {
            Self::Shared { roots, .. } => *roots == Roots::OfTheOwner,
            Self::Session { .. } => true,
        };
        is_owned && self.declares_roots()
    }

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
        // Shoal does not report changed roots, so `listChanged` is left out.
        if declared.has("roots") {
            capabilities.set("roots", RawJson::from_static("{}"));
        }
        Self::Session {
            capabilities: capabilities.to_json(),
            client_info: caller.client_info.clone(),
            caller: caller.clone(),
        }
    }

    pub(crate) fn caller(&self) -> Option<&Arc<Caller>> {
        match self {
            Self::Shared { caller, .. } => caller.as_ref(),
            Self::Session { caller, .. } => Some(caller),
        }
    }

    pub(crate) fn capabilities(&self) -> RawJson {
        match self {
            Self::Shared { capabilities, .. } | Self::Session { capabilities, .. } => {
                capabilities.clone()
            }
        }
    }

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

/// The client's extensions without tasks, which Shoal handles itself.
pub(crate) fn extensions_of(caller: &Caller) -> Option<RawJson> {
    let mut declared = RawObject::of(&caller.capabilities.member("extensions")?)?;
    declared.remove(TASKS);
    (!declared.is_empty()).then(|| declared.to_json())
}
