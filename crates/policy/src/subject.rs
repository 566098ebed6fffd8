use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use quick_cache::{Equivalent, Weighter};
use serde_json::{Map, Value, json};
use shoal_ports::Memo;
use shoal_protocol::RawJson;

/// Maximum bytes of claims. Conditions that read larger claims fail.
pub(crate) const CLAIMS_BYTES: usize = 32 << 10;
const ENTRIES: usize = 256;
const CLIENT_BYTES: usize = 8 << 10;

/// A caller's facts that rules may read.
#[derive(Clone, Copy, Default)]
pub struct Subject<'a> {
    /// The caller's principal.
    pub principal: &'a str,
    /// The caller's scopes.
    pub scopes: &'a [Arc<str>],
    /// The token's claims, a JSON object.
    pub claims: Option<&'a RawJson>,
    /// The client's `Implementation`.
    pub client: Option<&'a RawJson>,
    /// The memo of the caller's grant, if any.
    pub read: Option<&'a Memo>,
}

impl<'a> Subject<'a> {
    pub(crate) fn key(&self, reads: Reads) -> SubjectRef<'a> {
        let bytes = |json: Option<&'a RawJson>| json.map_or(&b""[..], RawJson::as_bytes);
        SubjectRef {
            principal: self.principal,
            scopes: if reads.grant { self.scopes } else { &[] },
            claims: bytes(self.claims.filter(|_| reads.grant)),
            client: bytes(self.client.filter(|_| reads.client)),
        }
    }
}

/// Callers that differ only in other facts get equal decisions.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Reads {
    pub(crate) grant: bool,
    pub(crate) client: bool,
}

#[derive(Hash)]
pub(crate) struct SubjectRef<'a> {
    principal: &'a str,
    scopes: &'a [Arc<str>],
    claims: &'a [u8],
    client: &'a [u8],
}

#[derive(Hash, PartialEq, Eq)]
pub(crate) struct SubjectKey {
    principal: Box<str>,
    scopes: Box<[Arc<str>]>,
    claims: Box<[u8]>,
    client: Box<[u8]>,
}

impl Equivalent<SubjectKey> for SubjectRef<'_> {
    fn equivalent(&self, key: &SubjectKey) -> bool {
        *self.principal == *key.principal
            && *self.scopes == *key.scopes
            && *self.claims == *key.claims
            && *self.client == *key.client
    }
}

impl SubjectRef<'_> {
    pub(crate) fn kept(&self) -> SubjectKey {
        SubjectKey {
            principal: self.principal.into(),
            scopes: self.scopes.into(),
            claims: self.claims.into(),
            client: self.client.into(),
        }
    }
}

#[derive(Clone)]
pub(crate) struct SubjectWeight;

impl Weighter<SubjectKey, Arc<KnownSubject>> for SubjectWeight {
    fn weight(&self, key: &SubjectKey, _: &Arc<KnownSubject>) -> u64 {
        let scopes: usize = key.scopes.iter().map(|scope| scope.len() + 32).sum();
        let bytes = key.principal.len() + scopes + 8 * key.claims.len() + 4 * key.client.len();
        bytes as u64 + 512
    }
}

/// A caller whose facts were read, for many decisions.
#[derive(Debug)]
pub struct KnownSubject {
    /// Unique even across policies.
    pub(crate) number: u64,
    pub(crate) policy: u64,
    pub(crate) principal: Box<str>,
    pub(crate) scopes: Box<[Arc<str>]>,
    /// `None` if the claims are too large or not an object.
    pub(crate) values: Option<SubjectValues>,
    /// By rule.
    pub(crate) met: Box<[OnceLock<Option<bool>>]>,
}

#[derive(Debug)]
pub(crate) struct SubjectValues {
    pub(crate) claims: Value,
    pub(crate) issuer: String,
    pub(crate) client: Value,
}

impl KnownSubject {
    pub(crate) fn read(subject: &Subject<'_>, policy: u64, rules: usize) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self {
            number: NEXT.fetch_add(1, Ordering::Relaxed),
            policy,
            principal: subject.principal.into(),
            scopes: subject.scopes.into(),
            values: SubjectValues::read(subject),
            met: (0..rules).map(|_| OnceLock::new()).collect(),
        }
    }

    /// Returns the caller's principal.
    pub fn principal(&self) -> &str {
        &self.principal
    }

    /// Returns this caller's unique number.
    pub fn number(&self) -> u64 {
        self.number
    }
}

impl SubjectValues {
    fn read(subject: &Subject<'_>) -> Option<Self> {
        let claims = match subject.claims {
            Some(claims) if claims.len() > CLAIMS_BYTES => return None,
            Some(claims) => claims.read::<Value>().ok().filter(Value::is_object)?,
            None => Value::Object(Map::new()),
        };
        if !is_small(&claims) {
            return None;
        }
        let client = subject.client.filter(|client| client.len() <= CLIENT_BYTES);
        let text = |member: &str| {
            let value = client.and_then(|client| client.member(member)?.string());
            value.unwrap_or_default()
        };
        Some(Self {
            issuer: claims["iss"].as_str().unwrap_or_default().to_owned(),
            client: json!({ "name": text("name"), "version": text("version") }),
            claims,
        })
    }
}

fn is_small(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.len() <= ENTRIES && items.iter().all(is_small),
        Value::Object(members) => members.len() <= ENTRIES && members.values().all(is_small),
        _ => true,
    }
}
