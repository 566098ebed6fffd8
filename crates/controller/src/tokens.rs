//! Credentials in Secrets. The controller uses only Secrets with a label. Otherwise a user who may change a Service, and may not read
//! Secrets, could have any Secret of the namespace sent to a server of their own.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client};
use tokio::time::Instant;

use crate::translate::SecretKey;

/// Characters of a token at most.
const LONGEST_TOKEN: usize = 16 << 10;
/// The label of a Secret that may be used.
const LABEL: &str = "shoal.dev/token";

/// The tokens that pools need.
pub(crate) struct Tokens {
    client: Client,
    every: Duration,
    read: Option<Instant>,
    pub(crate) known: BTreeMap<SecretKey, String>,
    /// Why others cannot be had.
    pub(crate) missing: BTreeMap<SecretKey, String>,
}

impl Tokens {
    pub(crate) fn new(client: Client, every: Duration) -> Self {
        Self {
            client,
            every,
            read: None,
            known: BTreeMap::new(),
            missing: BTreeMap::new(),
        }
    }

    /// Reads the Secrets that are not known yet, and all of them every `every`. A token that was read stays if it cannot be read again.
    pub(crate) async fn read(&mut self, wanted: &BTreeSet<SecretKey>) {
        self.known.retain(|key, _| wanted.contains(key));
        self.missing.retain(|key, _| wanted.contains(key));
        let again = self.read.is_none_or(|read| read.elapsed() >= self.every);
        if again {
            self.read = Some(Instant::now());
        }
        let unread = |key: &&SecretKey| {
            again || !(self.known.contains_key(*key) || self.missing.contains_key(*key))
        };
        let unread: Vec<SecretKey> = wanted.iter().filter(unread).cloned().collect();
        for key in unread {
            let secrets: Api<Secret> = Api::namespaced(self.client.clone(), &key.namespace);
            match secrets.get_opt(&key.secret).await {
                Ok(secret) => match token(&key, secret) {
                    Ok(token) => {
                        self.missing.remove(&key);
                        self.known.insert(key, token);
                    }
                    Err(why) => {
                        self.known.remove(&key);
                        self.missing.insert(key, why);
                    }
                },
                Err(error) if self.known.contains_key(&key) => {
                    tracing::warn!(
                        secret = key.secret,
                        namespace = key.namespace,
                        "cannot read a Secret again; its token stays: {error}"
                    );
                }
                Err(error) => {
                    let why = format!("the Secret {} cannot be read: {error}", key.secret);
                    self.missing.insert(key, why);
                }
            }
        }
    }
}

/// The token under a key.
///
/// # Errors
/// Why it cannot be used. The message goes to whoever can read the object's events, and holds nothing of the Secret.
fn token(key: &SecretKey, secret: Option<Secret>) -> Result<String, String> {
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
        true => Ok(token.to_owned()),
        false => Err(format!(
            "the key {} of the Secret {name} holds no token: that is 1 to {LONGEST_TOKEN} visible characters without spaces",
            key.key
        )),
    }
}
