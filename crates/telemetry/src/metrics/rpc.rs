use super::area::area;
use super::http::Direction;
use super::labels::{KIND, labels};

area! {
    /// The metrics of links between processes.
    RpcMetrics {
        /// Observes links that are up.
        pub observe_links: UpDownCounter(u64) [kind: LinkKind]
            = "shoal.rpc.links", "{link}", "Links to other processes.";
        /// Counts a link that came up.
        pub connected: Counter [kind: LinkKind]
            = "shoal.rpc.connects", "{link}", "Links that came up.";
        /// Counts a link that broke.
        pub disconnected: Counter [kind: LinkKind]
            = "shoal.rpc.disconnects", "{link}", "Links that broke.";
        frames: Counter [kind: LinkKind, direction: Direction]
            = "shoal.rpc.frames", "{frame}", "Messages on links.";
        /// Counts a flow on a link that ran out of credit.
        pub stalled: Counter [kind: LinkKind]
            = "shoal.rpc.stalls", "{stall}",
            "Waits of calls and streams for a slow reader.";
        bytes: Sum [kind: LinkKind, direction: Direction]
            = "shoal.rpc.io", "By", "Bytes of messages on links.";
    }
}

labels! {
    /// The kind of a link.
    LinkKind: KIND {
        /// Edge to session node.
        Gateway = "gateway",
        /// Node to worker.
        Worker = "worker",
    }
}

impl RpcMetrics {
    /// Records a message of `bytes` bytes on a link.
    pub fn frame(&self, kind: LinkKind, direction: Direction, bytes: u64) {
        self.frames(kind, direction);
        self.bytes(kind, direction, bytes);
    }
}
