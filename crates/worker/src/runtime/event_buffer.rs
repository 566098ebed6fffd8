//! The events of one call, numbered and kept within bounds.

use std::collections::VecDeque;

use shoal_ports::{AskId, CallEvent, CallEventKind, CallFailure, CallOutcome, Retry};

/// Events of one call that are kept for readers. Enough to bridge the time in which a session moves to
/// another node.
const KEPT_EVENTS: usize = 256;
/// Bytes of events that are kept, since one log message may be as long as the tool likes.
const KEPT_BYTES: usize = 1024 * 1024;
/// What an event weighs beside its texts.
const EVENT_WEIGHT: usize = 128;

/// The events that a call has sent and that somebody may still read.
///
/// Beyond the bounds the oldest notifications go; questions that are open and the end never do.
#[derive(Default)]
pub(super) struct EventBuffer {
    kept: VecDeque<CallEvent>,
    // Apart from the others, so that a call that sends nothing else allocates no queue.
    end: Option<CallEvent>,
    last: u64,
    bytes: usize,
}

impl EventBuffer {
    /// The number of the newest event; 0 before the first.
    pub(super) fn last(&self) -> u64 {
        self.last
    }

    /// Whether the call has ended.
    pub(super) fn has_ended(&self) -> bool {
        self.end.is_some()
    }

    /// Whether the call has ended because it was lost: one that is safe to repeat has not had its end yet.
    pub(super) fn was_lost(&self) -> bool {
        let end = self.end.as_ref().map(|event| &event.kind);
        let Some(CallEventKind::Finished(CallOutcome::Failed(failure))) = end else {
            return false;
        };
        failure.retry() == Retry::Safe || matches!(failure, CallFailure::OutcomeUnknown { .. })
    }

    /// What the kept events weigh.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether one more notification fits without dropping one after `read`.
    pub(super) fn has_room(&mut self, read: u64) -> bool {
        self.trim(read);
        let all_read = self.kept.back().is_none_or(|event| event.sequence <= read);
        all_read || (self.kept.len() < KEPT_EVENTS && self.bytes < KEPT_BYTES)
    }

    /// Adds an event; drops old ones up to number `read` where the bounds demand it.
    pub(super) fn push(&mut self, kind: CallEventKind, read: u64) {
        let event = self.number(kind);
        self.kept.push_back(event);
        self.trim(read);
    }

    /// Adds the last event.
    pub(super) fn end(&mut self, outcome: CallOutcome) {
        self.end = Some(self.number(CallEventKind::Finished(outcome)));
    }

    /// Whether a reader of everything up to number `read` has this question.
    pub(super) fn has_sent(&self, ask: AskId, read: u64) -> bool {
        let mut sent = self.kept.iter().take_while(|event| event.sequence <= read);
        sent.any(|event| matches!(event.kind, CallEventKind::Ask { ask: id, .. } if id == ask))
    }

    /// Forgets a question that needs no answer any more, so that no later reader puts it again.
    pub(super) fn forget_ask(&mut self, ask: AskId) {
        let is_it = |event: &CallEvent| match event.kind {
            CallEventKind::Ask { ask: id, .. } | CallEventKind::State { ask: id, .. } => id == ask,
            _ => false,
        };
        if let Some(at) = self.kept.iter().position(is_it) {
            self.remove(at);
        }
    }

    /// Numbers the requests to the session up to number `after` anew, as the newest events: an owner that has
    /// seen one may be lost with the answer, and nobody else can give it.
    pub(super) fn renew_state(&mut self, after: u64) {
        let is_it = |event: &CallEvent| {
            event.sequence <= after && matches!(event.kind, CallEventKind::State { .. })
        };
        while let Some(at) = self.kept.iter().position(is_it) {
            if let Some(event) = self.remove(at) {
                let event = self.number(event.kind);
                self.kept.push_back(event);
            }
        }
    }

    /// The first kept event after number `after`.
    pub(super) fn next_after(&self, after: u64) -> Option<&CallEvent> {
        let at = self.kept.partition_point(|event| event.sequence <= after);
        self.kept
            .get(at)
            .or(self.end.as_ref().filter(|end| end.sequence > after))
    }

    fn number(&mut self, kind: CallEventKind) -> CallEvent {
        self.last += 1;
        self.bytes += weight(&kind);
        CallEvent {
            sequence: self.last,
            kind,
        }
    }

    fn trim(&mut self, read: u64) {
        while self.kept.len() > KEPT_EVENTS || self.bytes > KEPT_BYTES {
            let droppable = |event: &CallEvent| {
                let is_open = matches!(
                    event.kind,
                    CallEventKind::Ask { .. } | CallEventKind::State { .. }
                );
                event.sequence <= read && !is_open
            };
            match self.kept.iter().position(droppable) {
                Some(at) => drop(self.remove(at)),
                None => return,
            }
        }
    }

    fn remove(&mut self, at: usize) -> Option<CallEvent> {
        let event = self.kept.remove(at)?;
        self.bytes -= weight(&event.kind);
        Some(event)
    }
}

fn weight(kind: &CallEventKind) -> usize {
    let text = match kind {
        CallEventKind::Notification { params, .. } | CallEventKind::Ask { params, .. } => {
            params.as_ref().map_or(0, |params| params.len())
        }
        CallEventKind::State { request, .. } => request.len(),
        CallEventKind::CloseStream { .. } | CallEventKind::Withdrawn { .. } => 0,
        CallEventKind::Finished(CallOutcome::Result(result)) => result.len(),
        CallEventKind::Finished(CallOutcome::Error(error) | CallOutcome::Refused(error)) => {
            error.message.len() + error.data.as_ref().map_or(0, |data| data.len())
        }
        CallEventKind::Finished(CallOutcome::Failed(_)) => 0,
    };
    text + EVENT_WEIGHT
}

#[cfg(test)]
mod tests;
