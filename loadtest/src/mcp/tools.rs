//! Verified calls of the demo server's tools.

use http::HeaderValue;

use super::answer::{Message, check_text};
use super::client::Client;
use crate::connection::Reply;
use crate::failure::Failure;

/// A resource of the demo server.
pub(crate) const COUNTER: &str = "demo://counter";

pub(crate) async fn call(
    client: &mut Client,
    tool: &'static str,
    arguments: &str,
    text: &str,
) -> Result<(), Failure> {
    let name = HeaderValue::from_static(tool);
    let params = format!(r#""name":"{tool}","arguments":{arguments}"#);
    let check = |result: &str| check_text(result, text);
    client
        .request("tools/call", Some(&name), &params, check)
        .await
}

/// `text` must not need JSON escapes.
pub(crate) async fn echo(
    client: &mut Client,
    tool: &'static str,
    text: &str,
) -> Result<(), Failure> {
    call(client, tool, &format!(r#"{{"text":"{text}"}}"#), text).await
}

/// Calls `increment_counter`, which changes the resource [`COUNTER`].
pub(crate) async fn increment(client: &mut Client) -> Result<(), Failure> {
    let name = HeaderValue::from_static("increment_counter");
    let params = r#""name":"increment_counter","arguments":{}"#;
    client
        .request("tools/call", Some(&name), params, |_| Ok(()))
        .await
}

/// Subscribes a legacy session to updates of [`COUNTER`].
pub(crate) async fn subscribe(client: &mut Client) -> Result<(), Failure> {
    let (uri, params) = (
        HeaderValue::from_static(COUNTER),
        format!(r#""uri":"{COUNTER}""#),
    );
    client
        .request("resources/subscribe", Some(&uri), &params, |_| Ok(()))
        .await
}

/// Reads the first message of `subscriptions/listen`, which must acknowledge it.
pub(crate) async fn acknowledged(reply: &mut Reply) -> Result<(), Failure> {
    let first = reply
        .next()
        .await?
        .map(|event| event.data)
        .unwrap_or_default();
    match Message::parse(&first)?.method.as_deref() {
        Some("notifications/subscriptions/acknowledged") => Ok(()),
        _ => Err(Failure::Wrong(format!(
            "a subscription was not acknowledged but told {first}"
        ))),
    }
}
