//! What tools keep in their caller's session: small values under keys, as durable as the session.
//!
//! A call sends a [`StateRequest`] to whoever reads its events, and gets the answer as it gets that to a
//! question ([`CallControl::answer`](crate::CallControl::answer)). The owner of the session answers; the client
//! sees none of it.

use std::sync::Arc;

use async_trait::async_trait;
use serde::Serialize;
use serde::de::DeserializeOwned;
use shoal_protocol::{Outcome, RawJson, RawObject, RpcError};
use uuid::Uuid;

/// The bytes that a key may have, at most; it has at least one.
pub const STATE_KEY_BYTES: usize = 128;

/// What a call asks of its session's state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StateRequest {
    /// Reads a value: `{"value": …}`, or `{}` when there is none.
    Get {
        /// Its key.
        key: String,
    },
    /// Writes a value: `{}`, once it is stored as safely as the session itself.
    Set {
        /// Its key.
        key: String,
        /// The value; `None` removes it.
        value: Option<RawJson>,
        /// Names this writing, whoever reads the request and however often: a new owner of the session may
        /// read one again that the owner before it has carried out.
        writing: u64,
    },
    /// Lists the keys, sorted: `{"keys": […]}`.
    Keys,
}

impl StateRequest {
    /// A writing with a name of its own.
    pub fn set(key: impl Into<String>, value: Option<RawJson>) -> Self {
        let (high, low) = Uuid::new_v4().as_u64_pair();
        Self::Set {
            key: key.into(),
            value,
            // Both halves hold bits that are always the same; not in the same places.
            writing: high ^ low.rotate_left(32),
        }
    }

    /// The bytes of its key and value.
    pub fn len(&self) -> usize {
        match self {
            Self::Get { key } => key.len(),
            Self::Set { key, value, .. } => {
                key.len() + value.as_ref().map_or(0, |value| value.len())
            }
            Self::Keys => 0,
        }
    }

    /// Whether it has neither key nor value.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether its key is one.
    ///
    /// # Errors
    /// -32602 for a key that is empty or too long.
    pub fn check(&self) -> Result<(), RpcError> {
        match self {
            Self::Get { key } | Self::Set { key, .. } if key.is_empty() => Err(
                RpcError::invalid_params("the key of a session's state must not be empty"),
            ),
            Self::Get { key } | Self::Set { key, .. } if key.len() > STATE_KEY_BYTES => {
                Err(RpcError::invalid_params(format!(
                    "the key of a session's state has {} bytes; {STATE_KEY_BYTES} are allowed",
                    key.len()
                )))
            }
            _ => Ok(()),
        }
    }
}

/// What a call is told whose caller has no session (2026-07-28 has none).
pub fn no_session() -> RpcError {
    RpcError::invalid_request(
        "the caller has no session to keep state in; keep it under an explicit handle instead, which the \
         tool returns and the caller passes back",
    )
}

/// What a call is told whose value was certainly not kept. Not the code of a call that was not executed: a tool
/// may pass the error on as its own, and it has been executed.
pub fn not_kept(reason: impl std::fmt::Display) -> RpcError {
    let text = format!("the value was not kept: {reason}; try again later");
    RpcError::internal(text).with_data(RawJson::from_static(r#"{"kept":false}"#))
}

/// What a call is told whose value may have been kept.
pub fn perhaps_kept(reason: impl std::fmt::Display) -> RpcError {
    let text = format!("whether the value was kept is not known: {reason}");
    RpcError::internal(text).with_data(RawJson::from_static(r#"{"kept":null}"#))
}

/// A running call's way to the state of its caller's session, for tools. Cheap to clone.
///
/// The requests of one call are carried out one after the other, in the order in which they were made; those
/// of several calls of one session in one order that all of them see. Values are JSON. The node that owns the
/// session sets the limits (`[session]` in the configuration).
///
/// A future that is dropped leaves open whether the value was written.
#[derive(Clone)]
pub struct SessionState(Arc<dyn StateDoor>);

/// What stands behind [`SessionState`].
#[async_trait]
pub trait StateDoor: Send + Sync {
    /// Has a request answered.
    async fn request(&self, request: StateRequest) -> Outcome;
}

impl SessionState {
    /// The state behind this door.
    pub fn new(door: Arc<dyn StateDoor>) -> Self {
        Self(door)
    }

    /// The value of a key; `None` when there is none.
    ///
    /// # Errors
    /// When the caller has no session, the key is none, the session cannot be reached, or the value is not a `T`.
    pub async fn get<T: DeserializeOwned>(&self, key: &str) -> Result<Option<T>, RpcError> {
        let request = StateRequest::Get {
            key: key.to_owned(),
        };
        let Some(value) = self.ask(request).await?.get("value") else {
            return Ok(None);
        };
        value.read().map(Some).map_err(|error| {
            RpcError::internal(format!(
                "the value under {key:?} is not of the expected type: {error}"
            ))
        })
    }

    /// Writes a value, over the one before. It is stored when this returns.
    ///
    /// # Errors
    /// As [`SessionState::get`]; -32602 for a value that is too big, -32600 when the session's limit is reached,
    /// -32603 when the store is away; the error's data says then whether the value was kept: `{"kept": false}`, or
    /// `{"kept": null}` where that is not known.
    pub async fn set(&self, key: &str, value: &(impl Serialize + Sync)) -> Result<(), RpcError> {
        let text = serde_json::to_vec(value)
            .map_err(|error| RpcError::internal(format!("the value is not JSON: {error}")))?;
        let value = RawJson::from_valid(text.into());
        self.ask(StateRequest::set(key, Some(value))).await?;
        Ok(())
    }

    /// Removes a value, if there is one. It is gone from the store when this returns.
    ///
    /// # Errors
    /// As [`SessionState::set`].
    pub async fn remove(&self, key: &str) -> Result<(), RpcError> {
        self.ask(StateRequest::set(key, None)).await?;
        Ok(())
    }

    /// The keys that have a value, sorted.
    ///
    /// # Errors
    /// As [`SessionState::get`].
    pub async fn keys(&self) -> Result<Vec<String>, RpcError> {
        let keys = self.ask(StateRequest::Keys).await?.get("keys");
        keys.and_then(|keys| keys.read().ok()).ok_or_else(malformed)
    }

    async fn ask(&self, request: StateRequest) -> Result<RawObject, RpcError> {
        match self.0.request(request).await {
            Outcome::Result(result) => RawObject::of(&result).ok_or_else(malformed),
            Outcome::Error(error) => Err(error),
        }
    }
}

fn malformed() -> RpcError {
    RpcError::internal("the session's answer about its state cannot be read")
}

impl std::fmt::Debug for SessionState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SessionState")
    }
}

#[cfg(test)]
mod tests {
    use super::{STATE_KEY_BYTES, StateRequest};

    #[test]
    fn keys_are_bounded() {
        for (bytes, fits) in [
            (0, false),
            (1, true),
            (STATE_KEY_BYTES, true),
            (STATE_KEY_BYTES + 1, false),
        ] {
            let key = "k".repeat(bytes);
            assert_eq!(StateRequest::Get { key: key.clone() }.check().is_ok(), fits);
            assert_eq!(StateRequest::set(key, None).check().is_ok(), fits);
        }
        assert!(StateRequest::Keys.check().is_ok());
    }

    #[test]
    fn every_writing_has_a_name_of_its_own() {
        assert_ne!(StateRequest::set("k", None), StateRequest::set("k", None));
    }
}
