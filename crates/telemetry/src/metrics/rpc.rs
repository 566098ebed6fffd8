//! Links between processes.

use super::area::area;
use super::http::Direction;
use super::labels::{KIND, labels};

area! {
    /// Links between processes.
    RpcMetrics {
        /// How many links are up, by kind.
        pub observe_links: UpDownCounter(u64) [kind: LinkKind]
            = "shoal.rpc.links", "{link}", "Links that are up.";
        /// A link came up.
        pub connected: Counter [kind: LinkKind]
            = "shoal.rpc.connects", "{link}", "Links established.";
        /// A link broke.
        pub disconnected: Counter [kind: LinkKind]
            = "shoal.rpc.disconnects", "{link}", "Links that broke.";
        frames: Counter [kind: LinkKind, direction: Direction]
            = "shoal.rpc.frames", "{frame}", "Messages on links.";
        /// The credit of something that goes over a link is used up.
        pub stalled: Counter [kind: LinkKind]
            = "shoal.rpc.stalls", "{stall}",
            "Times that a call or stream had to wait for its reader.";
        bytes: Sum [kind: LinkKind, direction: Direction]
            = "shoal.rpc.io", "By", "Bytes of messages on links.";
    }
}

labels! {
    /// The kind of a link.
    LinkKind: KIND {
        /// An edge and a session owner.
        Gateway = "gateway",
        /// A node and a worker.
        Worker = "worker",
    }
}

impl RpcMetrics {
    /// Records a message of `bytes`.
    pub fn frame(&self, kind: LinkKind, direction: Direction, bytes: u64) {
        self.frames(kind, direction);
        self.bytes(kind, direction, bytes);
    }
}
