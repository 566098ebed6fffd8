use std::collections::{HashSet, VecDeque};

use bytes::Bytes;

use super::frame::{Frame, LinkFrame};
use super::{FRAGMENT, LANES};
use crate::proto::types::v1::Fragment;

pub(super) enum QueuedFrame<F> {
    Whole(F, usize),
    Long(Bytes),
}

impl<F> QueuedFrame<F> {
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Whole(_, bytes) => *bytes,
            Self::Long(encoded) => encoded.len(),
        }
    }
}

pub(super) struct DueFragment<F> {
    pub(super) fragment: F,
    pub(super) bytes: usize,
    /// Short frames of the same flight, with their lengths, that waited behind this last fragment.
    pub(super) freed: Vec<(F, usize)>,
}

/// One queue for each flight with long frames: holds those frames, and the flight's other frames that must stay behind
/// them.
pub(super) struct Lanes<F> {
    lanes: VecDeque<FrameLane<F>>,
    flights: HashSet<u64>,
}

struct FrameLane<F> {
    flight: u64,
    rest: Bytes,
    /// The first fragment waits until this many short frames were sent in all, because some may be of the same flight.
    after: u64,
    behind: VecDeque<QueuedFrame<F>>,
}

impl<F: Frame> Lanes<F> {
    pub(super) fn new() -> Self {
        Self {
            lanes: VecDeque::new(),
            flights: HashSet::new(),
        }
    }

    pub(super) fn take(&mut self) -> Self {
        std::mem::replace(self, Self::new())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lanes.is_empty()
    }

    pub(super) fn hold(&self, flight: u64) -> bool {
        !self.flights.is_empty() && self.flights.contains(&flight)
    }

    /// Queues a long frame, or any frame of a flight that has a lane. A new lane waits until `pushed` short frames were
    /// sent.
    pub(super) fn push(&mut self, flight: u64, frame: QueuedFrame<F>, pushed: u64) {
        if self.hold(flight) {
            let lane = self.lanes.iter_mut().find(|lane| lane.flight == flight);
            if let Some(lane) = lane {
                lane.behind.push_back(frame);
                return;
            }
        }
        if let QueuedFrame::Long(rest) = frame {
            self.flights.insert(flight);
            self.lanes.push_back(FrameLane {
                flight,
                rest,
                after: pushed,
                behind: VecDeque::new(),
            });
        }
    }

    /// Only the first [`LANES`] lanes take turns, because the receiver joins no more at a time.
    pub(super) fn next(&mut self, sent: u64) -> Option<DueFragment<F>> {
        let mut turns = self.lanes.iter().take(LANES);
        let turn = turns.position(|lane| lane.after <= sent)?;
        let mut lane = self.lanes.remove(turn)?;
        let data = lane.rest.split_to(lane.rest.len().min(FRAGMENT));
        let bytes = data.len();
        let last = lane.rest.is_empty();
        let fragment = F::of_link(LinkFrame::Fragment(Fragment {
            flight: lane.flight,
            data,
            last,
        }));
        let freed = if last {
            self.free(lane)
        } else {
            let turn = self.lanes.len().min(LANES - 1);
            self.lanes.insert(turn, lane);
            Vec::new()
        };
        Some(DueFragment {
            fragment,
            bytes,
            freed,
        })
    }

    /// Returns the short frames behind the lane's last fragment. The flight's next long frame begins a new lane.
    fn free(&mut self, mut lane: FrameLane<F>) -> Vec<(F, usize)> {
        let mut freed = Vec::new();
        self.flights.remove(&lane.flight);
        while let Some(frame) = lane.behind.pop_front() {
            match frame {
                QueuedFrame::Whole(frame, bytes) => freed.push((frame, bytes)),
                QueuedFrame::Long(rest) => {
                    lane.rest = rest;
                    lane.after = u64::MAX;
                    self.flights.insert(lane.flight);
                    self.lanes.push_back(lane);
                    break;
                }
            }
        }
        freed
    }

    /// Lets the lane that waits behind freed short frames send once `pushed` short frames were sent.
    pub(super) fn resume_after(&mut self, pushed: u64) {
        if let Some(lane) = self.lanes.back_mut().filter(|lane| lane.after == u64::MAX) {
            lane.after = pushed;
        }
    }
}
