//! HTTP+SSE of 2024-11-05: one stream carries all of the server's messages, and its `endpoint` event names
//! the URL for requests.
//!
//! Shoal tries Streamable HTTP first (2025-11-25, Transports, Backwards Compatibility).

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method as HttpMethod, StatusCode, header};
use reqwest::Url;
use shoal_outbound::Broken;
use shoal_ports::shown;
use shoal_protocol::SseEvent;
use tokio::time::{Duration, timeout};

use super::channel::HttpChannel;
use super::stream::{Events, is_event_stream};
use crate::upstream::{Line, RequestOrigin};

const ENDPOINT: &[u8] = b"endpoint";
const BEFORE_ENDPOINT: usize = 64 * 1024;
const SHOWN: usize = 200;

impl HttpChannel {
    pub(super) fn may_speak_http_sse(&self, refusal: StatusCode) -> bool {
        let nothing_there = [
            StatusCode::BAD_REQUEST,
            StatusCode::FORBIDDEN,
            StatusCode::NOT_FOUND,
            StatusCode::METHOD_NOT_ALLOWED,
            StatusCode::NOT_ACCEPTABLE,
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            StatusCode::NOT_IMPLEMENTED,
        ];
        nothing_there.contains(&refusal) && self.messages.get().is_none()
    }

    pub(super) fn is_endpoint(&self, event: &SseEvent) -> bool {
        event.name.as_deref() == Some(ENDPOINT) && self.messages.get().is_none()
    }

    /// Opens the stream, if there is one, and reads it in the background.
    ///
    /// # Errors
    /// The stream's URL for messages is unusable.
    pub(super) async fn try_http_sse(self: &Arc<Self>) -> Result<bool, String> {
        let opened = timeout(self.endpoint.config().probe_timeout.get(), self.opened()).await;
        let opened = opened.unwrap_or(Err("its stream does not begin in time"));
        self.speaks_http_sse
            .store(opened.is_ok(), Ordering::Relaxed);
        match opened {
            Ok((url, named, events)) => {
                let _ = self.messages.set(messages_url(&url, &named)?);
                tokio::spawn(self.clone().read(events));
                Ok(true)
            }
            Err(why) => {
                tracing::debug!(target: "shoal::http", server = self.link.name(), why, "the server does not speak HTTP+SSE");
                Ok(false)
            }
        }
    }

    async fn opened(&self) -> Result<(Url, Bytes, Events), &'static str> {
        let mut headers = HeaderMap::new();
        headers.insert(
            header::ACCEPT,
            HeaderValue::from_static("text/event-stream"),
        );
        let answer = self.send_own(HttpMethod::GET, headers, Bytes::new()).await;
        let answer = answer.map_err(|_| "its stream cannot be reached")?;
        if !answer.status().is_success() || !is_event_stream(&answer) {
            return Err("it has no stream");
        }
        let url = answer.url().clone();
        let limit = self.endpoint.config().message_bytes;
        let mut events = Events::of(answer, limit, Duration::ZERO);
        let mut skipped = 0;
        while skipped <= BEFORE_ENDPOINT {
            let event = events.next().await.ok_or("its stream ended")?;
            let event = event.map_err(|_| "its stream broke")?;
            match (event.name, event.data) {
                (Some(name), Some(named)) if name == ENDPOINT => return Ok((url, named, events)),
                (name, data) => {
                    let bytes = |text: Option<Bytes>| text.map_or(0, |text| text.len());
                    skipped += bytes(name) + bytes(data) + 1;
                }
            }
        }
        Err("its stream has no `endpoint`")
    }

    /// Calls without an answer by then may have run.
    async fn read(self: Arc<Self>, mut events: Events) {
        let reading = async {
            loop {
                match events.next().await {
                    Some(Ok(event)) => {
                        if let Some(text) = event.data {
                            self.link.receive(Line::Whole(text), RequestOrigin::Common);
                        }
                    }
                    Some(Err(Broken::TooLarge)) => {
                        return "a message on its stream is too large".to_owned();
                    }
                    Some(Err(Broken::Connection(why))) => return format!("its stream: {why}"),
                    None => return "the server ended its stream".to_owned(),
                }
            }
        };
        tokio::select! {
            why = reading => {
                self.presence.reachability.doubt();
                self.link.pending.end(why.as_str().into());
                self.is_of_no_use(&why);
            }
            () = self.stopping.cancelled() => {}
        }
    }
}

/// The URL for messages must have the stream's origin, because requests carry credentials.
fn messages_url(url: &Url, named: &[u8]) -> Result<Url, String> {
    let named = String::from_utf8_lossy(named);
    let messages = url.join(named.trim()).ok();
    messages
        .filter(|messages| messages.origin() == url.origin())
        .ok_or_else(|| {
            let named = shown(&named, SHOWN);
            format!("its stream names {named:?} for messages, which is not of the same origin")
        })
}

#[cfg(test)]
mod tests {
    use super::messages_url;

    #[test]
    fn messages_go_to_the_same_origin_only() {
        let url = "http://h:1/a/sse".parse().unwrap();
        let of = |named: &str| messages_url(&url, named.as_bytes()).map(String::from);
        assert_eq!(of("/messages?id=1").unwrap(), "http://h:1/messages?id=1");
        assert_eq!(of("messages").unwrap(), "http://h:1/a/messages");
        assert_eq!(of("http://h:1/m").unwrap(), "http://h:1/m");
        for named in [
            "//x/m",
            "http://h:2/m",
            "https://h:1/m",
            "file:///etc/passwd",
            "http://[/",
        ] {
            assert!(of(named).is_err(), "{named}");
        }
    }
}
