use std::error::Error as _;
use std::net::IpAddr;
use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt as _;
use http::{HeaderMap, HeaderValue, Response, header};
use reqwest::{Client, Url};

use super::{BodyError, ExchangeReply, Outgoing, SendError, ServerExchange};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long idle connections stay. Servers and balancers close them later than this.
const POOL_IDLE: Duration = Duration::from_secs(15);
const TCP_KEEP_ALIVE: Duration = Duration::from_secs(30);

pub(in crate::stdio) struct RemoteExchange {
    client: Client,
    url: Url,
    authorization: Option<HeaderValue>,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum InvalidUrl {
    #[error("{0:?} is no URL of an MCP endpoint: use http://HOST:PORT/mcp or https://HOST/mcp")]
    Url(String),
    #[error("the token has characters that a header cannot carry")]
    Token,
    #[error("cannot set up the HTTP client")]
    Client(#[source] reqwest::Error),
}

impl RemoteExchange {
    pub(in crate::stdio) fn new(url: &str, token: Option<&str>) -> Result<Self, InvalidUrl> {
        let url = endpoint(url)?;
        let authorization = token.map(bearer).transpose()?;
        if authorization.is_some() && url.scheme() == "http" && !is_loopback(&url) {
            tracing::warn!(%url, "the token travels unencrypted: use https");
        }
        let client = Client::builder()
            .user_agent(concat!("shoal/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(CONNECT_TIMEOUT)
            .pool_idle_timeout(POOL_IDLE)
            .tcp_keepalive(TCP_KEEP_ALIVE)
            // A proxy that compresses answers may delay events.
            .default_headers(HeaderMap::from_iter([(
                header::ACCEPT_ENCODING,
                HeaderValue::from_static("identity"),
            )]))
            // A redirect could carry the token elsewhere.
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .map_err(InvalidUrl::Client)?;
        Ok(Self {
            client,
            url,
            authorization,
        })
    }
}

pub(crate) fn endpoint(text: &str) -> Result<Url, InvalidUrl> {
    let url = text.parse::<Url>().ok();
    url.filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
        .ok_or_else(|| InvalidUrl::Url(text.to_owned()))
}

fn bearer(token: &str) -> Result<HeaderValue, InvalidUrl> {
    let mut value =
        HeaderValue::from_str(&format!("Bearer {token}")).map_err(|_| InvalidUrl::Token)?;
    value.set_sensitive(true);
    Ok(value)
}

fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost"
        || address
            .parse::<IpAddr>()
            .is_ok_and(|address| address.is_loopback())
}

#[async_trait]
impl ServerExchange for RemoteExchange {
    async fn send(&self, outgoing: Outgoing) -> Result<ExchangeReply, SendError> {
        let mut request = self
            .client
            .request(outgoing.method, self.url.clone())
            .headers(outgoing.headers)
            .body(outgoing.body);
        if let Some(authorization) = &self.authorization {
            request = request.header(header::AUTHORIZATION, authorization);
        }
        let answer = request.send().await.map_err(|error| {
            let text = whole_story(&error);
            if error.is_connect() || error.is_builder() {
                SendError::NotSent(text)
            } else {
                SendError::Lost(text)
            }
        })?;
        let (status, headers) = (answer.status(), answer.headers().clone());
        let body = answer
            .bytes_stream()
            .map(|bytes| bytes.map_err(|error| BodyError(whole_story(&error))));
        let mut reply = Response::new(body.boxed());
        *reply.status_mut() = status;
        *reply.headers_mut() = headers;
        Ok(reply)
    }
}

/// Returns an error with its causes, which reqwest's own text omits.
fn whole_story(error: &reqwest::Error) -> String {
    let mut story = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        story.push_str(": ");
        story.push_str(&error.to_string());
        cause = error.source();
    }
    story
}

#[cfg(test)]
mod tests {
    use super::RemoteExchange;

    #[test]
    fn urls_and_tokens_are_checked() {
        for url in ["http://127.0.0.1:8080/mcp", "https://mcp.example.com/mcp"] {
            assert!(RemoteExchange::new(url, Some("token")).is_ok(), "{url}");
        }
        for url in ["", "localhost:8080", "file:///etc/passwd", "ws://host/mcp"] {
            let error = RemoteExchange::new(url, None).err().unwrap().to_string();
            assert!(error.contains("https://HOST/mcp"), "{error}");
        }
        assert!(RemoteExchange::new("http://a/mcp", Some("to\nken")).is_err());
    }
}
