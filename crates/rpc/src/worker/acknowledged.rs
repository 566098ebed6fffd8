//! Calls whose ends are safe, until their worker is told.

use parking_lot::Mutex;
use shoal_ports::CallId;

use crate::convert::call::id_out;
use crate::proto::worker::v1::Acknowledge;
use crate::proto::worker::v1::node_frame::Frame;

/// As many are told at once, at the latest.
const MOST: usize = 64;

/// Calls whose ends are safe and whose worker does not know that yet. It is told when it reports its load, which it does often
/// while calls end: so no call costs a frame of its own.
#[derive(Default)]
pub(super) struct Acknowledged(Mutex<Vec<CallId>>);

impl Acknowledged {
    /// One more; what to tell the worker, where that is due.
    pub(super) fn add(&self, call: CallId) -> Option<Frame> {
        let mut calls = self.0.lock();
        calls.push(call);
        (calls.len() >= MOST).then(|| frame(&mut calls))
    }

    /// What to tell the worker now, if anything.
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
