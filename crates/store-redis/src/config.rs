use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use shoal_ports::{Backoff, Secret, StreamSettings, settings};

settings! {
    /// Settings of the connection to Redis, and of stored events.
    #[derive(Clone)]
    pub struct RedisConfig {
        /// URL of Redis: `redis://[user[:password]@]host[:port][/db]`, `rediss://` (TLS), `redis+unix:///path[?db=n]`,
        /// `redis+cluster://host:port,host:port`, `redis+sentinel://host:port,host:port/<master-name>[/db]`. For TLS,
        /// the last two begin with `rediss+`. User and password are percent-encoded.
        pub url: String = "redis://127.0.0.1:6379".to_owned(),
        /// Prefix of every key and channel. Deployments that share a Redis need different prefixes.
        pub key_prefix: String = "shoal".to_owned(),
        /// How many events the store keeps, and for how long.
        pub streams: StreamSettings = StreamSettings::default(),
        /// Maximum time of a Redis command.
        pub response_timeout: Duration = Duration::from_secs(2),
        /// Maximum time of one attempt to connect, including TLS and authentication.
        pub connect_timeout: Duration = Duration::from_secs(5),
        /// Maximum pause between attempts to connect. Pauses begin at 50 ms and double.
        pub longest_backoff: Duration = Duration::from_secs(2),
        /// Maximum concurrent commands. The store refuses further commands at once.
        pub max_in_flight: usize = 4096,
        /// User name for Redis, if the URL has none.
        pub user: Option<String> = None,
        /// Password for Redis, if the URL has none.
        pub password: Option<Password> = None,
        /// TLS certificates, used if the URL asks for TLS.
        pub tls: TlsConfig = TlsConfig::default(),
        /// Access to the sentinels, if it differs from access to the servers.
        pub sentinel: SentinelConfig = SentinelConfig::default(),
    }
}

/// Password. The store reads and trims a password file for each connection.
#[derive(Clone)]
pub enum Password {
    /// The password itself.
    Value(Secret),
    /// File that contains the password.
    File(PathBuf),
}

/// TLS to Redis. The store reads the PEM files for each connection.
#[derive(Clone, Default)]
pub struct TlsConfig {
    /// File of trusted authorities. If unset, the store trusts the operating system's.
    pub authority: Option<PathBuf>,
    /// File of Shoal's own certificate, with its chain.
    pub certificate: Option<PathBuf>,
    /// File of the certificate's private key.
    pub key: Option<PathBuf>,
}

/// Access to the sentinels.
#[derive(Clone, Default)]
pub struct SentinelConfig {
    /// User name for the sentinels.
    pub user: Option<String>,
    /// Password for the sentinels. If unset, the store sends the servers' login when a sentinel asks for one.
    pub password: Option<Password>,
    /// Uses TLS for the sentinels. If unset, the servers' setting applies.
    pub tls: Option<bool>,
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
            .field("key_prefix", &self.key_prefix)
            .field("streams", &self.streams)
            .field("response_timeout", &self.response_timeout)
            .field("connect_timeout", &self.connect_timeout)
            .field("longest_backoff", &self.longest_backoff)
            .field("max_in_flight", &self.max_in_flight)
            .finish_non_exhaustive()
    }
}
