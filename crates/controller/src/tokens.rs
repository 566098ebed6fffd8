//! Credentials in Secrets. The controller uses only Secrets with a label. Otherwise a user who may change a Service, and may not read
//! Secrets, could have any Secret of the namespace sent to a server of their own.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::time::Duration;

use futures::stream::{self, StreamExt as _};
use k8s_openapi::api::core::v1;
use kube::{Api, Client};
use shoal_ports::Secret;
use tokio::time::{Instant, timeout};

use crate::translate::SecretKey;

/// Characters of a token at most.
const LONGEST_TOKEN: usize = 16 << 10;
/// Secrets that are read at the same time.
const AT_ONCE: usize = 8;
/// How long the API server may take for one Secret.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often in a row a key may fail that was never read, before it counts as unavailable.
const ATTEMPTS: usize = 3;
/// The label of a Secret that may be used.
const LABEL: &str = "shoal.dev/token";

/// The tokens that pools need.
pub(crate) struct Tokens {
    client: Client,
    every: Duration,
    /// When each key was read, or was given up.
    read: BTreeMap<SecretKey, Instant>,
    /// How often in a row the others could not be read.
    failures: BTreeMap<SecretKey, usize>,
    pub(crate) known: BTreeMap<SecretKey, Secret>,
    /// Why others cannot be had.
    pub(crate) missing: BTreeMap<SecretKey, String>,
}

impl Tokens {
    pub(crate) fn new(client: Client, every: Duration) -> Self {
        Self {
            client,
            every,
            read: BTreeMap::new(),
            failures: BTreeMap::new(),
            known: BTreeMap::new(),
            missing: BTreeMap::new(),
        }
    }

    /// Reads the keys that were not read for `every`. If it is dropped meanwhile, the next call reads the rest. A token that was read
    /// stays if it cannot be read again, unless the API server forbids it. A key that was never read counts as missing once it
    /// has failed [`ATTEMPTS`] times in a row.
    ///
    /// # Errors
    /// When a key that was never read has failed, and is to be tried again.
    pub(crate) async fn read(&mut self, wanted: &BTreeSet<SecretKey>) -> Result<(), String> {
        self.read.retain(|key, _| wanted.contains(key));
        self.failures.retain(|key, _| wanted.contains(key));
        self.known.retain(|key, _| wanted.contains(key));
        self.missing.retain(|key, _| wanted.contains(key));
        let due = |key: &&SecretKey| {
            let read = self.read.get(*key);
            read.is_none_or(|read| read.elapsed() >= self.every)
        };
        let mut due: Vec<SecretKey> = wanted.iter().filter(due).cloned().collect();
        // Last, so that Secrets that hang do not keep others from being read.
        due.sort_by_key(|key| self.failures.get(key).copied());
        let client = self.client.clone();
        let reading = due.into_iter().map(|key| {
            let client = client.clone();
            async move { (fetch(client, &key).await, key) }
        });
        let mut reading = stream::iter(reading).buffer_unordered(AT_ONCE);
        let mut failed = None;
        while let Some((fetched, key)) = reading.next().await {
            match fetched {
                Ok(Ok(token)) => {
                    self.missing.remove(&key);
                    self.known.insert(key.clone(), token);
                }
                Ok(Err(why)) => {
                    self.known.remove(&key);
                    self.missing.insert(key.clone(), why);
                }
                Err(error) if self.read.contains_key(&key) => {
                    tracing::warn!("{error}; the pool stays as it was");
                }
                Err(error) => {
                    let failures = self.failures.entry(key.clone()).or_default();
                    *failures += 1;
                    if *failures < ATTEMPTS {
                        failed = Some(error);
                        continue;
                    }
                    self.missing.insert(key.clone(), error);
                }
            }
            self.failures.remove(&key);
            self.read.insert(key, Instant::now());
        }
        failed.map_or(Ok(()), Err)
    }
}

/// Reads the token under a key, or why there is none.
///
/// # Errors
/// When the API server cannot answer at the moment.
async fn fetch(client: Client, key: &SecretKey) -> Result<Result<Secret, String>, String> {
    let told = |error: &dyn Display| {
        let (namespace, secret) = (&key.namespace, &key.secret);
        format!("the Secret {secret} of the namespace {namespace} cannot be read: {error}")
    };
    let secrets: Api<v1::Secret> = Api::namespaced(client, &key.namespace);
    match timeout(PATIENCE, secrets.get_opt(&key.secret)).await {
        Ok(Ok(secret)) => Ok(token(key, secret)),
        // The API server would say this again. Nobody's server waits for the rights to another one's Secret.
        Ok(Err(kube::Error::Api(status))) if is_final(status.code) => Ok(Err(told(&status))),
        Ok(Err(error)) => Err(told(&error)),
        Err(late) => Err(told(&late)),
    }
}

/// Whether a status of the API server is an answer, and not a trouble that passes: not logged in, too slow, too many requests, or its own.
fn is_final(code: u16) -> bool {
    (400..500).contains(&code) && !matches!(code, 401 | 408 | 429)
}

/// The token under a key.
///
/// # Errors
/// Why it cannot be used. The message goes to whoever can read the object's events, and holds nothing of the Secret.
fn token(key: &SecretKey, secret: Option<v1::Secret>) -> Result<Secret, String> {
    let name = &key.secret;
    // The same for one that is not there: events do not tell which Secrets there are.
    let unusable = || format!("there is no Secret {name} with the label {LABEL}: \"true\"");
    let secret = secret.ok_or_else(unusable)?;
    let labels = secret.metadata.labels.unwrap_or_default();
    if labels.get(LABEL).map(String::as_str) != Some("true") {
        return Err(unusable());
    }
    let value = secret.data.unwrap_or_default().remove(&key.key);
    let value = value.ok_or_else(|| format!("the Secret {name} has no key {}", key.key))?;
    let token = String::from_utf8(value.0).unwrap_or_default();
    let token = token.trim();
    let fits = !token.is_empty() && token.len() <= LONGEST_TOKEN;
    match fits && token.bytes().all(|b| b.is_ascii_graphic()) {
        true => Ok(Secret::new(token)),
        false => Err(format!(
            "the key {} of the Secret {name} holds no token: that is 1 to {LONGEST_TOKEN} visible characters without spaces",
            key.key
        )),
    }
}
