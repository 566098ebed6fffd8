use std::time::Instant;

use shoal_protocol::RequestId;

use crate::recorder::{Recorder, RequestRecord};
use crate::refusal::Refusal;

pub(crate) struct RefusedMessage {
    pub(crate) why: Box<Refusal>,
    pub(crate) id: Option<RequestId>,
    pub(crate) record: Option<RequestRecord>,
}

impl RefusedMessage {
    pub(crate) fn of(id: Option<RequestId>, why: impl Into<Refusal>) -> Self {
        Self {
            why: Box::new(why.into()),
            id,
            record: None,
        }
    }

    pub(crate) fn count(&self, recorder: &Recorder, began: Instant) {
        match &self.record {
            Some(record) => record.refused(&self.why),
            None => recorder.refused_unread(&self.why, began.elapsed()),
        }
    }
}

impl<R: Into<Refusal>> From<R> for RefusedMessage {
    fn from(why: R) -> Self {
        Self::of(None, why)
    }
}
