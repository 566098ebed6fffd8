use std::time::Duration;

use shoal_ports::settings;

use crate::Tls;
use crate::link::versions::HIGHEST;

settings! {
    /// Limits and times of one side of a link. The two sides may differ.
    ///
    /// ```
    /// # use shoal_rpc::LinkConfig;
    /// let during_a_rollout = LinkConfig { max_version: 1, ..LinkConfig::default() };
    /// ```
    #[derive(Clone, Debug)]
    pub struct LinkConfig {
        /// Highest version of the frame protocol. Set an older version while releases are mixed.
        /// Shoal replaces an unsupported value by the nearest supported version.
        pub max_version: u32 = HIGHEST,
        /// Maximum unread bytes of one flight. Beyond it, the sender waits.
        pub credit: u64 = 256 * 1024,
        /// Maximum bytes of a frame from the peer. The peer learns this limit in the handshake and refuses to send
        /// larger frames.
        pub max_frame: usize = 16 * 1024 * 1024,
        /// Maximum bytes that wait to be sent on one link. Beyond it, the link refuses calls and posts, and events
        /// wait.
        pub max_queued: usize = 64 * 1024 * 1024,
        /// How long the peer may be silent before this side pings it.
        pub ping_after: Duration = Duration::from_secs(2),
        /// How long the peer may stay silent after the ping. Then this side closes the link.
        pub ping_timeout: Duration = Duration::from_secs(3),
        /// Maximum time for the connection and for the first frames.
        pub handshake_timeout: Duration = Duration::from_secs(3),
        /// How long a worker stays a member after its link breaks, because it may reconnect.
        pub rejoin: Duration = Duration::from_secs(5),
        /// Pause after the first failed attempt to connect. Each further failure doubles it, with jitter.
        pub backoff: Duration = Duration::from_millis(50),
        /// Maximum pause between attempts to connect.
        pub backoff_max: Duration = Duration::from_secs(2),
        /// How long a worker waits for a call's first event before it reports the call as accepted.
        pub accept_after: Duration = Duration::from_millis(1),
        /// Minimum time between two load reports of a worker.
        pub load_interval: Duration = Duration::from_millis(50),
        /// Certificates for mutual TLS. If unset, links are plaintext.
        pub tls: Option<Tls> = None,
    }
}
