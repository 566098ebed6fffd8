use std::sync::Once;
use std::sync::atomic::{AtomicU64, Ordering};

use shoal_telemetry::metrics::{LinkKind, metrics};

use crate::error::LinkError;

static WORKERS: AtomicU64 = AtomicU64::new(0);
static GATEWAYS: AtomicU64 = AtomicU64::new(0);
static OBSERVED: Once = Once::new();

/// Counts a link as open until dropped.
pub(crate) struct Up(LinkKind);

impl Up {
    pub(crate) fn new(kind: LinkKind) -> Self {
        // Registered once, so that the gauge shows zero after the last link.
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
