use std::collections::VecDeque;

use shoal_ports::{AskId, CallEvent, CallEventKind, CallFailure, CallOutcome, Retry};

/// Maximum kept events, enough until another node takes over the session.
const KEPT_EVENTS: usize = 256;
/// Maximum bytes of kept events, because log messages have no limit.
const KEPT_BYTES: usize = 1024 * 1024;
const EVENT_WEIGHT: usize = 128;

/// When the buffer is full, the oldest notifications go; open questions and the end stay.
#[derive(Default)]
pub(super) struct EventBuffer {
    kept: VecDeque<CallEvent>,
    end: Option<CallEvent>,
    last: u64,
    bytes: usize,
}

impl EventBuffer {
    pub(super) fn last(&self) -> u64 {
        self.last
    }

    pub(super) fn has_ended(&self) -> bool {
        self.end.is_some()
    }

    /// Whether the call failed in a way after which it may run again elsewhere, with another end.
    pub(super) fn was_lost(&self) -> bool {
        let end = self.end.as_ref().map(|event| &event.kind);
        let Some(CallEventKind::Finished(CallOutcome::Failed(failure))) = end else {
            return false;
        };
        failure.retry() == Retry::Always || matches!(failure, CallFailure::OutcomeUnknown { .. })
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn has_room(&mut self, read: u64) -> bool {
        self.trim(read);
        let all_read = self.kept.back().is_none_or(|event| event.sequence <= read);
        all_read || (self.kept.len() < KEPT_EVENTS && self.bytes < KEPT_BYTES)
    }

    pub(super) fn push(&mut self, kind: CallEventKind, read: u64) {
        let event = self.number(kind);
        self.kept.push_back(event);
        self.trim(read);
    }

    pub(super) fn end(&mut self, outcome: CallOutcome) {
        self.end = Some(self.number(CallEventKind::Finished(outcome)));
    }

    pub(super) fn has_sent(&self, ask: AskId, read: u64) -> bool {
        let mut sent = self.kept.iter().take_while(|event| event.sequence <= read);
        sent.any(|event| matches!(event.kind, CallEventKind::Ask { ask: id, .. } if id == ask))
    }

    pub(super) fn forget_ask(&mut self, ask: AskId) {
        let is_it = |event: &CallEvent| match event.kind {
            CallEventKind::Ask { ask: id, .. } | CallEventKind::State { ask: id, .. } => id == ask,
            _ => false,
        };
        if let Some(at) = self.kept.iter().position(is_it) {
            self.remove(at);
        }
    }

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
