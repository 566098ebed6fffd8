use std::collections::VecDeque;
use std::task::Waker;

use super::super::frame::{Frame, LinkFrame};
use super::super::lanes::{Lanes, QueuedFrame};
use super::super::{BATCH_BYTES, BATCH_FRAMES, LONGEST_WHOLE};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum QueueStage {
    Open,
    Finished,
    Closed,
}

pub(super) struct FrameQueue<F> {
    short: VecDeque<(F, usize)>,
    pushed: u64,
    long: Lanes<F>,
    fragment_next: bool,
    pub(super) bytes: usize,
    pub(super) was_full: bool,
    pub(super) stage: QueueStage,
    last: Option<(F, usize)>,
    pub(super) batches: bool,
    /// Whether the first frame was sent. It travels alone, because it settles the version.
    begun: bool,
    pub(super) max_frame: usize,
    pub(super) waker: Option<Waker>,
}

impl<F: Frame> FrameQueue<F> {
    pub(super) fn new() -> Self {
        Self {
            short: VecDeque::new(),
            pushed: 0,
            long: Lanes::new(),
            fragment_next: false,
            bytes: 0,
            was_full: false,
            stage: QueueStage::Open,
            last: None,
            batches: false,
            begun: false,
            max_frame: LONGEST_WHOLE,
            waker: None,
        }
    }

    pub(super) fn push(&mut self, flight: u64, frame: QueuedFrame<F>) {
        self.bytes += frame.bytes();
        match frame {
            QueuedFrame::Whole(frame, bytes) if !self.long.hold(flight) => {
                self.push_short(frame, bytes);
            }
            frame => self.long.push(flight, frame, self.pushed),
        }
    }

    pub(super) fn push_now(&mut self, frame: F, bytes: usize) {
        self.bytes += bytes;
        self.push_short(frame, bytes);
    }

    pub(super) fn finish(&mut self, last: Option<F>) {
        if self.stage == QueueStage::Open {
            self.stage = QueueStage::Finished;
            self.last = last.map(|last| {
                let bytes = last.encoded_len();
                self.bytes += bytes;
                (last, bytes)
            });
        }
    }

    pub(super) fn clear(&mut self) -> (VecDeque<(F, usize)>, Lanes<F>) {
        self.bytes = 0;
        self.last = None;
        (std::mem::take(&mut self.short), self.long.take())
    }

    fn push_short(&mut self, frame: F, bytes: usize) {
        self.pushed += 1;
        self.short.push_back((frame, bytes));
    }

    /// Returns the bytes that the message frees.
    pub(super) fn pull(&mut self) -> Option<(F, usize)> {
        let fragment_due = self.fragment_next || self.short.is_empty();
        self.fragment_next = !fragment_due;
        if fragment_due && let Some(fragment) = self.pull_fragment() {
            return Some(fragment);
        }
        let Some((first, mut bytes)) = self.short.pop_front() else {
            return self.last.take();
        };
        let begun = std::mem::replace(&mut self.begun, true);
        if !begun || !self.batches || !self.fits(1, bytes) {
            return Some((first, bytes));
        }
        let mut frames = Vec::with_capacity((self.short.len() + 1).min(BATCH_FRAMES));
        frames.push(first);
        while self.fits(frames.len(), bytes)
            && let Some((frame, more)) = self.short.pop_front()
        {
            frames.push(frame);
            bytes += more;
        }
        Some((F::of_link(LinkFrame::Batch(frames)), bytes))
    }

    fn fits(&self, frames: usize, bytes: usize) -> bool {
        let next = self.short.front();
        next.is_some_and(|(_, more)| frames < BATCH_FRAMES && bytes + more <= BATCH_BYTES)
    }

    fn pull_fragment(&mut self) -> Option<(F, usize)> {
        if self.long.is_empty() {
            return None;
        }
        let sent = self.pushed - self.short.len() as u64;
        let next = self.long.next(sent)?;
        for (frame, bytes) in next.freed {
            self.push_short(frame, bytes);
        }
        self.long.resume_after(self.pushed);
        Some((next.fragment, next.bytes))
    }
}
