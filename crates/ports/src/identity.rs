use std::sync::{Arc, LazyLock};

use shoal_protocol::StreamId;
use uuid::Uuid;

macro_rules! name {
    ($(#[$doc:meta])* $type:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
        pub struct $type(Arc<str>);

        impl $type {
            /// Makes an id from an existing name.
            pub fn new(name: impl Into<Arc<str>>) -> Self {
                Self(name.into())
            }

            /// Returns the text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl std::fmt::Debug for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

name! {
    /// A legacy session's id. It cannot be guessed, and only the session's principal can use it.
    SessionId
}
name! {
    /// A node's id. A node is one process of the cluster.
    NodeId
}
name! {
    /// A worker's id. A worker is one pool's runtime in one process.
    WorkerId
}
name! {
    /// The caller's name, as decided by the [`Authenticator`](crate::Authenticator).
    Principal
}

impl SessionId {
    /// Draws an id with 122 cryptographically random bits.
    pub fn random() -> Self {
        Self(Uuid::new_v4().simple().to_string().into())
    }
}

impl Principal {
    /// Returns the principal of unauthenticated callers.
    pub fn anonymous() -> Self {
        static NAME: LazyLock<Arc<str>> = LazyLock::new(|| Arc::from("anonymous"));
        Self(NAME.clone())
    }

    /// Returns the principal of the console's operators.
    pub fn console() -> Self {
        Self::new("shoal-console")
    }

    /// Whether Shoal reserves the name, so that credentials must not get it.
    pub fn is_reserved(&self) -> bool {
        [Self::anonymous(), Self::console()].contains(self)
    }
}

/// A call's id. Starting a call with a known id attaches to that call.
#[derive(
    Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
pub struct CallId(Uuid);

impl CallId {
    /// Makes an id. Ids are ordered by time (UUIDv7).
    pub fn generate() -> Self {
        Self(Uuid::now_v7())
    }

    /// Returns the id's bytes, which sort like the ids.
    pub fn as_bytes(&self) -> &[u8; 16] {
        self.0.as_bytes()
    }

    /// Makes an id from its bytes.
    pub fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(Uuid::from_bytes(bytes))
    }

    /// Writes the id as text.
    pub fn write_to(self, text: &mut [u8; 32]) -> &str {
        self.0.simple().encode_lower(text)
    }

    /// Returns the number of the call's stream, random enough to be unique even if the store
    /// forgets streams.
    pub fn stream(self) -> StreamId {
        let [.., a, b, c, d] = *self.0.as_bytes();
        StreamId(u32::from_be_bytes([a, b, c, d]).max(1))
    }
}

impl From<CallId> for DeliveryId {
    fn from(call: CallId) -> Self {
        Self(call.0)
    }
}

impl From<DeliveryId> for CallId {
    fn from(DeliveryId(id): DeliveryId) -> Self {
        Self(id)
    }
}

impl std::str::FromStr for CallId {
    type Err = uuid::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Self)
    }
}

impl std::fmt::Display for CallId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.0.simple())
    }
}

impl std::fmt::Debug for CallId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{self}")
    }
}

/// A delivery of a client's message to a session. An edge repeats a lost delivery under the same
/// id, so that calls do not begin twice. A bound request's call has the same id.
#[derive(
    Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
pub struct DeliveryId(Uuid);

impl DeliveryId {
    /// Makes an id. Ids are ordered by time (UUIDv7).
    pub fn generate() -> Self {
        Self(Uuid::now_v7())
    }

    /// Returns the id's bytes.
    pub fn as_bytes(&self) -> &[u8; 16] {
        self.0.as_bytes()
    }

    /// Makes an id from its bytes.
    pub fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(Uuid::from_bytes(bytes))
    }
}

impl std::fmt::Display for DeliveryId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.0.simple())
    }
}

impl std::fmt::Debug for DeliveryId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{self}")
    }
}

/// Counts the claims of a session. The store refuses writes with an older epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Epoch(pub u64);
