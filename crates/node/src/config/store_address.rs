use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};

/// Where the store is. Shown without the password that a URL may hold.
#[derive(Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct StoreAddress(String);

impl StoreAddress {
    /// Creates an address.
    pub fn new(address: impl Into<String>) -> Self {
        Self(address.into())
    }

    /// Returns the address with its password.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Whether this is the embedded store.
    pub fn is_memory(&self) -> bool {
        self.0 == super::MEMORY
    }

    /// Returns the address without its password.
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
