//! Asking an authorization server, bounded in time and size.

use std::time::Duration;

use bytes::Bytes;
use http::Method;
use reqwest::{RequestBuilder, StatusCode};
use shoal_outbound::{
    Broken, Client, ClientSettings, Named, Outbound, Redirects, collect, whole_story,
};
use url::Url;

use crate::config::{Issuer, asked_url};

/// The longest document that is read, in bytes.
pub(crate) const DOCUMENT: usize = 256 << 10;
/// How long a connection that nobody uses is kept.
const IDLE: Duration = Duration::from_secs(90);

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
    /// Asks the server of this issuer.
    ///
    /// # Errors
    /// What is wrong with the certificates.
    pub(crate) fn new(
        issuer: &Issuer,
        timeout: Duration,
        outbound: &Outbound,
    ) -> Result<Self, String> {
        let introspected = issuer.introspection.as_ref();
        let endpoint = introspected.and_then(|asked| asked.endpoint.as_ref());
        let named = [Some(&issuer.issuer), issuer.jwks_url.as_ref(), endpoint];
        let named = named.into_iter().flatten();
        let settings = ClientSettings {
            authority: issuer.authority.clone(),
            identity: None,
            connect_timeout: timeout,
            timeout: Some(timeout),
            connection_idle: IDLE,
            // Where keys come from is what the operator says, or the issuer's own metadata.
            redirects: Redirects::None,
        };
        let named = Named::These(named.filter_map(|url| url.parse().ok()).collect());
        Ok(Self {
            client: outbound.client(settings, named)?,
            allow_http: issuer.allow_http,
        })
    }

    /// Checks a URL that the server named, or the operator.
    pub(crate) fn url(&self, text: &str) -> Result<Url, NoAnswer> {
        asked_url(text, self.allow_http).map_err(NoAnswer::Failed)
    }

    /// Reads a JSON document.
    pub(crate) async fn get(&self, url: Url) -> Result<Bytes, NoAnswer> {
        let request = self.client.request(Method::GET, &url);
        let request = request.map_err(NoAnswer::Failed)?;
        read(request.header("accept", "application/json")).await
    }

    /// Sends a form with a client's name and secret.
    pub(crate) async fn post(
        &self,
        url: Url,
        form: String,
        (client, secret): (&str, &str),
    ) -> Result<Bytes, NoAnswer> {
        let request = self.client.request(Method::POST, &url);
        let request = request
            .map_err(NoAnswer::Failed)?
            .basic_auth(client, Some(secret))
            .header("accept", "application/json")
            .header("content-type", "application/x-www-form-urlencoded");
        read(request.body(form)).await
    }
}

async fn read(request: RequestBuilder) -> Result<Bytes, NoAnswer> {
    let sent = request.send().await;
    let answer = sent.map_err(|error| NoAnswer::Failed(whole_story(&error)))?;
    match answer.status() {
        StatusCode::OK => {}
        StatusCode::NOT_FOUND => return Err(NoAnswer::NotFound),
        other => return Err(NoAnswer::Failed(format!("it answered with {other}"))),
    }
    let whole = collect(answer, DOCUMENT).await;
    whole.map_err(|broken| {
        NoAnswer::Failed(match broken {
            Broken::TooLarge => format!("its answer is longer than {DOCUMENT} bytes"),
            Broken::Connection(why) => why,
        })
    })
}
