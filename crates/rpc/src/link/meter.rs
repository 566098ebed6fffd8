//! Which links are up, and what metrics are told when one comes or goes.

use std::sync::Once;
use std::sync::atomic::{AtomicU64, Ordering};

use shoal_telemetry::metrics::{LinkKind, metrics};

use crate::error::LinkError;

static WORKERS: AtomicU64 = AtomicU64::new(0);
static GATEWAYS: AtomicU64 = AtomicU64::new(0);
static OBSERVED: Once = Once::new();

/// A link that is up, until this is dropped.
pub(crate) struct Up(LinkKind);

impl Up {
    /// A link was agreed upon.
    pub(crate) fn new(kind: LinkKind) -> Self {
        // Those of the whole process, so that there is a zero when the last one has gone.
        OBSERVED.call_once(|| {
            let links = metrics().rpc.observe_links(|report| {
                for kind in [LinkKind::Worker, LinkKind::Gateway] {
                    report(kind, open(kind).load(Ordering::Relaxed));
                }
            });
            links.forever();
        });
        open(kind).fetch_add(1, Ordering::Relaxed);
        metrics().rpc.connected(kind);
        Self(kind)
    }

    /// The link has ended for this reason; it broke, unless one of the two left.
    pub(crate) fn ended(self, why: &LinkError) {
        if !matches!(why, LinkError::Left(_) | LinkError::Closed(_)) {
            metrics().rpc.disconnected(self.0);
        }
    }
}

impl Drop for Up {
    fn drop(&mut self) {
        open(self.0).fetch_sub(1, Ordering::Relaxed);
    }
}

fn open(kind: LinkKind) -> &'static AtomicU64 {
    match kind {
        LinkKind::Worker => &WORKERS,
        LinkKind::Gateway => &GATEWAYS,
    }
}
