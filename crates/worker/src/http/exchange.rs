use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use http::Method as HttpMethod;
use shoal_outbound::{Broken, collect};
use shoal_ports::Backoff;
use shoal_protocol::{Body, Era, Message, Method, Outcome, Response, RpcError};
use tokio::time::{Instant, sleep, timeout};

use super::channel::HttpChannel;
use super::endpoint::Sent;
use super::stream::{Cursor, Events, is_event_stream};
use crate::http_client::{RequestUnanswered, beginning_of};
use crate::upstream::{OutgoingRequest, Readable, RequestOrigin, RequestOutcome, readable};

const MAX_DEPTH: usize = 128;
/// How long to read on after the answer, because a connection is reusable only after its stream has ended.
const LAST_WORDS: Duration = Duration::from_secs(1);
const ACCEPTED: usize = 4096;
const LONGEST_PAUSE: Duration = Duration::from_secs(15);

enum Followed {
    Whole,
    Stream(Box<Events>),
    HttpSse,
}

impl HttpChannel {
    /// Stops if the caller no longer waits.
    pub(super) async fn exchange(
        self: Arc<Self>,
        text: Bytes,
        method: Method,
        request: OutgoingRequest,
    ) {
        let caller = self.caller_of(&request);
        let OutgoingRequest {
            id,
            params,
            write_state,
            given_up,
            ..
        } = request;
        if !write_state.begin_writing() {
            return;
        }
        let is_opening = method == Method::Initialize;
        let is_discovery = method == Method::Discover;
        let post = || Sent {
            url: self.messages.get(),
            method: HttpMethod::POST,
            headers: self.post_headers(Some(&method), params.as_ref()),
            body: text.clone(),
            caller: caller.as_deref(),
            is_call: self.link.pending.is_call(id),
        };
        let answered = async {
            let unusable = |why| RequestOutcome::Answered(Outcome::Error(RpcError::internal(why)));
            if is_opening && self.speaks_http_sse.load(Ordering::Relaxed) {
                self.try_http_sse().await.map_err(unusable)?;
            }
            let mut answer = self.send(post()).await;
            if is_opening
                && let Ok(refusal) = &answer
                && self.may_speak_http_sse(refusal.status())
                && self.try_http_sse().await.map_err(unusable)?
            {
                answer = self.send(post()).await;
            }
            loop {
                match answer {
                    Ok(answer) if !answer.status().is_success() => {
                        return Err(self.refused(answer, Some(id), caller.as_deref()).await);
                    }
                    Ok(answer) if self.messages.get().is_some() => {
                        let _ = beginning_of(answer, ACCEPTED).await;
                        return Ok(None);
                    }
                    Ok(answer) => {
                        if is_opening && let Err(why) = self.take_session(&answer) {
                            return Err(RequestOutcome::Unreadable(why));
                        }
                        match self.follow(answer, id, is_opening, is_discovery).await? {
                            Followed::Whole => return Ok(None),
                            Followed::Stream(rest) => return Ok(Some(*rest)),
                            Followed::HttpSse => {}
                        }
                    }
                    Err(RequestUnanswered::NotSent(reason)) => {
                        return Err(RequestOutcome::Lost {
                            written: false,
                            reason: reason.into(),
                        });
                    }
                    Err(RequestUnanswered::Lost(reason)) => return Err(lost(&reason)),
                    Err(RequestUnanswered::NoToken(none)) => return Err(none.into()),
                }
                if is_discovery {
                    let legacy = RpcError::internal("the server speaks HTTP+SSE");
                    return Err(RequestOutcome::Rejected(legacy));
                }
                if !self.try_http_sse().await.map_err(unusable)? {
                    let nothing = "the server names a URL for messages, but its GET has no stream";
                    return Err(RequestOutcome::Unreadable(nothing.to_owned()));
                }
                answer = self.send(post()).await;
            }
        };
        let rest = tokio::select! {
            biased;
            answered = answered => answered,
            _ = given_up => return,
            () = self.stopping.cancelled() => return,
        };
        match rest {
            Err(outcome) => drop(self.link.pending.finish(id, outcome)),
            Ok(Some(mut events)) => {
                let reading = async { while let Some(Ok(_)) = events.next().await {} };
                let _ = timeout(LAST_WORDS, reading).await;
            }
            Ok(None) => {}
        }
    }

