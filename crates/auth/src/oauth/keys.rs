//! Reads an issuer's keys (RFC 7517).

use jsonwebtoken::DecodingKey;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};

use crate::config::{SigningAlgorithm, same};

/// Maximum keys. Most issuers have a few, multi-tenant ones 70 or more.
pub(crate) const MOST_KEYS: usize = 256;
/// Maximum signature checks per token, because any caller can cause them.
const CANDIDATES: usize = 128;
const OF_ONE_ID: usize = 4;
const ANY_TENANT: &str = "{tenantid}";

/// A key as JSON. Of an unsupported key, only the type is read.
#[derive(Clone, Deserialize)]
pub(crate) struct Jwk {
    kty: String,
    #[serde(default)]
    kid: Option<String>,
    #[serde(default)]
    alg: Option<String>,
    #[serde(default, rename = "use")]
    intended: Option<String>,
    #[serde(default)]
    key_ops: Option<Vec<String>>,
    #[serde(default)]
    crv: Option<String>,
    #[serde(default)]
    n: Option<String>,
    #[serde(default)]
    e: Option<String>,
    #[serde(default)]
    x: Option<String>,
    #[serde(default)]
    y: Option<String>,
    /// The key's tenant, if tenants share the keys: Microsoft's unregistered member.
    #[serde(default)]
    issuer: Option<Value>,
    /// Published only by mistake.
    #[serde(default)]
    d: Option<String>,
}

pub(crate) struct PublicKey {
    kid: Option<String>,
    algorithm: Option<String>,
    issuer: Option<String>,
    kind: KeyKind,
    key: DecodingKey,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum KeyKind {
    Rsa,
    P256,
    P384,
    Ed25519,
}

impl PublicKey {
    /// `None` for a symmetric, unsupported or invalid key, and for one that is not for signatures.
    pub(crate) fn of(jwk: &Jwk) -> Option<Self> {
        let verifies = |operations: &Vec<String>| operations.iter().any(|one| one == "verify");
        if jwk
            .intended
            .as_deref()
            .is_some_and(|intended| intended != "sig")
            || !jwk.key_ops.as_ref().is_none_or(verifies)
        {
            return None;
        }
        let (kind, key) = match (jwk.kty.as_str(), jwk.crv.as_deref()) {
            ("RSA", _) => {
                let key = DecodingKey::from_rsa_components(jwk.n.as_ref()?, jwk.e.as_ref()?);
                (KeyKind::Rsa, key)
            }
            ("EC", Some(curve @ ("P-256" | "P-384"))) => {
                let kind = match curve {
                    "P-256" => KeyKind::P256,
                    _ => KeyKind::P384,
                };
                let key = DecodingKey::from_ec_components(jwk.x.as_ref()?, jwk.y.as_ref()?);
                (kind, key)
            }
            ("OKP", Some("Ed25519")) => {
                let key = DecodingKey::from_ed_components(jwk.x.as_ref()?);
                (KeyKind::Ed25519, key)
            }
            _ => return None,
        };
        Some(Self {
            kid: jwk.kid.clone(),
            algorithm: jwk.alg.clone(),
            issuer: jwk
                .issuer
                .as_ref()
                .and_then(Value::as_str)
                .map(str::to_owned),
            kind,
            key: key.ok()?,
        })
    }

    fn is_for_tenant(&self, tenant: &str) -> bool {
        let issuer = self.issuer.as_deref();
        issuer.is_none_or(|issuer| issuer.contains(ANY_TENANT) || same(issuer, tenant))
    }

    pub(crate) fn for_algorithm(&self, algorithm: SigningAlgorithm) -> Option<&DecodingKey> {
        let said = self.algorithm.as_deref();
        let fits =
            said.is_none_or(|said| said == algorithm.name()) && self.kind == kind_for(algorithm);
        fits.then_some(&self.key)
    }
}

fn kind_for(algorithm: SigningAlgorithm) -> KeyKind {
    match algorithm {
        SigningAlgorithm::ES256 => KeyKind::P256,
        SigningAlgorithm::ES384 => KeyKind::P384,
        SigningAlgorithm::EdDSA => KeyKind::Ed25519,
        _ => KeyKind::Rsa,
    }
}

impl Jwk {
    pub(crate) fn is_private(&self) -> bool {
        self.d.is_some()
    }

    /// Returns the thumbprint (RFC 7638).
    pub(crate) fn thumbprint(&self) -> Option<[u8; 32]> {
        let text = |part: &Option<String>| serde_json::to_string(part.as_ref()?).ok();
        let canonical = match self.kty.as_str() {
            "RSA" => format!(
                r#"{{"e":{},"kty":"RSA","n":{}}}"#,
                text(&self.e)?,
                text(&self.n)?
            ),
            "EC" => format!(
                r#"{{"crv":{},"kty":"EC","x":{},"y":{}}}"#,
                text(&self.crv)?,
                text(&self.x)?,
                text(&self.y)?
            ),
            "OKP" => format!(
                r#"{{"crv":{},"kty":"OKP","x":{}}}"#,
                text(&self.crv)?,
                text(&self.x)?
            ),
            _ => return None,
        };
        Some(Sha256::digest(canonical).into())
    }
}

#[derive(Default)]
pub(crate) struct KeySet {
    keys: Vec<PublicKey>,
}

#[derive(Deserialize)]
struct KeysDocument<'a> {
    #[serde(borrow)]
    keys: Vec<&'a RawValue>,
}

impl KeySet {
    /// Reads a document of keys. Skips unsupported and unreadable keys, because an issuer may have newer kinds.
    pub(crate) fn read(text: &[u8]) -> Result<Self, String> {
        let document: KeysDocument<'_> = serde_json::from_slice(text)
            .map_err(|_| "the document is not a JSON Web Key Set".to_owned())?;
        if document.keys.len() > MOST_KEYS {
            return Err(format!("it has more than {MOST_KEYS} keys"));
        }
        let keys = document.keys.iter();
        let keys = keys.filter_map(|key| serde_json::from_str::<Jwk>(key.get()).ok());
        let keys: Vec<PublicKey> = keys.filter_map(|jwk| PublicKey::of(&jwk)).collect();
        match keys.is_empty() {
            true => Err("it has no key that can verify signatures".to_owned()),
            false => Ok(Self { keys }),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.keys.len()
    }

    /// Returns keys that may have signed a token: those with its key id, and those without an id. `tenant` is
    /// the token's, if tenants share the keys.
    pub(crate) fn candidates(
        &self,
        kid: Option<&str>,
        algorithm: SigningAlgorithm,
        tenant: Option<&str>,
    ) -> Candidates<'_> {
        let fits = |key: &&PublicKey| {
            key.for_algorithm(algorithm).is_some()
                && tenant.is_none_or(|tenant| key.is_for_tenant(tenant))
        };
        let fitting = || self.keys.iter().filter(fits);
        let named = fitting().filter(|key| kid.is_some() && key.kid.as_deref() == kid);
        let mut keys: Vec<&PublicKey> = named.take(OF_ONE_ID).collect();
        let are_named = !keys.is_empty();
        keys.extend(fitting().filter(|key| kid.is_none() || key.kid.is_none()));
        keys.truncate(CANDIDATES);
        Candidates { keys, are_named }
    }
}

pub(crate) struct Candidates<'k> {
    pub(crate) keys: Vec<&'k PublicKey>,
    pub(crate) are_named: bool,
}
