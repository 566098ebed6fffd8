use shoal_protocol::RequestId;

use super::super::in_flight::{InFlightRequest, Unreached};

#[derive(Default)]
pub(super) struct Pending(Vec<(RequestId, InFlightRequest)>);

impl Pending {
    pub(super) fn one(id: &RequestId, request: InFlightRequest) -> Self {
        Self(vec![(id.clone(), request)])
    }

    pub(super) fn add(&mut self, id: &RequestId, request: InFlightRequest) {
        self.0.push((id.clone(), request));
    }

    pub(super) fn has(&self, id: &RequestId) -> bool {
        self.0.iter().any(|(pending, _)| pending == id)
    }

    pub(super) fn answered(&mut self, id: &RequestId) {
        self.0.retain(|(pending, _)| pending != id);
    }

    pub(super) fn attempted(&self, unreached: Option<Unreached>) {
        for (_, request) in &self.0 {
            request.attempted(unreached.clone());
        }
    }

    pub(super) fn is_done(&self) -> bool {
        self.0
            .iter()
            .all(|(_, request)| request.cancelled().is_cancelled())
    }

    pub(super) fn take(&mut self) -> Vec<(RequestId, InFlightRequest)> {
        std::mem::take(&mut self.0)
    }
}
