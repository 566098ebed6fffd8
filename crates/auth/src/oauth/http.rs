//! Asking an authorization server, bounded in time and size.

use std::error::Error as _;
use std::path::Path;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use reqwest::redirect::Policy;
use reqwest::{Certificate, Client, RequestBuilder, Response, StatusCode};
use url::Url;

use crate::config::asked_url;

/// The longest document that is read, in bytes.
pub(crate) const DOCUMENT: usize = 256 << 10;

/// Asks one authorization server.
#[derive(Clone)]
pub(crate) struct HttpAsker {
    client: Client,
    allow_http: bool,
}

/// Why there is no answer, without anything that was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NoAnswer {
    /// There is nothing at that URL.
    NotFound,
    /// What went wrong.
    Failed(String),
}

impl HttpAsker {
    /// # Errors
    /// What is wrong with the certificates.
    pub(crate) fn new(
        authority: Option<&Path>,
        allow_http: bool,
        timeout: Duration,
    ) -> Result<Self, String> {
        let mut builder = Client::builder()
            .user_agent(concat!("shoal/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(timeout)
            .timeout(timeout)
            // Where keys come from is what the operator says, or the issuer's own metadata.
            .redirect(Policy::none());
        if let Some(authority) = authority {
            let file = || authority.display();
            let pem = std::fs::read(authority)
                .map_err(|error| format!("cannot read {}: {error}", file()))?;
            let certificates = Certificate::from_pem_bundle(&pem)
                .map_err(|error| format!("{}: {error}", file()))?;
            builder = builder.tls_certs_merge(certificates);
        }
        let client = builder.build().map_err(|error| whole_story(&error))?;
        Ok(Self { client, allow_http })
    }

    /// Checks a URL that the server named, or the operator.
    pub(crate) fn url(&self, text: &str) -> Result<Url, NoAnswer> {
        asked_url(text, self.allow_http).map_err(NoAnswer::Failed)
    }

    /// Reads a JSON document.
    pub(crate) async fn get(&self, url: Url) -> Result<Bytes, NoAnswer> {
        let request = self.client.get(url);
        collect(request.header("accept", "application/json")).await
    }

    /// Sends a form with a client's name and secret.
    pub(crate) async fn post(
        &self,
        url: Url,
        form: String,
        (client, secret): (&str, &str),
    ) -> Result<Bytes, NoAnswer> {
        let request = (self.client.post(url)).basic_auth(client, Some(secret));
        let request = request
            .header("accept", "application/json")
            .header("content-type", "application/x-www-form-urlencoded");
        collect(request.body(form)).await
    }
}

async fn collect(request: RequestBuilder) -> Result<Bytes, NoAnswer> {
    let failed = |error: reqwest::Error| NoAnswer::Failed(whole_story(&error));
    let mut answer: Response = request.send().await.map_err(failed)?;
    match answer.status() {
        StatusCode::OK => {}
        StatusCode::NOT_FOUND => return Err(NoAnswer::NotFound),
        other => return Err(NoAnswer::Failed(format!("it answered with {other}"))),
    }
    let mut whole = BytesMut::new();
    while let Some(bytes) = answer.chunk().await.map_err(failed)? {
        if whole.len() + bytes.len() > DOCUMENT {
            let long = format!("its answer is longer than {DOCUMENT} bytes");
            return Err(NoAnswer::Failed(long));
        }
        whole.extend_from_slice(&bytes);
    }
    Ok(whole.freeze())
}

/// An error with its causes; reqwest's own text names none.
fn whole_story(error: &reqwest::Error) -> String {
    let mut story = match error.is_timeout() {
        true => "no answer in time".to_owned(),
        false => "the request failed".to_owned(),
    };
    let mut cause = error.source();
    while let Some(next) = cause {
        story.push_str(": ");
        story.push_str(&next.to_string());
        cause = next.source();
    }
    story
}
