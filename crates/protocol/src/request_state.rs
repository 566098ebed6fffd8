//! Sealed `requestState`, which the client carries between requests.
//!
//! The client counts as an attacker (2026-07-28, MRTR, Server Requirements), so the state is encrypted, authenticated,
//! and bound to its principal and request. The state also expires, except that of a parked call, whose wait the worker
//! limits.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chacha20poly1305::aead::{Aead, KeyInit};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use rand::RngCore as _;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::{RawJson, RequestDigest};

/// The version of the sealed format, its first byte.
const FORMAT: u8 = 1;
const KEY_ID_BYTES: usize = 4;
const NONCE_BYTES: usize = 24;
const MAX_SEALED_BYTES: usize = 1 << 20;

/// A sealed state's content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestState {
    /// The principal whose client received the state.
    pub principal: String,
    /// The state's end, in seconds since 1970 by the sealing node's clock.
    pub expires_at: u64,
    /// The request's digest.
    pub digest: RequestDigest,
    /// How the next request continues.
    pub continuation: Continuation,
}

/// How a request continues.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Continuation {
    /// A call waits on a worker for answers.
    Parked {
        /// The call's id.
        call: String,
        /// Digests of the call's questions by key, because a call that runs again may ask others. Empty in older
        /// releases' states.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        asked: BTreeMap<String, RequestDigest>,
    },
    /// The backend has its own state and is called again.
    Backend {
        /// The backend's `requestState`, if any.
        state: Option<String>,
        /// The call that ended with a question; `None` in older releases' states.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        call: Option<String>,
    },
    /// A person must agree before the call starts.
    Approval {
        /// The call to start.
        call: String,
        /// The call's bound worker, if any.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        worker: Option<String>,
        /// Incarnation and number of that worker's ledger.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ledger: Option<(u64, u64)>,
    },
}

/// A continuation's kind, for logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StateKind {
    /// [`Continuation::Parked`]
    Parked,
    /// [`Continuation::Backend`]
    Backend,
    /// [`Continuation::Approval`]
    Approval,
}

impl Continuation {
    /// Returns the kind.
    pub fn kind(&self) -> StateKind {
        match self {
            Self::Parked { .. } => StateKind::Parked,
            Self::Backend { .. } => StateKind::Backend,
            Self::Approval { .. } => StateKind::Approval,
        }
    }
}

/// A key that seals and opens states.
#[derive(Clone)]
pub struct SealKey {
    id: [u8; KEY_ID_BYTES],
    cipher: XChaCha20Poly1305,
}

impl SealKey {
    /// Derives the key from a secret with at least 16 random bytes.
    pub fn from_secret(secret: &[u8]) -> Self {
        let key = Sha256::new()
            .chain_update(b"shoal request state v1")
            .chain_update(secret)
            .finalize();
        let fingerprint = Sha256::new()
            .chain_update(b"id")
            .chain_update(key)
            .finalize();
        let mut id = [0; KEY_ID_BYTES];
        id.copy_from_slice(&fingerprint[..KEY_ID_BYTES]);
        Self {
            id,
            cipher: XChaCha20Poly1305::new(&key),
        }
    }

    /// Draws a random key, for this process only.
    pub fn random() -> Self {
        let mut secret = [0u8; 32];
        rand::rng().fill_bytes(&mut secret);
        Self::from_secret(&secret)
    }
}

impl std::fmt::Debug for SealKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SealKey({:02x?})", self.id)
    }
}

/// The cluster's keys. The first key seals; each can open. To rotate, add the new key last on all nodes, move the new
/// key to the front, and drop the old key after its states have expired.
#[derive(Clone, Debug)]
pub struct KeyRing(Vec<SealKey>);

/// Why a state was refused, for logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RefusedState {
    /// The state was altered, or other keys sealed it.
    #[error("it does not verify")]
    Forged,
    /// The state has expired.
    #[error("it has expired")]
    Expired,
    /// The state is another principal's.
    #[error("it belongs to another principal")]
    OtherPrincipal,
    /// The state is another request's.
    #[error("it belongs to another request")]
    OtherRequest,
}

impl RefusedState {
    /// Returns the name in logs.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Forged => "state_forged",
            Self::Expired => "state_expired",
            Self::OtherPrincipal => "state_of_another_principal",
            Self::OtherRequest => "state_of_another_request",
        }
    }
}

impl KeyRing {
    /// Makes a ring, whose first key seals.
    ///
    /// # Panics
    /// `keys` is empty.
    pub fn new(keys: Vec<SealKey>) -> Self {
        assert!(!keys.is_empty(), "a key ring holds at least one key");
        Self(keys)
    }

    /// Seals a state.
    pub fn seal(&self, state: &RequestState) -> String {
        let key = &self.0[0];
        let mut nonce = [0u8; NONCE_BYTES];
        rand::rng().fill_bytes(&mut nonce);
        let plain = RawJson::of(state);
        let sealed = key
            .cipher
            .encrypt(XNonce::from_slice(&nonce), plain.as_bytes())
            .expect("encryption of a bounded state cannot fail");
        let mut bytes = Vec::with_capacity(1 + KEY_ID_BYTES + NONCE_BYTES + sealed.len());
        bytes.push(FORMAT);
        bytes.extend_from_slice(&key.id);
        bytes.extend_from_slice(&nonce);
        bytes.extend_from_slice(&sealed);
        URL_SAFE_NO_PAD.encode(bytes)
    }

    /// Opens and checks a state. `now_unix` is the earliest time that the sealing node's clock may show.
    ///
    /// # Errors
    /// Why the state is refused.
    pub fn open(
        &self,
        sealed: &str,
        principal: &str,
        digest: &RequestDigest,
        now_unix: u64,
    ) -> Result<Continuation, RefusedState> {
        let state = self.decrypt(sealed).ok_or(RefusedState::Forged)?;
        if state.principal != principal {
            return Err(RefusedState::OtherPrincipal);
        }
        if state.digest != *digest {
            return Err(RefusedState::OtherRequest);
        }
        match state.continuation {
            // The worker limits how long a call waits.
            Continuation::Parked { .. } => {}
            Continuation::Backend { .. } | Continuation::Approval { .. } => {
                if state.expires_at <= now_unix {
                    return Err(RefusedState::Expired);
                }
            }
        }
        Ok(state.continuation)
    }

    fn decrypt(&self, sealed: &str) -> Option<RequestState> {
        if sealed.len() > MAX_SEALED_BYTES {
            return None;
        }
        let bytes = URL_SAFE_NO_PAD.decode(sealed).ok()?;
        let (&format, rest) = bytes.split_first()?;
        let (id, rest) = rest.split_at_checked(KEY_ID_BYTES)?;
        let (nonce, cipher) = rest.split_at_checked(NONCE_BYTES)?;
        if format != FORMAT {
            return None;
        }
        let key = self.0.iter().find(|key| key.id == id)?;
        let plain = key.cipher.decrypt(XNonce::from_slice(nonce), cipher).ok()?;
        serde_json::from_slice(&plain).ok()
    }
}

#[cfg(test)]
mod tests;
