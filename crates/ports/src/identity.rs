//! Names of the things that move between nodes.

use std::sync::{Arc, LazyLock};

use shoal_protocol::StreamId;
use uuid::Uuid;

macro_rules! name {
    ($(#[$doc:meta])* $type:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
        pub struct $type(Arc<str>);

        impl $type {
            /// Takes a name that came from elsewhere.
            pub fn new(name: impl Into<Arc<str>>) -> Self {
                Self(name.into())
            }

            /// The name.
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
    /// A legacy session. Unguessable: whoever knows it and is its principal may use it.
    SessionId
}
name! {
    /// A process of the cluster.
    NodeId
}
name! {
    /// A worker: one pool's runtime in one process.
    WorkerId
}
name! {
    /// Who is calling, as the [`Authenticator`](crate::Authenticator) named them.
    Principal
}

impl SessionId {
    /// A new id with 122 bits of a cryptographic random generator that the operating system seeds.
    pub fn random() -> Self {
        Self(Uuid::new_v4().simple().to_string().into())
    }
}

impl Principal {
    /// Everybody, where no authentication is configured.
    pub fn anonymous() -> Self {
        static NAME: LazyLock<Arc<str>> = LazyLock::new(|| Arc::from("anonymous"));
        Self(NAME.clone())
    }

    /// Operators who use the console.
    pub fn console() -> Self {
        Self::new("shoal-console")
    }

    /// Whether Shoal itself is called so. No credentials may stand for it: it may have limits of its own, or none.
    pub fn is_reserved(&self) -> bool {
        [Self::anonymous(), Self::console()].contains(self)
    }
}

/// One call of a tool, resource, prompt or completion; starting a known id is attaching to it.
#[derive(
    Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
pub struct CallId(Uuid);

impl CallId {
    /// A new id, ordered by time (UUIDv7).
    pub fn generate() -> Self {
        Self(Uuid::now_v7())
    }

    /// The id's 16 bytes; they sort as the ids do.
    pub fn as_bytes(&self) -> &[u8; 16] {
        self.0.as_bytes()
    }

    /// The id of these bytes.
    pub fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(Uuid::from_bytes(bytes))
    }

    /// The id as text, as it is displayed, in a buffer of the caller's.
    pub fn write_to(self, text: &mut [u8; 32]) -> &str {
        self.0.simple().encode_lower(text)
    }

    /// A number for a stream that is opened for the call. It is of the id's random part, so that it comes by chance only
    /// once again, whatever a store remembers.
    pub fn stream(self) -> StreamId {
        let [.., a, b, c, d] = *self.0.as_bytes();
        StreamId(u32::from_be_bytes([a, b, c, d]).max(1))
    }
}

impl From<CallId> for DeliveryId {
    /// The delivery of a request whose call has that id.
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

/// One posting of a body by an edge, so that an edge that lost the owner before the answer can deliver
/// again without anything being begun twice. The call of a single request that its edge has planned has the same id.
#[derive(
    Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
pub struct DeliveryId(Uuid);

impl DeliveryId {
    /// A new id, ordered by time (UUIDv7).
    pub fn generate() -> Self {
        Self(Uuid::now_v7())
    }

    /// The id's 16 bytes.
    pub fn as_bytes(&self) -> &[u8; 16] {
        self.0.as_bytes()
    }

    /// The id of these bytes.
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

/// The ownership generation of a session. Every durable write carries it; the store refuses a write
/// of an older one, so that a former owner can do no harm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Epoch(pub u64);
