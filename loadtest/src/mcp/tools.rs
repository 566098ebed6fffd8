//! Verified calls of the demo server's tools.

use super::answer::{Message, check_text};
use super::client::Client;
use crate::connection::Reply;
use crate::failure::Failure;

/// A resource of the demo server.
pub(crate) const COUNTER: &str = "demo://counter";

/// `arguments` is a JSON object.
pub(crate) async fn call(
    client: &mut Client,
    tool: &str,
    arguments: &str,
    text: &str,
) -> Result<(), Failure> {
    let check = |result: &str| check_text(result, text);
    client.call(tool, arguments, check).await
}

/// `text` must not need JSON escapes.
pub(crate) async fn echo(client: &mut Client, tool: &str, text: &str) -> Result<(), Failure> {
    call(client, tool, &format!(r#"{{"text":"{text}"}}"#), text).await
}

/// Changes the resource [`COUNTER`].
pub(crate) async fn increment(client: &mut Client) -> Result<(), Failure> {
    client.call("increment_counter", "{}", |_| Ok(())).await
}

/// Subscribes a legacy session to updates of [`COUNTER`].
pub(crate) async fn subscribe(client: &mut Client) -> Result<(), Failure> {
    let params = format!(r#""uri":"{COUNTER}""#);
    let method = "resources/subscribe";
    client.request(method, COUNTER, &params, |_| Ok(())).await
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
