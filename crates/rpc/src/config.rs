use std::time::Duration;

use shoal_ports::{ClusterSettings, settings};

use crate::Tls;

settings! {
    /// Limits and times of one side of a link. The two sides may differ.
    ///
    /// ```
    /// # use shoal_rpc::LinkConfig;
    /// let mut during_a_rollout = LinkConfig::default();
    /// during_a_rollout.cluster.protocol = 1;
    /// ```
    #[derive(Clone, Debug)]
    pub struct LinkConfig {
        /// The cluster. Shoal replaces an unsupported `protocol` by the nearest supported version.
        pub cluster: ClusterSettings = ClusterSettings::default(),
        /// Maximum unread bytes of one flight. Beyond it, the sender waits.
        pub credit: u64 = 256 * 1024,
        /// Maximum bytes of a frame from the peer. The peer learns this limit in the handshake and refuses to send
        /// larger frames.
        pub max_frame: usize = 16 * 1024 * 1024,
        /// Maximum bytes that wait to be sent on one link. Beyond it, the link refuses calls and posts, and events
        /// wait.
        pub max_queued: usize = 64 * 1024 * 1024,
        /// Maximum time for the connection and for the first frames.
        pub handshake_timeout: Duration = Duration::from_secs(3),
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

impl LinkConfig {
    /// How long the peer may be silent before this side pings it, and then after the ping.
    pub(crate) fn ping_after(&self) -> Duration {
        self.cluster.silence.get() / 2
    }
}
