//! Parses a token in the compact form (RFC 7515). Its claims are untrusted until the signature is checked.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::config::SigningAlgorithm;
use crate::oauth::keys::{Jwk, PublicKey};

pub(crate) struct Jws<'a> {
    pub(crate) header: JwsHeader,
    payload: Vec<u8>,
    signed: &'a str,
    signature: &'a str,
}

#[derive(Deserialize)]
pub(crate) struct JwsHeader {
    pub(crate) alg: String,
    #[serde(default)]
    pub(crate) kid: Option<String>,
    #[serde(default)]
    pub(crate) typ: Option<String>,
    /// Headers that a reader must support. Shoal supports none, so it refuses such a token (RFC 7515, 4.1.11).
    #[serde(default, deserialize_with = "whatever")]
    pub(crate) crit: Option<Value>,
    #[serde(default)]
    pub(crate) jwk: Option<Jwk>,
}

impl<'a> Jws<'a> {
    pub(crate) fn of(token: &'a str) -> Option<Self> {
        let (signed, signature) = token.rsplit_once('.')?;
        let (header, payload) = signed.split_once('.')?;
        if payload.contains('.') {
            return None;
        }
        let header = serde_json::from_slice(&decode(header)?).ok()?;
        Some(Self {
            header,
            payload: decode(payload)?,
            signed,
            signature,
        })
    }

    pub(crate) fn algorithm(&self, allowed: &[SigningAlgorithm]) -> Option<SigningAlgorithm> {
        let algorithm = SigningAlgorithm::named(&self.header.alg)?;
        allowed.contains(&algorithm).then_some(algorithm)
    }

    /// `types` are in lower case and without `application/`.
    pub(crate) fn is_of_type(&self, types: &[&str]) -> bool {
        let typ = self.header.typ.as_deref().unwrap_or("jwt");
        let typ = typ.to_ascii_lowercase();
        let typ = typ.strip_prefix("application/").unwrap_or(&typ);
        types.contains(&typ)
    }

    pub(crate) fn is_signed_by(&self, key: &PublicKey, algorithm: SigningAlgorithm) -> bool {
        let Some(key) = key.for_algorithm(algorithm) else {
            return false;
        };
        let signed = self.signed.as_bytes();
        jsonwebtoken::crypto::verify(self.signature, signed, key, algorithm.into()).unwrap_or(false)
    }

    pub(crate) fn payload(&self) -> &[u8] {
        &self.payload
    }

    pub(crate) fn read<T: DeserializeOwned>(&self) -> Option<T> {
        // serde would also read a struct from a list.
        let is_object = self.payload.trim_ascii_start().first() == Some(&b'{');
        is_object.then(|| serde_json::from_slice(&self.payload).ok())?
    }
}

fn whatever<'de, D: Deserializer<'de>>(value: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(value).map(Some)
}

fn decode(part: &str) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(part).ok()
}

impl From<SigningAlgorithm> for jsonwebtoken::Algorithm {
    fn from(algorithm: SigningAlgorithm) -> Self {
        match algorithm {
            SigningAlgorithm::RS256 => Self::RS256,
            SigningAlgorithm::RS384 => Self::RS384,
            SigningAlgorithm::RS512 => Self::RS512,
            SigningAlgorithm::PS256 => Self::PS256,
            SigningAlgorithm::PS384 => Self::PS384,
            SigningAlgorithm::PS512 => Self::PS512,
            SigningAlgorithm::ES256 => Self::ES256,
            SigningAlgorithm::ES384 => Self::ES384,
            SigningAlgorithm::EdDSA => Self::EdDSA,
        }
    }
}
