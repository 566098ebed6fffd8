//! Reads pools' credentials from Secrets. The controller uses only labelled Secrets. Otherwise, a user who may change a
//! Service but not read Secrets could have any Secret of the namespace sent to a server of their own.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::time::Duration;

use futures::stream::{self, StreamExt as _};
use k8s_openapi::api::core::v1;
use kube::{Api, Client};
use shoal_ports::Secret;
use shoal_ports::kubernetes::KubernetesSettings;
use tokio::time::{Instant, timeout};

use crate::translate::SecretKey;

/// Maximum bytes of a token.
const LONGEST_TOKEN: usize = 16 << 10;
/// Maximum Secrets that are read concurrently.
const AT_ONCE: usize = 8;
/// Time limit for reading one Secret.
const PATIENCE: Duration = Duration::from_secs(5);
/// Number of consecutive failures after which a key that was never read counts as missing, if the API server answers a
/// request for the controller's own Secret.
const ATTEMPTS: usize = 3;
/// The label that a Secret must have.
const LABEL: &str = "shoal.dev/token";

pub(crate) struct Tokens {
    client: Client,
    every: Duration,
    /// The name of the controller's own Secret.
    own: String,
    /// When each key was last read, or was last counted as missing.
    read: BTreeMap<SecretKey, Instant>,
    /// Number of consecutive failures of each key that was never read.
    failures: BTreeMap<SecretKey, usize>,
    pub(crate) known: BTreeMap<SecretKey, Secret>,
    /// The keys without a token, and why.
    pub(crate) missing: BTreeMap<SecretKey, String>,
}

impl Tokens {
    pub(crate) fn new(client: Client, config: &KubernetesSettings) -> Self {
        Self {
            client,
            every: config.tokens_every.get(),
            own: config.secret.clone(),
            read: BTreeMap::new(),
            failures: BTreeMap::new(),
            known: BTreeMap::new(),
            missing: BTreeMap::new(),
        }
    }

    /// Reads the keys that are new or were last read at least `every` ago. If rereading fails for a passing reason (see
    /// [`is_final`]), the known token stays. A key that was never read counts as missing after [`ATTEMPTS`] consecutive
    /// failures, if the API server answers a request for the controller's own Secret. If that request fails for a
    /// passing reason too, the key does not count as missing. Otherwise, a new leader would unpublish all pools with
    /// tokens while the API server reads no Secrets.
    ///
    /// # Errors
    ///
    /// Fails if a key that was never read could not be read, and will be tried again.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the next call reads the remaining keys.
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
        // Read the keys that failed last, so that they cannot use up the turn's time limit before the other keys are
        // read.
        due.sort_by_key(|key| self.failures.get(key).copied());
        let client = self.client.clone();
        let reading = due.into_iter().map(|key| {
            let client = client.clone();
            async move { (fetch(client, &key).await, key) }
        });
        let mut reading = stream::iter(reading).buffer_unordered(AT_ONCE);
        let mut failed = None;
        let mut own = None;
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
                    if own.is_none() {
                        own = Some(self.read_own().await);
                    }
                    if let Some(Err(error)) = &own {
                        failed = Some(error.clone());
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

    /// Requests the controller's own Secret, as a sign that the API server can answer for Secrets now. A missing Secret
    /// or a missing right counts as an answer too. The publisher then reports what to do.
    ///
    /// # Errors
    ///
    /// Fails if the API server cannot answer now.
    async fn read_own(&self) -> Result<(), String> {
        let own = &self.own;
        let told = |error: &dyn Display| {
            format!("no Secret can be read, not even secret/{own} of the controller: {error}")
        };
        let secrets: Api<v1::Secret> = Api::default_namespaced(self.client.clone());
        match timeout(PATIENCE, secrets.get(own)).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(kube::Error::Api(status))) if is_final(status.code) => Ok(()),
            Ok(Err(error)) => Err(told(&error)),
            Err(late) => Err(told(&late)),
        }
    }
}

/// Reads the token of a key. The inner error is the reason why the token is missing.
///
/// # Errors
///
/// Fails if the API server cannot answer now.
async fn fetch(client: Client, key: &SecretKey) -> Result<Result<Secret, String>, String> {
    let told = |error: &dyn Display| {
        let (namespace, secret) = (&key.namespace, &key.secret);
        format!("the Secret {secret} of the namespace {namespace} cannot be read: {error}")
    };
    let secrets: Api<v1::Secret> = Api::namespaced(client, &key.namespace);
    match timeout(PATIENCE, secrets.get_opt(&key.secret)).await {
        Ok(Ok(secret)) => Ok(token(key, secret)),
        // Another attempt would get the same answer, so the key counts as missing at once.
        Ok(Err(kube::Error::Api(status))) if is_final(status.code) => Ok(Err(told(&status))),
        Ok(Err(error)) => Err(told(&error)),
        Err(late) => Err(told(&late)),
    }
}

/// Whether a repeated request would get the same error status. Server errors and the statuses 401, 408 (timeout) and
/// 429 (too many requests) may pass.
fn is_final(code: u16) -> bool {
    (400..500).contains(&code) && !matches!(code, 401 | 408 | 429)
}

/// Returns the token that a Secret has under a key.
///
/// # Errors
///
/// Returns why there is no usable token. The message contains nothing from the Secret, because everyone who can read
/// the object's Events sees the message.
fn token(key: &SecretKey, secret: Option<v1::Secret>) -> Result<Secret, String> {
    let name = &key.secret;
    // A missing Secret gets the same message, so that Events do not reveal which Secrets exist.
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
