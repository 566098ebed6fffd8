//! `[redis]`: how the store in Redis is used. Its address is `node.store`.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};
use shoal_ports::settings;

use super::Period;

settings! {
    /// How the store in Redis is used. Its address is `node.store`.
    #[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
    #[serde(default, deny_unknown_fields, expecting = "a table")]
    pub struct Redis {
        /// What all keys begin with; deployments that share a Redis need different ones.
        pub prefix: String = "shoal".to_owned(),
        /// How long a command may take before the store counts as away.
        pub response_timeout: Period = Period::seconds(2),
        /// How long connecting may take.
        pub connect_timeout: Period = Period::seconds(2),
        /// Commands that may be under way at once; more are refused at once.
        pub commands: usize = 4096,
    }
}

/// Where the store is. Shown without the password that a URL may hold.
#[derive(Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct StoreAddress(String);

impl StoreAddress {
    /// Takes an address over.
    pub fn new(address: impl Into<String>) -> Self {
        Self(address.into())
    }

    /// The address itself, password included.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Whether the store is the embedded one.
    pub fn is_memory(&self) -> bool {
        self.0 == super::MEMORY
    }

    /// The address as it may be shown.
    pub fn redacted(&self) -> String {
        let Some((scheme, rest)) = self.0.split_once("://") else {
            return self.0.clone();
        };
        match rest.rsplit_once('@') {
            Some((credentials, place)) => {
                let user = credentials.split(':').next().unwrap_or_default();
                format!("{scheme}://{user}:{}@{place}", super::REDACTED)
            }
            None => self.0.clone(),
        }
    }
}

impl fmt::Debug for StoreAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.redacted())
    }
}

impl fmt::Display for StoreAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.redacted())
    }
}

impl Serialize for StoreAddress {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.redacted())
    }
}

#[cfg(test)]
mod tests {
    use super::StoreAddress;

    #[test]
    fn a_password_is_never_shown() {
        let shown = |address: &str| StoreAddress::new(address).to_string();
        assert_eq!(shown("memory"), "memory");
        assert_eq!(shown("redis://cache:6379/1"), "redis://cache:6379/1");
        assert_eq!(
            shown("rediss://shoal:se@cret@cache:6379"),
            "rediss://shoal:(redacted)@cache:6379"
        );
    }
}
