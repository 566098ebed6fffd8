//! `[auth]`: who may call.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use sha2::{Digest as _, Sha256};

use super::REDACTED;

/// Who may call.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct Auth {
    /// How callers are told apart.
    pub mode: AuthMode,
    /// The bearer tokens of `mode = "tokens"`. Several may name the same principal, to change a token
    /// without a gap.
    pub tokens: Vec<Token>,
    /// Lets `mode = "none"` serve an address that other machines can reach: everybody who reaches it
    /// may call every tool.
    pub allow_anonymous: bool,
}

/// How callers are told apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AuthMode {
    /// Not at all: everybody is the same principal. Only for loopback addresses.
    #[default]
    None,
    /// By the bearer tokens in `auth.tokens`.
    Tokens,
}

/// A bearer token.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a table with name and sha256")]
pub struct Token {
    /// The principal that the token stands for.
    pub name: String,
    /// SHA-256 of the token, in hexadecimal; `shoal config hash-token` prints it.
    pub sha256: TokenHash,
}

/// SHA-256 of a token.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct TokenHash([u8; 32]);

impl TokenHash {
    /// Hashes a token.
    pub fn of(token: &str) -> Self {
        Self(Sha256::digest(token.as_bytes()).into())
    }

    /// The hash.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Lower-case hexadecimal, as configurations have it.
    pub fn to_hex(self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    fn from_hex(text: &str) -> Option<Self> {
        let mut hash = [0u8; 32];
        if text.len() != 2 * hash.len() || !text.is_ascii() {
            return None;
        }
        for (at, byte) in hash.iter_mut().enumerate() {
            *byte = u8::from_str_radix(text.get(2 * at..2 * at + 2)?, 16).ok()?;
        }
        Some(Self(hash))
    }
}

// A short token can be guessed from its hash.
impl fmt::Debug for TokenHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(REDACTED)
    }
}

impl Serialize for TokenHash {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(REDACTED)
    }
}

impl<'de> Deserialize<'de> for TokenHash {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        // The value is not repeated: somebody may have pasted the token itself.
        Self::from_hex(&text).ok_or_else(|| {
            de::Error::custom(
                "expected 64 hexadecimal digits: `shoal config hash-token` prints them for a token",
            )
        })
    }
}

impl JsonSchema for TokenHash {
    fn schema_name() -> Cow<'static, str> {
        "TokenHash".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": "^[0-9a-fA-F]{64}$", "writeOnly": true })
    }
}