    async fn follow(
        &self,
        answer: reqwest::Response,
        id: u64,
        is_opening: bool,
        is_discovery: bool,
    ) -> Result<Followed, RequestOutcome> {
        let config = self.endpoint.config();
        let limit = config.message_bytes;
        if !is_event_stream(&answer) {
            let whole = collect(answer, limit)
                .await
                .map_err(|broken| match broken {
                    Broken::TooLarge => RequestOutcome::TooLarge,
                    Broken::Connection(why) => lost(&why),
                })?;
            let whole = readable(whole);
            self.pass(whole.clone(), id, is_opening);
            if self.link.pending.is_open(id) {
                if let Some(error) = error_of_nothing(&whole.text) {
                    return Err(RequestOutcome::Answered(Outcome::Error(error)));
                }
                let nothing = "what the server sent is not its answer";
                return Err(RequestOutcome::Unreadable(nothing.to_owned()));
            }
            return Ok(Followed::Whole);
        }
        let idle = config.stream_idle.get();
        let mut events = Events::of(answer, limit, idle);
        let mut cursor = Cursor::default();
        loop {
            let mut why = "the server ended the stream before its answer".to_owned();
            while let Some(event) = events.next().await {
                match event {
                    Ok(mut event) => {
                        if (is_opening || is_discovery) && self.is_endpoint(&event) {
                            return Ok(Followed::HttpSse);
                        }
                        cursor.pass(&mut event);
                        if let Some(text) = event.data {
                            self.pass(readable(text), id, is_opening);
                        }
                        if !self.link.pending.is_open(id) {
                            return Ok(Followed::Stream(Box::new(events)));
                        }
                    }
                    Err(Broken::TooLarge) => return Err(RequestOutcome::TooLarge),
                    Err(Broken::Connection(broken)) => {
                        // A server that wants the client to poll ends its stream properly, so a
                        // broken connection may mean that the server is away.
                        self.presence.reachability.doubt();
                        why = format!("the stream of its answer: {broken}");
                        break;
                    }
                }
            }
            let answer = tokio::select! {
                resumed = self.resume(&cursor, &why) => resumed?,
                () = self.better_elsewhere(id) => {
                    return Err(lost(&format!("{why}, and its server is away, but others are there")));
                }
            };
            events = Events::of(answer, limit, idle);
        }
    }

    /// Waits until this server is away and another server can repeat the request.
    async fn better_elsewhere(&self, id: u64) {
        self.presence.reachability.left_to_others().await;
        if !self.link.pending.may_be_repeated(id) {
            std::future::pending().await
        }
    }

    fn pass(&self, message: Readable, id: u64, is_opening: bool) {
        if is_opening {
            self.take_version_of(&message.text);
        }
        self.link.read(message, RequestOrigin::Request(id));
    }

    fn take_version_of(&self, text: &Bytes) {
        let messages = match Body::from_server(text, MAX_DEPTH) {
            Ok(Body::Single(message)) => vec![Ok(message)],
            Ok(Body::Batch(messages)) => messages,
            Err(_) => return,
        };
        for message in messages {
            if let Ok(Message::Response(response)) = message
                && let Outcome::Result(result) = &response.outcome
            {
                self.take_version(result);
            }
        }
    }

    async fn resume(
        &self,
        cursor: &Cursor,
        why: &str,
    ) -> Result<reqwest::Response, RequestOutcome> {
        let Some(after) = cursor.id.as_deref().filter(|_| self.era() == Era::Legacy) else {
            return Err(lost(why));
        };
        let mut pause = cursor.retry.max(self.endpoint.config().restart_delay.get());
        let mut backoff = Backoff::new(pause, LONGEST_PAUSE);
        let give_up = Instant::now() + pause + self.endpoint.config().resume_for.get();
        loop {
            sleep(pause).await;
            let headers = self.get_headers(Some(after));
            match self.send_own(HttpMethod::GET, headers, Bytes::new()).await {
                Ok(answer) if answer.status().is_success() && is_event_stream(&answer) => {
                    return Ok(answer);
                }
                Ok(answer) if may_pass(answer.status()) => {}
                Ok(answer) => {
                    let status = answer.status();
                    // The refusal may show that the session has ended, but not what the call did.
                    drop(self.refused(answer, None, None).await);
                    return Err(lost(&format!("{why}, and it is not resumed ({status})")));
                }
                Err(_) => {}
            }
            if Instant::now() >= give_up {
                return Err(lost(&format!("{why}, and it could not be resumed in time")));
            }
            pause = backoff.pause();
        }
    }
}

/// Reads an error without an id, which belongs to the posted request.
fn error_of_nothing(answer: &Bytes) -> Option<RpcError> {
    match Body::from_server(answer, MAX_DEPTH).ok()? {
        Body::Single(Message::Response(Response {
            id,
            outcome: Outcome::Error(error),
        })) => id.names_nothing().then_some(error),
        _ => None,
    }
}

pub(super) fn may_pass(status: http::StatusCode) -> bool {
    status.is_server_error() && status != http::StatusCode::NOT_IMPLEMENTED
        || status == http::StatusCode::TOO_MANY_REQUESTS
        || status == http::StatusCode::REQUEST_TIMEOUT
}

fn lost(why: &str) -> RequestOutcome {
    RequestOutcome::Lost {
        written: true,
        reason: why.into(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::error_of_nothing;

    #[test]
    fn an_error_that_names_no_request_is_of_the_one_that_was_posted() {
        let error = json!({ "code": -32000, "message": "refused" });
        let told = |answer: Value| {
            let error = error_of_nothing(&answer.to_string().into())?;
            Some((error.code, error.message))
        };
        let refused = Some((-32000, "refused".to_owned()));
        for (answer, expected) in [
            (
                json!({ "jsonrpc": "2.0", "id": null, "error": error }),
                &refused,
            ),
            (json!({ "jsonrpc": "2.0", "error": error }), &refused),
            (json!({ "jsonrpc": "2.0", "id": 3, "error": error }), &None),
            (json!({ "jsonrpc": "2.0", "id": "", "error": error }), &None),
            (json!({ "jsonrpc": "2.0", "id": null, "result": {} }), &None),
            (
                json!([{ "jsonrpc": "2.0", "id": null, "error": error }]),
                &None,
            ),
            (json!({ "error": "refused" }), &None),
        ] {
            assert_eq!(told(answer.clone()), *expected, "{answer}");
        }
    }
}
