use super::area::area;
use super::http::Direction;
use super::labels::{KIND, labels};

area! {
    /// The metrics of links between processes.
    RpcMetrics {
        /// Observes links that are up.
        pub observe_links: UpDownCounter(u64) [kind: LinkKind]
            = "shoal.rpc.links", "{link}", "Links to other processes that are up.";
        /// Counts a link that came up.
        pub connected: Counter [kind: LinkKind]
            = "shoal.rpc.connects", "{link}", "Links to other processes that came up.";
        /// Counts a link that broke.
        pub disconnected: Counter [kind: LinkKind]
            = "shoal.rpc.disconnects", "{link}", "Links to other processes that broke.";
        frames: Counter [kind: LinkKind, direction: Direction]
            = "shoal.rpc.frames", "{frame}", "Messages on links to other processes.";
        /// Counts a flow on a link that ran out of credit.
        pub stalled: Counter [kind: LinkKind]
            = "shoal.rpc.stalls", "{stall}",
            "Times that a call or stream had to wait for its reader.";
        bytes: Sum [kind: LinkKind, direction: Direction]
            = "shoal.rpc.io", "By", "Bytes of messages on links to other processes.";
    }
}

labels! {
    /// The kind of a link.
    LinkKind: KIND {
        /// The link connects an edge and a session node.
        Gateway = "gateway",
        /// The link connects a node and a worker.
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
