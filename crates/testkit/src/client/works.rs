use std::sync::atomic::{AtomicU64, Ordering};

use crate::history::{Tool, Work};

#[derive(Debug)]
pub(super) struct Works {
    client: usize,
    next: AtomicU64,
}

impl Works {
    pub(super) fn of(client: usize) -> Self {
        Self {
            client,
            next: AtomicU64::new(1),
        }
    }

    pub(super) fn next(&self, tool: Tool, steps: u32, ms: u64) -> Work {
        let call = self.next.fetch_add(1, Ordering::Relaxed);
        Work {
            call,
            tool,
            nonce: format!("nonce-{}-{call}", self.client),
            steps,
            ms,
        }
    }
}
