//! Requests to an authorization server, limited in time and size.

use std::time::Duration;

use bytes::Bytes;
use http::Method;
use reqwest::{RequestBuilder, Response, StatusCode};
use shoal_outbound::{
    Broken, Client, ClientSettings, Named, Outbound, Redirects, collect, whole_story,
};
use shoal_ports::shown;
use url::Url;

use crate::config::{Issuer, ResolvedIssuer, asked_url};

/// Maximum bytes of a document. 70 keys with certificates need half of it.
pub(crate) const DOCUMENT: usize = 1 << 20;
/// Some servers put it before JSON, although that is forbidden (RFC 8259, 8.1).
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
const SHOWN: usize = 200;
const IDLE: Duration = Duration::from_secs(90);

#[derive(Clone)]
pub(crate) struct HttpAsker {
    client: Client,
    allow_http: bool,
    timeout: Duration,
}

/// Contains nothing of the request, which may be secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NoAnswer {
    #[error("{0}")]
    Unreachable(String),
    #[error("it answered with {0}")]
    Status(StatusCode),
    #[error("{0}")]
    Failed(String),
}

impl HttpAsker {
    pub(crate) fn new(
        issuer: &Issuer,
        resolved: &ResolvedIssuer,
        timeout: Duration,
        outbound: &Outbound,
    ) -> Result<Self, String> {
        let asked = resolved.asked.as_ref();
        let endpoint = asked.and_then(|asked| asked.endpoint.as_ref());
        let named = [Some(&resolved.server), resolved.jwks_url.as_ref(), endpoint];
        let named = named.into_iter().flatten();
        let settings = ClientSettings {
            authority: issuer.authority.clone(),
            identity: None,
            connect_timeout: timeout,
            timeout: Some(timeout),
            connection_idle: IDLE,
            // Secrets must not follow redirects. `get` follows one itself.
            redirects: Redirects::None,
        };
        let named = Named::These(named.filter_map(|url| url.parse().ok()).collect());
        Ok(Self {
            client: outbound.client(settings, named)?,
            allow_http: issuer.allow_http,
            timeout,
        })
    }

    pub(crate) fn url(&self, text: &str) -> Result<Url, NoAnswer> {
        asked_url(text, self.allow_http).map_err(NoAnswer::Failed)
    }

    /// Follows at most one redirect, on the same origin.
    pub(crate) async fn get(&self, url: Url) -> Result<Bytes, NoAnswer> {
        let reading = tokio::time::timeout(self.timeout, self.read(url));
        let late = |_| NoAnswer::Failed("no answer in time".to_owned());
        reading.await.map_err(late)?
    }

    async fn read(&self, url: Url) -> Result<Bytes, NoAnswer> {
        let answer = self.ask(&url).await?;
        if !is_redirect(answer.status()) {
            return document(answer).await;
        }
        match target(&answer, &url) {
            Some(there) if there.origin() == url.origin() => {
                document(self.ask(&there).await?).await
            }
            there => {
                let there =
                    there.map_or("nowhere".to_owned(), |there| shown(there.as_str(), SHOWN));
                let status = answer.status();
                Err(NoAnswer::Failed(format!(
                    "it answered with {status}, a redirect to another origin: {there}"
                )))
            }
        }
    }

    async fn ask(&self, url: &Url) -> Result<Response, NoAnswer> {
        let request = self.client.request(Method::GET, url);
        let request = request.map_err(NoAnswer::Failed)?;
        send(request.header("accept", "application/json")).await
    }

    pub(crate) async fn post(
        &self,
        url: Url,
        form: String,
        client: Option<(String, String)>,
    ) -> Result<Bytes, NoAnswer> {
        let request = self.client.request(Method::POST, &url);
        let mut request = request.map_err(NoAnswer::Failed)?;
        if let Some((client, secret)) = client {
            request = request.basic_auth(client, Some(secret));
        }
        let request = request
            .header("accept", "application/json")
            .header("content-type", "application/x-www-form-urlencoded");
        document(send(request.body(form)).await?).await
    }
}

fn is_redirect(status: StatusCode) -> bool {
    matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308)
}

fn target(answer: &Response, from: &Url) -> Option<Url> {
    let location = answer.headers().get("location")?.to_str().ok()?;
    from.join(location).ok()
}

async fn send(request: RequestBuilder) -> Result<Response, NoAnswer> {
    let sent = request.send().await;
    sent.map_err(|error| match error.is_connect() {
        true => NoAnswer::Unreachable(whole_story(&error)),
        false => NoAnswer::Failed(whole_story(&error)),
    })
}

async fn document(answer: Response) -> Result<Bytes, NoAnswer> {
    match answer.status() {
        StatusCode::OK => {}
        other => return Err(NoAnswer::Status(other)),
    }
    let whole = collect(answer, DOCUMENT).await;
    let whole = whole.map_err(|broken| {
        NoAnswer::Failed(match broken {
            Broken::TooLarge => format!("its answer is longer than {DOCUMENT} bytes"),
            Broken::Connection(why) => why,
        })
    })?;
    Ok(match whole.strip_prefix(BYTE_ORDER_MARK) {
        Some(text) => whole.slice_ref(text),
        None => whole,
    })
}
