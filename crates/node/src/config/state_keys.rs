use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shoal_protocol::{KeyRing, SealKey};

use super::SecretSource;

/// Encryption of `requestState`, which clients carry.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct StateKeys {
    /// Secrets of at least 16 bytes, equal on all edges: `{ file = "…" }` or `{ value = "…" }`. The first key encrypts,
    /// and all keys decrypt ([rotation](recovery.md)). Without keys, each edge makes its own, so other edges refuse a
    /// client's answer, and a restart loses calls that wait for input.
    pub keys: Vec<SecretSource>,
}

impl StateKeys {
    /// Reads the secrets.
    ///
    /// # Errors
    ///
    /// One sentence, if a file cannot be read or a secret is too short.
    pub fn key_ring(&self) -> Result<KeyRing, String> {
        if self.keys.is_empty() {
            return Ok(KeyRing::new(vec![SealKey::random()]));
        }
        let read = |key: &SecretSource| Ok(SealKey::from_secret(&key.read()?.0));
        let keys: Result<Vec<_>, String> = self.keys.iter().map(read).collect();
        Ok(KeyRing::new(keys?))
    }
}
