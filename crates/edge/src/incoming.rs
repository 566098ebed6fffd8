use std::time::Instant;

use bytes::Bytes;
use shoal_ports::SessionId;
use shoal_protocol::{Body, RequestId};

use crate::permit::RequestPermit;
use crate::recorder::Posted;
use crate::refused::RefusedMessage;
use crate::visit::Visit;

pub(crate) struct Incoming {
    posted: Posted,
    id: Option<RequestId>,
}

impl Incoming {
    /// Fails if the text is invalid or breaks a limit.
    pub(crate) fn begin(
        visit: &mut Visit<'_>,
        began: Instant,
        text: &Bytes,
        session: Option<&SessionId>,
        permit: &mut RequestPermit,
    ) -> Result<(Self, Body), RefusedMessage> {
        let body = visit.parse(text)?;
        let id = body.request_id();
        let posted = Posted::begin(&visit.edge.recorder, began, visit.head, &body, session);
        visit.trace = posted.trace();
        permit.record.clone_from(&posted.record);
        Ok((Self { posted, id }, body))
    }

    /// Adds the request's id to a refusal of any layer.
    pub(crate) fn end<T>(self, answer: Result<T, RefusedMessage>) -> Result<T, RefusedMessage> {
        let Self { posted, id } = self;
        let record = posted.record.clone();
        posted.answered(answer.as_ref().err().map(|refused| &*refused.why));
        answer.map_err(|refused| RefusedMessage {
            id: refused.id.or(id),
            record: refused.record.or(record),
            ..refused
        })
    }
}
