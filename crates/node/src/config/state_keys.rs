//! `[state_keys]`: the secrets that seal what a request carries through its client.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shoal_protocol::{KeyRing, SealKey};

use super::SecretSource;

/// The secrets that seal what a request carries through its client (`requestState`).
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct StateKeys {
    /// The secrets, at least 16 bytes each: `{ file = "/run/secrets/state-key" }` or `{ value = "…" }`. The first
    /// seals, all open. To rotate, add the new one last everywhere, then move it first, then drop the old one. If
    /// empty, each process makes a random one. Then a request that waits for its client's input does not survive a
    /// restart.
    pub keys: Vec<SecretSource>,
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
        let read = |key: &SecretSource| Ok(SealKey::from_secret(&key.read()?.0));
        let keys: Result<Vec<_>, String> = self.keys.iter().map(read).collect();
        Ok(KeyRing::new(keys?))
    }
}
