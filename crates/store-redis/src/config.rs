use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shoal_ports::{Backoff, Period, SecretSource, StreamSettings, settings};

settings! {
    /// Settings of the connection to Redis, and of stored events.
    #[derive(Clone)]
    pub struct RedisConfig {
        /// URL of Redis: `redis://[user[:password]@]host[:port][/db]`, `rediss://` (TLS), `redis+unix:///path[?db=n]`,
        /// `redis+cluster://host:port,host:port`, `redis+sentinel://host:port,host:port/<master-name>[/db]`. For TLS,
        /// the last two begin with `rediss+`. User and password are percent-encoded.
        pub url: String = "redis://127.0.0.1:6379".to_owned(),
        /// Connections.
        pub redis: RedisSettings = RedisSettings::default(),
        /// How many events the store keeps, and for how long.
        pub streams: StreamSettings = StreamSettings::default(),
        /// Maximum pause between attempts to connect. Pauses begin at 50 ms and double.
        pub longest_backoff: Duration = Duration::from_secs(2),
    }
}

settings! {
    /// Connections to Redis, whose address is `node.store`.
    #[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
    #[serde(default, deny_unknown_fields, expecting = "a table")]
    #[schemars(rename = "Redis")]
    pub struct RedisSettings {
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

impl RedisConfig {
    pub(crate) fn backoff(&self) -> Backoff {
        Backoff::new(Duration::from_millis(50), self.longest_backoff)
    }
}

/// Omits the URL, which may hold a password.
impl fmt::Debug for RedisConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisConfig")
            .field("redis", &self.redis)
            .field("streams", &self.streams)
            .field("longest_backoff", &self.longest_backoff)
            .finish_non_exhaustive()
    }
}
