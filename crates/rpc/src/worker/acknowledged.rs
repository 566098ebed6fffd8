//! Calls whose results are safe, until their worker is told.

use parking_lot::Mutex;
use shoal_ports::CallId;

use crate::convert::call::id_out;
use crate::proto::worker::v1::Acknowledge;
use crate::proto::worker::v1::node_frame::Frame;

/// With this number of calls, the worker is told at once.
const MOST: usize = 64;

/// The worker is told with its load reports, which are frequent while calls end, so a call needs no
/// frame of its own.
#[derive(Default)]
pub(super) struct Acknowledged(Mutex<Vec<CallId>>);

impl Acknowledged {
    /// Returns the frame for the worker, if it is due.
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
