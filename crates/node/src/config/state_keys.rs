//! `[state_keys]`: the secrets that seal what a request carries through its client.

use std::fs;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shoal_protocol::{KeyRing, SealKey};

use super::Secret;

/// Shorter secrets could be guessed.
const LEAST_BYTES: usize = 16;

/// The secrets that seal what a request carries through its client (`requestState`).
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct StateKeys {
    /// The secrets, at least 16 bytes each: `{ file = "/run/secrets/state-key" }` or
    /// `{ value = "…" }`. The first seals, all open. To rotate, add the new one last everywhere, then
    /// move it first, then drop the old one. Empty: a random one for each process, so that a request
    /// that waits for its client's input does not survive a restart.
    pub keys: Vec<StateKey>,
}

/// Where a secret is.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum StateKey {
    /// In a file; white space around it is ignored.
    File(PathBuf),
    /// Here.
    Value(Secret),
}

impl StateKeys {
    /// Reads the secrets.
    ///
    /// # Errors
    /// One sentence, when a file cannot be read or a secret is too short.
    pub fn key_ring(&self) -> Result<KeyRing, String> {
        if self.keys.is_empty() {
            return Ok(KeyRing::new(vec![SealKey::random()]));
        }
        let keys: Result<Vec<_>, String> = self.keys.iter().map(StateKey::read).collect();
        Ok(KeyRing::new(keys?))
    }
}

impl StateKey {
    fn read(&self) -> Result<SealKey, String> {
        match self {
            Self::File(path) => {
                let secret = fs::read(path)
                    .map_err(|error| format!("cannot read {}: {error}", path.display()))?;
                seal_key(secret.trim_ascii(), &path.display().to_string())
            }
            Self::Value(secret) => seal_key(secret.expose().as_bytes(), "a value"),
        }
    }
}

fn seal_key(secret: &[u8], name: &str) -> Result<SealKey, String> {
    if secret.len() < LEAST_BYTES {
        return Err(format!(
            "the secret in {name} has {} bytes, and needs at least {LEAST_BYTES} random ones",
            secret.len()
        ));
    }
    Ok(SealKey::from_secret(secret))
}
