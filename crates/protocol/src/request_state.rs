//! `requestState`: what a multi round-trip request carries through the client, sealed.
//!
//! The client is an attacker here (2026-07-28, MRTR, Server Requirements): the state is encrypted
//! and authenticated, bound to its principal and to the request that it continues, and expires: a call that waits does
//! so by itself, and a backend's own state at a time that one node's clock has set and another one's may pass.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chacha20poly1305::aead::{Aead, KeyInit};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use rand::RngCore as _;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::{RawJson, RequestDigest};

/// First byte of every sealed state: the format's version.
const FORMAT: u8 = 1;
const KEY_ID_BYTES: usize = 4;
const NONCE_BYTES: usize = 24;
/// A state larger than this is refused before any cryptography.
const MAX_SEALED_BYTES: usize = 1 << 20;

/// What is sealed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestState {
    /// Whom it was given to.
    pub principal: String,
    /// End of validity, seconds since the Unix epoch on the clock of the node that sealed it.
    pub expires_at: u64,
    /// The request that it continues.
    pub digest: RequestDigest,
    /// Where to go on.
    pub continuation: Continuation,
}

/// Where a request goes on when its answers have arrived.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Continuation {
    /// A call is waiting, on a worker, for the client's answers.
    Parked {
        /// The call.
        call: String,
        /// What it has asked, by the keys of its questions: digests, so that an answer is given to no other question
        /// where the call has to be run again. Empty where an older release sealed it.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        asked: BTreeMap<String, RequestDigest>,
    },
    /// The backend keeps its own state and is called again with it.
    Backend {
        /// The backend's `requestState`, if it gave one.
        state: Option<String>,
        /// The call that ended with the question; not known of one that an older release sealed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        call: Option<String>,
    },
    /// Nothing has begun: a person is asked whether it may.
    Approval {
        /// The call that a yes is for.
        call: String,
        /// The only worker that may run it, if one was found.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        worker: Option<String>,
        /// The incarnation and number of that worker's ledger.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ledger: Option<(u64, u64)>,
    },
}

/// The kind of a continuation, for logs.
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
    /// Its kind.
    pub fn kind(&self) -> StateKind {
        match self {
            Self::Parked { .. } => StateKind::Parked,
            Self::Backend { .. } => StateKind::Backend,
            Self::Approval { .. } => StateKind::Approval,
        }
    }
}

/// One sealing key.
#[derive(Clone)]
pub struct SealKey {
    id: [u8; KEY_ID_BYTES],
    cipher: XChaCha20Poly1305,
}

impl SealKey {
    /// A key from a secret of any length (at least 16 bytes should be random).
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

    /// A key that lives as long as this process.
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

/// The cluster's keys: the first seals, all open. To rotate, add the new key last everywhere, then
/// move it first, then drop the old one when its states have expired.
#[derive(Clone, Debug)]
pub struct KeyRing(Vec<SealKey>);

/// Why a state was refused. The client is told only that it is not valid; the reason is logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RefusedState {
    /// Not a state of ours, or altered.
    #[error("it does not verify")]
    Forged,
    /// Its time is over.
    #[error("it has expired")]
    Expired,
    /// Presented by somebody else.
    #[error("it belongs to another principal")]
    OtherPrincipal,
    /// Presented with another request.
    #[error("it belongs to another request")]
    OtherRequest,
}

impl RefusedState {
    /// Its name in the log.
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
    /// A ring; the first key seals.
    ///
    /// # Panics
    /// When `keys` is empty.
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

    /// Opens a state and checks that it belongs here. `now_unix` is the earliest time that it may be where the state was
    /// sealed: another node's clock may have been ahead of this one's.
    ///
    /// # Errors
    /// [`RefusedState`]; nothing of a refused state is used.
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
            // Its call waits for as long as its worker lets it, and no clock has to say so.
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
