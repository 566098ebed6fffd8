use std::sync::atomic::AtomicUsize;

#[derive(Debug, Default)]
pub(crate) struct StreamCounters {
    pub(crate) open: AtomicUsize,
    pub(crate) resumed: AtomicUsize,
    pub(crate) gone: AtomicUsize,
    pub(crate) cut: AtomicUsize,
}
