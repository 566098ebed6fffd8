//! The limits and times of links, in one place.

use std::time::Duration;

use crate::Tls;

/// How links behave. Both sides of a link have one of their own; they need not be equal.
///
/// ```
/// # use shoal_rpc::LinkConfig;
/// let during_a_rollout = LinkConfig { max_version: 1, ..LinkConfig::default() };
/// ```
#[derive(Clone, Debug)]
pub struct LinkConfig {
    /// The highest version of the frame protocol that is spoken, to pin an older one while releases are
    /// mixed. Default: 4, the newest. Values outside of what this release speaks take the nearest.
    pub max_version: u32,
    /// Bytes of one flight that a reader may be behind before its sender waits. Default: 256 KiB.
    pub credit: u64,
    /// The longest frame, in bytes, that is accepted; what is longer is refused by its sender, which is
    /// told of this limit. Default: 16 MiB.
    pub max_frame: usize,
    /// Bytes that may wait to be sent on one link before calls and posts are refused and events wait.
    /// Default: 64 MiB.
    pub max_queued: usize,
    /// How long nothing may arrive before the peer is asked whether it is there. Default: 2 s.
    pub ping_after: Duration,
    /// How long nothing may arrive after that before the peer is given up. Default: 3 s.
    pub ping_timeout: Duration,
    /// How long a TCP connection and the first frames may take. Default: 3 s.
    pub handshake_timeout: Duration,
    /// How long a worker whose link broke stays a member, since it may come back. Default: 5 s.
    pub rejoin: Duration,
    /// The wait after the first failed attempt to connect; doubles with each further one, with jitter.
    /// Default: 50 ms.
    pub backoff: Duration,
    /// The longest wait between attempts to connect. Default: 2 s.
    pub backoff_max: Duration,
    /// How long a worker waits for a call's first event before it reports the call as accepted. Default:
    /// 1 ms.
    pub accept_after: Duration,
    /// How often a worker reports its load at most. Default: 50 ms.
    pub load_interval: Duration,
    /// The certificates that both sides show each other; without it links are plaintext. Default: none.
    pub tls: Option<Tls>,
}

impl Default for LinkConfig {
    fn default() -> Self {
        Self {
            max_version: 4,
            credit: 256 * 1024,
            max_frame: 16 * 1024 * 1024,
            max_queued: 64 * 1024 * 1024,
            ping_after: Duration::from_secs(2),
            ping_timeout: Duration::from_secs(3),
            handshake_timeout: Duration::from_secs(3),
            rejoin: Duration::from_secs(5),
            backoff: Duration::from_millis(50),
            backoff_max: Duration::from_secs(2),
            accept_after: Duration::from_millis(1),
            load_interval: Duration::from_millis(50),
            tls: None,
        }
    }
}
