use std::borrow::Cow;
use std::fmt;
use std::hash::{Hash, Hasher};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use sha2::{Digest as _, Sha256};
use shoal_ports::{REDACTED, TokenDigest};
use subtle::ConstantTimeEq as _;

/// A token's SHA-256, with which no one can authenticate. Comparing takes constant time.
#[derive(Clone, Copy)]
pub struct TokenHash(TokenDigest);

impl TokenHash {
    /// Hashes a token.
    pub fn of(token: impl AsRef<[u8]>) -> Self {
        Self(Sha256::digest(token).into())
    }

    pub(crate) fn from_digest(digest: TokenDigest) -> Self {
        Self(digest)
    }

    /// Returns the lower-case hexadecimal form, as in configurations.
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

impl PartialEq for TokenHash {
    fn eq(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl Eq for TokenHash {}

impl Hash for TokenHash {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write(&self.0);
    }
}

// Redacted, because the hash of a short token reveals the token.
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
        // Omits the value, which may be a token pasted by mistake.
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

#[cfg(test)]
mod tests {
    use serde_json::{from_value, json};

    use super::TokenHash;

    #[test]
    fn a_hash_is_read_in_either_case_and_a_plain_token_refused() {
        let hash = "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b";
        for text in [hash.to_owned(), hash.to_uppercase()] {
            let read: TokenHash = from_value(json!(text)).unwrap();
            assert_eq!(read, TokenHash::of("secret"));
            assert_eq!(read.to_hex(), hash);
        }
        let refused = from_value::<TokenHash>(json!("secret")).unwrap_err();
        assert!(refused.to_string().contains("hash-token"), "{refused}");
        assert!(!refused.to_string().contains("secret"), "{refused}");
    }
}
