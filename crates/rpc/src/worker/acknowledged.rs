use parking_lot::Mutex;
use shoal_ports::CallId;

use crate::convert::call::id_out;
use crate::proto::worker::v1::Acknowledge;
use crate::proto::worker::v1::node_frame::Frame;

/// At this many calls, the node tells the worker at once.
const MOST: usize = 64;

/// Calls whose results the worker may drop. The node tells the worker after its next load report or
/// other sign of life, which saves a frame for each call.
#[derive(Default)]
pub(super) struct Acknowledged(Mutex<Vec<CallId>>);

impl Acknowledged {
    /// Returns the frame for the worker, if due.
    pub(super) fn add(&self, call: CallId) -> Option<Frame> {
        let mut calls = self.0.lock();
        calls.push(call);
        (calls.len() >= MOST).then(|| frame(&mut calls))
    }

    pub(super) fn take(&self) -> Option<Frame> {
        let mut calls = self.0.lock();
        (!calls.is_empty()).then(|| frame(&mut calls))
    }
}

fn frame(calls: &mut Vec<CallId>) -> Frame {
    Frame::Acknowledge(Acknowledge {
        calls: calls.drain(..).map(id_out).collect(),
    })
}
