//! Reads server-sent events within bounds of bytes and time.

use std::time::Duration;

use http::HeaderMap;
use http::header::CONTENT_TYPE;
use reqwest::Response;
use shoal_outbound::Broken;
use shoal_protocol::{SseEvent, SseParser};

pub(super) fn is_event_stream(answer: &Response) -> bool {
    has_media_type(answer.headers(), "text/event-stream")
}

pub(super) fn has_media_type(headers: &HeaderMap, media_type: &str) -> bool {
    let named = headers.get(CONTENT_TYPE).map(|named| named.as_bytes());
    let named = named.and_then(|named| named.get(..media_type.len()));
    named.is_some_and(|named| named.eq_ignore_ascii_case(media_type.as_bytes()))
}

pub(super) struct Events {
    answer: Response,
    parser: SseParser,
    idle: Option<Duration>,
}

impl Events {
    pub(super) fn of(answer: Response, limit: usize, idle: Duration) -> Self {
        Self {
            answer,
            parser: SseParser::of_at_most(limit),
            idle: (!idle.is_zero()).then_some(idle),
        }
    }

    /// `None` at the end. Cancellation safe.
    pub(super) async fn next(&mut self) -> Option<Result<SseEvent, Broken>> {
        loop {
            match self.parser.next_event() {
                Ok(Some(event)) => return Some(Ok(event)),
                Ok(None) => {}
                Err(_) => return Some(Err(Broken::TooLarge)),
            }
            let chunk = self.answer.chunk();
            let chunk = match self.idle {
                Some(idle) => match tokio::time::timeout(idle, chunk).await {
                    Ok(chunk) => chunk,
                    Err(_) => {
                        let silent = format!("it was silent for {} s", idle.as_secs());
                        return Some(Err(Broken::Connection(silent)));
                    }
                },
                None => chunk.await,
            };
            match chunk {
                Ok(Some(bytes)) => self.parser.feed(&bytes),
                Ok(None) => return None,
                Err(_) => return Some(Err(Broken::Connection("it broke off".to_owned()))),
            }
        }
    }
}

pub(super) struct Cursor {
    pub(super) id: Option<String>,
    pub(super) retry: Duration,
}

const RETRY: Duration = Duration::from_secs(1);
const LONGEST_ID: usize = 4096;

impl Default for Cursor {
    fn default() -> Self {
        Self {
            id: None,
            retry: RETRY,
        }
    }
}

impl Cursor {
    pub(super) fn pass(&mut self, event: &mut SseEvent) {
        if let Some(id) = event.id.take() {
            self.id = Some(id).filter(|id| !id.is_empty() && id.len() <= LONGEST_ID);
        }
        self.retry = event.retry.unwrap_or(self.retry);
    }
}
