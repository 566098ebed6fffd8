//! Messages on their way to a server, through a bounded queue.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use bytes::Bytes;
use shoal_ports::Caller;
use shoal_protocol::{Method, RawJson};
use tokio::sync::oneshot;

/// Messages that may wait for a server that does not read.
pub(crate) const QUEUE: usize = 64;

/// A message on its way to a server.
pub(crate) struct OutgoingMessage {
    /// One JSON-RPC message.
    pub(crate) text: Bytes,
    /// The method of a request or a notification; answers have none.
    pub(crate) method: Option<Method>,
    /// What else there is to know of a request.
    pub(crate) request: Option<OutgoingRequest>,
}

/// A request on its way to a server.
pub(crate) struct OutgoingRequest {
    /// Its id.
    pub(crate) id: u64,
    /// For whom it is; nobody in particular where it is Shoal's own.
    pub(crate) caller: Option<Arc<Caller>>,
    /// Its parameters, which some transports repeat beside the message.
    pub(crate) params: Option<RawJson>,
    /// Where it stands.
    pub(crate) write_state: Arc<WriteState>,
    /// Ends when nobody waits for the answer any more.
    pub(crate) given_up: oneshot::Receiver<()>,
}

/// Whether a request has reached the server: what decides between "not executed" and "unknown".
#[derive(Default)]
pub(crate) struct WriteState(AtomicU8);

const QUEUED: u8 = 0;
const WRITTEN: u8 = 1;
const WITHDRAWN: u8 = 2;

impl WriteState {
    /// Takes the request back. Returns whether it was still queued: then it will never be written.
    pub(crate) fn withdraw(&self) -> bool {
        self.leave_queue(WITHDRAWN)
    }

    /// Whether writing has begun.
    pub(crate) fn is_written(&self) -> bool {
        self.0.load(Ordering::Acquire) == WRITTEN
    }

    /// Marks the request as written. Returns `false` if it has been taken back.
    pub(crate) fn begin_writing(&self) -> bool {
        self.leave_queue(WRITTEN)
    }

    fn leave_queue(&self, to: u8) -> bool {
        self.0
            .compare_exchange(QUEUED, to, Ordering::AcqRel, Ordering::Acquire)
            .is_ok()
    }
}
