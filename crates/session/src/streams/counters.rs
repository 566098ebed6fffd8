//! Stream counters of a node.

use std::sync::atomic::AtomicUsize;

#[derive(Debug, Default)]
pub(crate) struct StreamCounters {
    /// Current readers.
    pub(crate) open: AtomicUsize,
    pub(crate) resumed: AtomicUsize,
    /// Resumes refused because history was missing.
    pub(crate) gone: AtomicUsize,
    /// Connections closed because they did not read.
    pub(crate) cut: AtomicUsize,
}
