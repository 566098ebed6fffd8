//! The requests of one POST that wait for their responses.

use shoal_protocol::RequestId;

use super::super::in_flight::InFlightRequest;

/// Requests without a response yet.
#[derive(Default)]
pub(super) struct Pending(Vec<(RequestId, InFlightRequest)>);

impl Pending {
    pub(super) fn one(id: &RequestId, request: InFlightRequest) -> Self {
        Self(vec![(id.clone(), request)])
    }

    pub(super) fn add(&mut self, id: &RequestId, request: InFlightRequest) {
        self.0.push((id.clone(), request));
    }

    /// Whether this one waits.
    pub(super) fn has(&self, id: &RequestId) -> bool {
        self.0.iter().any(|(pending, _)| pending == id)
    }

    /// Takes note of a response.
    pub(super) fn answered(&mut self, id: &RequestId) {
        self.0.retain(|(pending, _)| pending != id);
    }

    /// Whether nothing more is expected: all are answered, or taken back by the client.
    pub(super) fn is_done(&self) -> bool {
        self.0
            .iter()
            .all(|(_, request)| request.cancelled().is_cancelled())
    }

    /// Hands over what is open.
    pub(super) fn take(&mut self) -> Vec<(RequestId, InFlightRequest)> {
        std::mem::take(&mut self.0)
    }
}
