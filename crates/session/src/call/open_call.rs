use shoal_ports::{Binding, Call, CallId, JournalEntry, JournaledCall};
use shoal_protocol::{RequestId, TraceContext};

use super::start;

pub(crate) struct OpenCall {
    pub(super) call: Call,
    pub(super) request: RequestId,
    pub(super) brought: Option<TraceContext>,
    pub(super) seen: u64,
}

impl OpenCall {
    pub(crate) fn id(&self) -> CallId {
        self.call.id
    }

    pub(crate) fn request(&self) -> &RequestId {
        &self.request
    }

    pub(crate) fn note(&mut self, seen: u64) {
        self.seen = seen;
    }

    pub(crate) fn rebind(&mut self, binding: Binding) {
        self.call.binding = Some(binding);
    }

    pub(crate) fn to_journal(&self) -> JournaledCall {
        JournaledCall {
            entry: entry_of(&self.call, &self.request, self.brought.as_ref()),
            seen: self.seen,
        }
    }
}

pub(super) fn entry_of(
    call: &Call,
    request: &RequestId,
    brought: Option<&TraceContext>,
) -> JournalEntry {
    let binding = call.binding.as_ref();
    JournalEntry {
        call: call.id,
        request: request.clone(),
        worker: binding.map(|binding| binding.worker.clone()),
        ledger: binding.and_then(|binding| binding.ledger),
        start: start::of(call, brought),
    }
}
