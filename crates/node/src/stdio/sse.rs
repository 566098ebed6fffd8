use futures::StreamExt as _;
use shoal_protocol::{SseEvent, SseParser};

use super::exchange::{BodyError, ReplyBody};

const MAX_EVENT_BYTES: usize = 64 << 20;

pub(super) struct Events {
    body: ReplyBody,
    parser: SseParser,
}

impl Events {
    pub(super) fn of(body: ReplyBody) -> Self {
        Self {
            body,
            parser: SseParser::of_at_most(MAX_EVENT_BYTES),
        }
    }

    /// Returns the next event. Cancellation safe.
    pub(super) async fn next(&mut self) -> Option<Result<SseEvent, BodyError>> {
        loop {
            match self.parser.next_event() {
                Ok(Some(event)) => return Some(Ok(event)),
                Ok(None) => {}
                Err(too_large) => return Some(Err(BodyError(too_large.to_string()))),
            }
            match self.body.next().await? {
                Ok(bytes) => self.parser.feed(&bytes),
                Err(broken) => return Some(Err(broken)),
            }
        }
    }
}
