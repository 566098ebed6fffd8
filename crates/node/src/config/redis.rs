use std::fmt;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};
use shoal_ports::settings;
use shoal_store_redis::{Password, RedisConfig, SentinelConfig, TlsConfig};

use super::{Period, SecretSource, StreamSettings};

settings! {
    /// Connections to Redis, whose address is `node.store`.
    #[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
    #[serde(default, deny_unknown_fields, expecting = "a table")]
    pub struct Redis {
        /// Prefix of all keys. Each deployment needs its own.
        pub prefix: String = "shoal".to_owned(),
        /// Time limit of a command.
        pub response_timeout: Period = Period::seconds(2),
        /// Time limit to connect.
        pub connect_timeout: Period = Period::seconds(2),
        /// Maximum commands in flight of one process.
        pub commands: usize = 4096,
        /// User name, if `node.store` has none.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub user: Option<String> = None,
        /// Password, if `node.store` has none: `{ file = "…" }`, read for each connection, or `{ value = "…" }`.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub password: Option<SecretSource> = None,
        /// TLS towards Redis (`rediss://`).
        pub tls: RedisTls = RedisTls::default(),
        /// Login at the Redis sentinels.
        pub sentinel: Sentinel = Sentinel::default(),
    }
}

settings! {
    /// Certificates towards Redis (`rediss://`). Shoal reads the files again for each connection.
    #[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
    #[serde(default, deny_unknown_fields, expecting = "a table")]
    pub struct RedisTls {
        /// PEM file: authorities of Redis's certificate; by default the system's.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub authority: Option<PathBuf> = None,
        /// PEM file: client certificate, then intermediates.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub certificate: Option<PathBuf> = None,
        /// PEM file: unencrypted private key.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub key: Option<PathBuf> = None,
    }
}

settings! {
    /// Login at the Redis sentinels.
    #[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
    #[serde(default, deny_unknown_fields, expecting = "a table")]
    pub struct Sentinel {
        /// User name.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub user: Option<String> = None,
        /// Password. If unset, Shoal uses the login of the Redis servers.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub password: Option<SecretSource> = None,
        /// Uses TLS to the sentinels; by default as to Redis.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub tls: Option<bool> = None,
    }
}

impl Redis {
    /// Creates the store's configuration.
    pub fn store(&self, store: &StoreAddress, streams: &StreamSettings) -> RedisConfig {
        RedisConfig {
            url: store.expose().to_owned(),
            key_prefix: self.prefix.clone(),
            streams: streams.clone(),
            response_timeout: self.response_timeout.get(),
            connect_timeout: self.connect_timeout.get(),
            max_in_flight: self.commands,
            user: self.user.clone(),
            password: self.password.clone().map(Password::from),
            tls: TlsConfig {
                authority: self.tls.authority.clone(),
                certificate: self.tls.certificate.clone(),
                key: self.tls.key.clone(),
            },
            sentinel: SentinelConfig {
                user: self.sentinel.user.clone(),
                password: self.sentinel.password.clone().map(Password::from),
                tls: self.sentinel.tls,
            },
            ..RedisConfig::default()
        }
    }
}

impl From<SecretSource> for Password {
    fn from(source: SecretSource) -> Self {
        match source {
            SecretSource::File(path) => Self::File(path),
            SecretSource::Value(password) => Self::Value(password),
        }
    }
}

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
