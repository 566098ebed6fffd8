//! Small values that tools keep in a session, for as long as it lives.
//!
//! A call sends a [`StateRequest`] among its events, and the session's owner answers through
//! [`CallControl::answer`](crate::CallControl::answer).

use std::sync::Arc;

use async_trait::async_trait;
use serde::Serialize;
use serde::de::DeserializeOwned;
use shoal_protocol::{Outcome, RawJson, RawObject, RpcError};
use uuid::Uuid;

/// Maximum bytes of a key.
pub const STATE_KEY_BYTES: usize = 128;

/// A call's request to read or write the state of its session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StateRequest {
    /// Reads a value. The answer is `{"value": …}`, or `{}` if there is none.
    Get {
        /// The key.
        key: String,
    },
    /// Writes a value. The answer is `{}`, once the value is stored.
    Set {
        /// The key.
        key: String,
        /// The value; `None` removes the old one.
        value: Option<RawJson>,
        /// The write's id. A new session owner gets the write again under the same id.
        writing: u64,
    },
    /// Lists the keys, sorted. The answer is `{"keys": […]}`.
    Keys,
}

impl StateRequest {
    /// Makes a write with a new id.
    pub fn set(key: impl Into<String>, value: Option<RawJson>) -> Self {
        let (high, low) = Uuid::new_v4().as_u64_pair();
        Self::Set {
            key: key.into(),
            value,
            // The halves' fixed bits do not overlap, so every bit of the result is random.
            writing: high ^ low.rotate_left(32),
        }
    }

    /// Counts the bytes of key and value.
    pub fn len(&self) -> usize {
        match self {
            Self::Get { key } => key.len(),
            Self::Set { key, value, .. } => {
                key.len() + value.as_ref().map_or(0, |value| value.len())
            }
            Self::Keys => 0,
        }
    }

    /// Whether key and value are empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Checks the key. Fails with -32602 if it is empty or too long.
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

/// Returns the error for a caller without a session.
pub fn no_session() -> RpcError {
    RpcError::invalid_request(
        "the caller has no session to keep state in; keep it under an explicit handle instead, which the \
         tool returns and the caller passes back",
    )
}

/// Returns the error for a value that was not stored. A tool may pass this error on, so the code must not mean "not
/// executed".
pub fn not_kept(reason: impl std::fmt::Display) -> RpcError {
    let text = format!("the value was not kept: {reason}; try again later");
    RpcError::internal(text).with_data(RawJson::from_static(r#"{"kept":false}"#))
}

/// Returns the error for a value that may have been stored.
pub fn perhaps_kept(reason: impl std::fmt::Display) -> RpcError {
    let text = format!("whether the value was kept is not known: {reason}");
    RpcError::internal(text).with_data(RawJson::from_static(r#"{"kept":null}"#))
}

/// A running call's access to its session's state. Cheap to clone.
///
/// A call's requests run in order, and all calls of the session see one order. The limits of
/// `[session]` apply.
///
/// # Cancel safety
/// A dropped future may still write the value.
#[derive(Clone)]
pub struct SessionState(Arc<dyn StateDoor>);

/// Carries requests to the session's owner.
#[async_trait]
pub trait StateDoor: Send + Sync {
    /// Sends a request and awaits its answer.
    async fn request(&self, request: StateRequest) -> Outcome;
}

impl SessionState {
    /// Makes state that sends requests through `door`.
    pub fn new(door: Arc<dyn StateDoor>) -> Self {
        Self(door)
    }

    /// Reads a value.
    ///
    /// # Errors
    /// If the call has no session, the session cannot be reached, the key is invalid, or the value is not a `T`.
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

    /// Writes a value and returns once it is stored.
    ///
    /// # Errors
    /// As [`SessionState::get`]; -32602 for a value that is too big, -32600 at the session's limit, -32603 if the store
    /// cannot be reached. The error's data is `{"kept": false}`, or `{"kept": null}` if unknown.
    pub async fn set(&self, key: &str, value: &(impl Serialize + Sync)) -> Result<(), RpcError> {
        let text = serde_json::to_vec(value)
            .map_err(|error| RpcError::internal(format!("the value is not JSON: {error}")))?;
        let value = RawJson::from_valid(text.into());
        self.ask(StateRequest::set(key, Some(value))).await?;
        Ok(())
    }

    /// Removes a value, also from the store.
    ///
    /// # Errors
    /// As [`SessionState::set`].
    pub async fn remove(&self, key: &str) -> Result<(), RpcError> {
        self.ask(StateRequest::set(key, None)).await?;
        Ok(())
    }

    /// Lists the keys, sorted.
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
