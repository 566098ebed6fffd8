//! The calls that a client makes, each with a number and a nonce of its own.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::history::{Tool, Work};

/// The calls of one client.
#[derive(Debug)]
pub(super) struct Works {
    client: usize,
    next: AtomicU64,
}

impl Works {
    /// Those of the client of this number.
    pub(super) fn of(client: usize) -> Self {
        Self {
            client,
            next: AtomicU64::new(1),
        }
    }

    /// The next one.
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
