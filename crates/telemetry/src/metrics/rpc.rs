//! Links between processes.

use super::definition::{Attribute, Kind, definitions};
use super::http::Direction;
use super::instrument::{Counter, Factory};
use super::labels::{DIRECTION, KIND, label, labels};
use super::observed::{Observed, Registration};

const LINKS: Attribute = Attribute::one_of(KIND, LinkKind::VALUES);

definitions! {
    OPEN = Kind::UpDownCounter, "shoal.rpc.links", "{link}",
        "Links that are up.", [LINKS];
    OPENED = Kind::Counter, "shoal.rpc.connects", "{link}",
        "Links that came up, for the first time or again.", [LINKS];
    LOST = Kind::Counter, "shoal.rpc.disconnects", "{link}",
        "Links that broke.", [LINKS];
    FRAMES = Kind::Counter, "shoal.rpc.frames", "{frame}",
        "Messages on links.",
        [LINKS, Attribute::one_of(DIRECTION, Direction::VALUES)];
    STALLS = Kind::Counter, "shoal.rpc.stalls", "{stall}",
        "Times that the credit of a call's events or of a stream was used up: what comes next waits for its reader.", [LINKS];
    BYTES = Kind::Counter, "shoal.rpc.io", "By",
        "Bytes of messages on links.",
        [LINKS, Attribute::one_of(DIRECTION, Direction::VALUES)];
}

labels! {
    /// Whom a link joins.
    LinkKind {
        /// An edge and a session owner.
        Gateway = "gateway",
        /// A node and a worker.
        Worker = "worker",
    }
}

/// Links between processes.
#[derive(Debug)]
pub struct RpcMetrics {
    open: Observed,
    opened: Counter,
    lost: Counter,
    frames: Counter,
    stalls: Counter,
    bytes: Counter,
}

impl RpcMetrics {
    pub(super) fn new(factory: &Factory) -> Self {
        Self {
            open: factory.observed(&OPEN),
            opened: factory.counter(&OPENED),
            lost: factory.counter(&LOST),
            frames: factory.counter(&FRAMES),
            stalls: factory.counter(&STALLS),
            bytes: factory.counter(&BYTES),
        }
    }

    /// How many links are up, by kind.
    pub fn observe_links(
        &self,
        read: impl Fn(&mut dyn FnMut(LinkKind, u64)) + Send + Sync + 'static,
    ) -> Registration {
        self.open.by(KIND, read)
    }

    /// A link came up.
    pub fn connected(&self, kind: LinkKind) {
        self.opened.add(1, || [label(KIND, kind.as_str())]);
    }

    /// A link broke.
    pub fn disconnected(&self, kind: LinkKind) {
        self.lost.add(1, || [label(KIND, kind.as_str())]);
    }

    /// The credit of something that goes over a link is used up.
    pub fn stalled(&self, kind: LinkKind) {
        self.stalls.add(1, || [label(KIND, kind.as_str())]);
    }

    /// A message of `bytes` went over a link.
    pub fn frame(&self, kind: LinkKind, direction: Direction, bytes: u64) {
        let attributes = || {
            [
                label(KIND, kind.as_str()),
                label(DIRECTION, direction.as_str()),
            ]
        };
        self.frames.add(1, attributes);
        self.bytes.add(bytes, attributes);
    }
}
