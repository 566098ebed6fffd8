//! What is counted of the streams of a node.

use std::sync::atomic::AtomicUsize;

/// Counts over all streams of a node.
#[derive(Debug, Default)]
pub(crate) struct StreamCounters {
    /// Connections that read a stream now.
    pub(crate) open: AtomicUsize,
    /// Streams resumed.
    pub(crate) resumed: AtomicUsize,
    /// Resumes refused because history was gone.
    pub(crate) gone: AtomicUsize,
    /// Connections cut because they did not read.
    pub(crate) cut: AtomicUsize,
}
