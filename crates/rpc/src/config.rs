//! Limits and times of links.

use std::time::Duration;

use shoal_ports::settings;

use crate::Tls;
use crate::link::versions::HIGHEST;

settings! {
    /// How links behave. Both sides of a link have one of their own; they need not be equal.
    ///
    /// ```
    /// # use shoal_rpc::LinkConfig;
    /// let during_a_rollout = LinkConfig { max_version: 1, ..LinkConfig::default() };
    /// ```
    #[derive(Clone, Debug)]
    pub struct LinkConfig {
        /// The highest version of the frame protocol that is spoken, to pin an older one while releases are
        /// mixed. Values outside of what this release speaks take the nearest.
        pub max_version: u32 = HIGHEST,
        /// Bytes of one flight that a reader may be behind before its sender waits.
        pub credit: u64 = 256 * 1024,
        /// The longest frame, in bytes, that is accepted; what is longer is refused by its sender, which is
        /// told of this limit.
        pub max_frame: usize = 16 * 1024 * 1024,
        /// Bytes that may wait to be sent on one link before calls and posts are refused and events wait.
        pub max_queued: usize = 64 * 1024 * 1024,
        /// How long nothing may arrive before the peer is asked whether it is there.
        pub ping_after: Duration = Duration::from_secs(2),
        /// How long nothing may arrive after that before the peer is given up.
        pub ping_timeout: Duration = Duration::from_secs(3),
        /// How long a TCP connection and the first frames may take.
        pub handshake_timeout: Duration = Duration::from_secs(3),
        /// How long a worker whose link broke stays a member, since it may come back.
        pub rejoin: Duration = Duration::from_secs(5),
        /// The wait after the first failed attempt to connect; doubles with each further one, with jitter.
        pub backoff: Duration = Duration::from_millis(50),
        /// The longest wait between attempts to connect.
        pub backoff_max: Duration = Duration::from_secs(2),
        /// How long a worker waits for a call's first event before it reports the call as accepted.
        pub accept_after: Duration = Duration::from_millis(1),
        /// How often a worker reports its load at most.
        pub load_interval: Duration = Duration::from_millis(50),
        /// The certificates that both sides show each other; without it links are plaintext.
        pub tls: Option<Tls> = None,
    }
}
