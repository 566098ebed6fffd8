//! What is recorded of a posted body, whether it asks or only tells.

use std::time::Instant;

use http::request::Parts;
use shoal_ports::SessionId;
use shoal_protocol::{Body, Message, TraceContext};
use shoal_telemetry::metrics::Failure;

use super::came::Came;
use super::operation::Operation;
use super::{Recorder, RequestRecord};
use crate::refusal::Refusal;

/// A posted body. The client's responses, and batches of nothing but what tells, have nothing recorded.
pub(crate) struct Posted {
    began: Instant,
    /// Of a body that asks for something; ends by itself.
    pub(crate) record: Option<RequestRecord>,
    /// Of one that only tells.
    told: Option<Operation>,
}

impl Posted {
    /// Begins with what was parsed of a POST that came at `began`.
    pub(crate) fn begin(
        recorder: &Recorder,
        began: Instant,
        head: &Parts,
        body: &Body,
        session: Option<&SessionId>,
    ) -> Self {
        let told = match body {
            Body::Single(Message::Notification(said)) => Some(Operation::begin(&Came {
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

    /// The parent of what is done for it.
    pub(crate) fn trace(&self) -> Option<TraceContext> {
        match &self.told {
            Some(told) => told.context().cloned(),
            None => self.record.as_ref()?.trace(),
        }
    }

    /// The answer to the POST is known, which is all that becomes of what only tells.
    pub(crate) fn answered(self, refused: Option<&Refusal>) {
        if let Some(told) = self.told {
            let failure = refused.map(|why| Failure::Code(why.error().code));
            told.end(self.began.elapsed(), failure);
        }
    }
}
