use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use bytes::Bytes;
use shoal_ports::Caller;
use shoal_protocol::{Method, RawJson};
use tokio::sync::oneshot;

pub(crate) const QUEUE: usize = 64;

pub(crate) struct OutgoingMessage {
    pub(crate) text: Bytes,
    pub(crate) method: Option<Method>,
    pub(crate) request: Option<OutgoingRequest>,
}

pub(crate) struct OutgoingRequest {
    pub(crate) id: u64,
    pub(crate) caller: Option<Arc<Caller>>,
    pub(crate) params: Option<RawJson>,
    pub(crate) write_state: Arc<WriteState>,
    pub(crate) given_up: oneshot::Receiver<()>,
}

/// How far a request is written, which decides between `NotExecuted` and `OutcomeUnknown` when the connection
/// ends.
#[derive(Default)]
pub(crate) struct WriteState(AtomicU8);

const QUEUED: u8 = 0;
const WRITTEN: u8 = 1;
const WITHDRAWN: u8 = 2;

impl WriteState {
    pub(crate) fn withdraw(&self) -> bool {
        self.leave_queue(WITHDRAWN)
    }

    pub(crate) fn is_written(&self) -> bool {
        self.0.load(Ordering::Acquire) == WRITTEN
    }

    pub(crate) fn begin_writing(&self) -> bool {
        self.leave_queue(WRITTEN)
    }

    fn leave_queue(&self, to: u8) -> bool {
        self.0
            .compare_exchange(QUEUED, to, Ordering::AcqRel, Ordering::Acquire)
            .is_ok()
    }
}
