use std::time::Instant;

use http::request::Parts;
use shoal_ports::SessionId;
use shoal_protocol::{Body, Message, TraceContext};
use shoal_telemetry::metrics::Failure;

use super::arrival::MessageArrival;
use super::operation::Operation;
use super::{Recorder, RequestRecord};
use crate::refusal::Refusal;

/// A posted body's record. Client responses and batches of notifications have none.
pub(crate) struct Posted {
    began: Instant,
    pub(crate) record: Option<RequestRecord>,
    told: Option<Operation>,
}

impl Posted {
    pub(crate) fn begin(
        recorder: &Recorder,
        began: Instant,
        head: &Parts,
        body: &Body,
        session: Option<&SessionId>,
    ) -> Self {
        let told = match body {
            Body::Single(Message::Notification(said)) => Some(Operation::begin(&MessageArrival {
                began,
                head,
                method: &said.method,
                params: said.params.as_ref(),
                id: None,
                session,
            })),
            _ => None,
        };
        Self {
            began,
            record: RequestRecord::of(recorder, began, head, body, session),
            told,
        }
    }

    pub(crate) fn trace(&self) -> Option<TraceContext> {
        match &self.told {
            Some(told) => told.context().cloned(),
            None => self.record.as_ref()?.trace(),
        }
    }

    /// The status is a notification's only answer.
    pub(crate) fn answered(self, refused: Option<&Refusal>) {
        if let Some(told) = self.told {
            let failure = refused.map(|why| Failure::Code(why.error().code));
            told.end(self.began.elapsed(), failure);
        }
    }
}
