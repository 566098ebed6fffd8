use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use shoal_protocol::{
    Message, Outcome, RawJson, RawObject, RequestId, Response, RpcError, code, error_response,
};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::console::ConsoleOutbox;
use super::exchange::{ExchangeReply, SendError, ServerExchange, collect};

const SHOWN: usize = 64;

/// Clones are cheap.
#[derive(Clone)]
pub(super) struct BridgeWire {
    pub(super) exchange: Arc<dyn ServerExchange>,
    pub(super) outbox: ConsoleOutbox,
    pub(super) tasks: TaskTracker,
    pub(super) stop: CancellationToken,
}

impl BridgeWire {
    pub(super) fn new(exchange: Arc<dyn ServerExchange>, outbox: ConsoleOutbox) -> Self {
        Self {
            exchange,
            outbox,
            tasks: TaskTracker::new(),
            stop: CancellationToken::new(),
        }
    }

    /// Polls `work` once before returning, so that a server in this process gets messages in order.
    pub(super) async fn begin(&self, work: impl Future<Output = ()> + Send + 'static) {
        let stop = self.stop.clone();
        let mut work = Box::pin(async move {
            tokio::select! {
                biased;
                () = stop.cancelled() => {}
                () = work => {}
            }
        });
        if futures::poll!(work.as_mut()).is_pending() {
            self.tasks.spawn(work);
        }
    }

    /// Ignores a client that stopped reading, because `stdio::run` then ends the bridge.
    pub(super) async fn deliver(&self, message: Bytes) {
        let _ = self.outbox.send(message).await;
    }

    pub(super) async fn fail(&self, id: &RequestId, error: &RpcError) {
        self.deliver(error_response(id, error)).await;
    }
}

pub(super) fn post_headers() -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/json"),
    );
    headers.insert(
        header::ACCEPT,
        HeaderValue::from_static("application/json, text/event-stream"),
    );
    headers
}

pub(super) fn unanswered(error: &SendError) -> RpcError {
    match error {
        SendError::NotSent(_) => RpcError::new(
            code::NOT_EXECUTED,
            format!("{error}; nothing was executed, it is safe to try again"),
        ),
        SendError::Lost(_) => outcome_unknown(&error.to_string()),
    }
}

/// `what` is the reason.
pub(super) fn outcome_unknown(what: &str) -> RpcError {
    RpcError::new(
        code::OUTCOME_UNKNOWN,
        format!("the outcome of the request is unknown: {what}; check before you repeat it"),
    )
}

pub(super) async fn refusal(reply: ExchangeReply) -> RpcError {
    let status = reply.status();
    let body = collect(reply.into_body()).await.unwrap_or_default();
    refusal_of(status, body)
}

/// Returns the error for an answer that is no response. A proxy that sent this answer may have forwarded the request
/// before.
pub(super) fn no_response(kind: Option<&HeaderValue>, body: Bytes, may_have_run: bool) -> RpcError {
    let what = match kind.and_then(|kind| kind.to_str().ok()) {
        _ if body.is_empty() => "nothing".to_owned(),
        Some(kind) => format!("{} that is no response to it", shown(kind)),
        None => "what is no response to it".to_owned(),
    };
    let what =
        format!("the server answered the request with {what}; is the URL that of an MCP endpoint?");
    match own_error(body) {
        Some(error) => error,
        None if may_have_run => outcome_unknown(&what),
        None => RpcError::internal(what),
    }
}

/// Whether a message is valid in MCP, where every result is an object.
pub(super) fn is_readable(message: &Message) -> bool {
    match message {
        Message::Response(Response { outcome, .. }) => match outcome {
            Outcome::Result(result) => result.is_object(),
            Outcome::Error(_) => true,
        },
        Message::Request(_) | Message::Notification(_) => true,
    }
}

fn shown(value: &str) -> String {
    let plain = value.chars().filter(|letter| !letter.is_control());
    plain.take(SHOWN).collect()
}

/// The response may lack an id.
fn own_error(body: Bytes) -> Option<RpcError> {
    RawJson::parse_text(body)
        .ok()
        .and_then(|body| RawObject::of(&body))
        .and_then(|body| body.get("error"))
        .filter(RawJson::is_object)
        .map(|error| RpcError::from_json(&error))
}

/// Returns the server's own error, or else one for the HTTP status.
pub(super) fn refusal_of(status: StatusCode, body: Bytes) -> RpcError {
    let own = own_error(body);
    let hint = match status {
        StatusCode::UNAUTHORIZED => "; give a valid token by SHOAL_TOKEN",
        StatusCode::FORBIDDEN => {
            "; the token does not allow it, or the host name is not served there"
        }
        StatusCode::NOT_FOUND => "; is the URL that of an MCP endpoint?",
        _ if status.is_redirection() => "; redirects are not followed, give the final URL",
        _ => "",
    };
    match own {
        Some(error) if status == StatusCode::UNAUTHORIZED => RpcError {
            message: format!("{}{hint}", error.message),
            ..error
        },
        Some(error) => error,
        None => RpcError::internal(format!("the server answered {status}{hint}")),
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http::{HeaderValue, StatusCode};
    use shoal_protocol::code;

    use super::{no_response, refusal_of};

    #[test]
    fn a_refusal_keeps_the_servers_words() {
        let body = br#"{"jsonrpc":"2.0","error":{"code":-32600,"message":"no","data":1}}"#;
        let error = refusal_of(StatusCode::BAD_REQUEST, Bytes::from_static(body));
        assert_eq!((error.code, error.message.as_str()), (-32600, "no"));
        assert!(error.data.is_some());
    }

    #[test]
    fn an_answer_that_is_no_response_is_told_as_what_it_is() {
        let html = HeaderValue::from_static("text/html");
        let told = |body, ran| no_response(Some(&html), Bytes::from_static(body), ran);
        let page = told(b"<html>", false);
        assert_eq!(page.code, code::INTERNAL_ERROR);
        assert!(page.message.contains("text/html") && page.message.contains("MCP endpoint"));
        assert_eq!(told(b"<html>", true).code, code::OUTCOME_UNKNOWN);
        assert!(told(b"", false).message.contains("with nothing"));
        let own = br#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"no"}}"#;
        assert_eq!(told(own, true).code, -32600);
    }

    #[test]
    fn a_refusal_without_words_gets_some() {
        let says = |status| refusal_of(status, Bytes::from_static(b"<html>")).message;
        assert!(says(StatusCode::UNAUTHORIZED).contains("SHOAL_TOKEN"));
        assert!(says(StatusCode::NOT_FOUND).contains("MCP endpoint"));
        assert!(says(StatusCode::FOUND).contains("redirects"));
        assert!(says(StatusCode::BAD_GATEWAY).contains("502"));
    }
}
