//! The settings of the store.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use shoal_ports::{Backoff, Secret, settings};

settings! {
    /// How the ports are kept in Redis.
    #[derive(Clone)]
    pub struct RedisConfig {
        /// Where Redis is: `redis://[user[:password]@]host[:port][/db]`, `rediss://` (TLS),
        /// `redis+unix:///path[?db=n]`, `redis+cluster://host:port,host:port`,
        /// `redis+sentinel://host:port,host:port/<master-name>[/db]`; the latter two also as `rediss+…`. User
        /// and password are percent-encoded.
        pub url: String = "redis://127.0.0.1:6379".to_owned(),
        /// Stands before every key and channel; deployments that share a Redis need different ones.
        pub key_prefix: String = "shoal".to_owned(),
        /// Events kept per stream; the oldest go first.
        pub events_per_stream: usize = 10_000,
        /// Bytes of events per session; beyond it the session's oldest finished streams go, then appends
        /// are refused.
        pub bytes_per_session: usize = 16 << 20,
        /// How long, at least, a finished stream can be resumed, and an event of the standalone stream can be
        /// read again.
        pub retention: Duration = Duration::from_secs(60),
        /// How long a command waits for its reply.
        pub response_timeout: Duration = Duration::from_secs(2),
        /// How long one attempt to connect may take, with TLS and authentication.
        pub connect_timeout: Duration = Duration::from_secs(5),
        /// The longest wait between two attempts to connect; they begin at 50 ms and double.
        pub longest_backoff: Duration = Duration::from_secs(2),
        /// Commands that wait for Redis at one time; beyond it they are refused at once.
        pub max_in_flight: usize = 4096,
        /// The user to log in as, if the URL names none.
        pub user: Option<String> = None,
        /// The password to log in with, if the URL has none.
        pub password: Option<Password> = None,
        /// The certificates, if the URL asks for TLS.
        pub tls: TlsConfig = TlsConfig::default(),
        /// The sentinels, where they differ from the servers.
        pub sentinel: SentinelConfig = SentinelConfig::default(),
    }
}

/// A password. Files are read for each connection and trimmed.
#[derive(Clone)]
pub enum Password {
    /// The password itself.
    Value(Secret),
    /// The file that contains it.
    File(PathBuf),
}

/// TLS to Redis. The PEM files are read for each connection.
#[derive(Clone, Default)]
pub struct TlsConfig {
    /// The trusted authorities; `None` for the operating system's.
    pub authority: Option<PathBuf>,
    /// Shoal's own certificate, with its chain.
    pub certificate: Option<PathBuf>,
    /// The certificate's private key.
    pub key: Option<PathBuf>,
}

/// Access to the sentinels.
#[derive(Clone, Default)]
pub struct SentinelConfig {
    /// The user at the sentinels.
    pub user: Option<String>,
    /// The password at the sentinels. If unset, they get the servers' login on request.
    pub password: Option<Password>,
    /// Whether the sentinels use TLS; `None` for the servers' setting.
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
            .field("events_per_stream", &self.events_per_stream)
            .field("bytes_per_session", &self.bytes_per_session)
            .field("retention", &self.retention)
            .field("response_timeout", &self.response_timeout)
            .field("connect_timeout", &self.connect_timeout)
            .field("longest_backoff", &self.longest_backoff)
            .field("max_in_flight", &self.max_in_flight)
            .finish_non_exhaustive()
    }
}
