//! One MCP endpoint: its URL, and what is configured for it.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode, header};
use reqwest::{Response, Url};
use shoal_outbound::{Client, Named, Outbound};
use shoal_ports::Caller;

use super::config::HttpConfig;
use super::cookies::Cookies;
use crate::http_client::{HttpClient, Unanswered, check_url, send};

/// What an MCP endpoint is called.
pub(super) const WHAT: &str = "an MCP endpoint";

/// Sends requests to one MCP endpoint.
pub(super) struct Endpoint {
    /// What sends them.
    pub(super) http: HttpClient,
    url: Url,
    config: Arc<HttpConfig>,
}

impl Endpoint {
    /// Nothing is sent yet.
    pub(super) fn new(
        url: &str,
        config: Arc<HttpConfig>,
        outbound: &Outbound,
    ) -> Result<Self, String> {
        let url = check_url(url, WHAT)?;
        Ok(Self {
            http: HttpClient::new(config.client(), outbound, Named::These(vec![url.clone()]))?,
            url,
            config,
        })
    }

    /// The server's URL.
    pub(super) fn url(&self) -> &Url {
        &self.url
    }

    /// What is configured.
    pub(super) fn config(&self) -> &HttpConfig {
        &self.config
    }

    /// Sends a request, of this caller where it is one's, and waits for the head of its answer. Dropping the future, and later the answer, gives the request up.
    ///
    /// If the server answers 401, Shoal's own token is replaced, and the request is sent again, once. A call is sent again only if the server
    /// says by a challenge that it is the token that it refuses: then nothing has run.
    pub(super) async fn send(
        &self,
        client: &Client,
        sent: Sent<'_>,
        cookies: Option<&Cookies>,
    ) -> Result<Response, Unanswered> {
        let url = sent.url.unwrap_or(&self.url);
        let mut renewed = false;
        loop {
            let all = self.http.headers(client, sent.caller).await;
            let mut all = all.map_err(Unanswered::NoToken)?;
            let token = all.get(header::AUTHORIZATION).cloned();
            // What the protocol says is not the operator's to change.
            for (name, value) in &sent.headers {
                all.insert(name, value.clone());
            }
            if let Some(cookies) = cookies {
                cookies.add(url, &mut all);
            }
            let request = client.request(sent.method.clone(), url);
            let request = request.map_err(Unanswered::NotSent)?;
            let answer = send(request.headers(all).body(sent.body.clone())).await?;
            if let Some(cookies) = cookies {
                cookies.take(answer.url(), answer.headers());
            }
            if answer.status() != StatusCode::UNAUTHORIZED {
                return Ok(answer);
            }
            if renewed {
                self.http.was_renewed_in_vain();
                return Ok(answer);
            }
            let renewing = self
                .http
                .renew(client, sent.caller, token.as_ref(), answer.headers());
            let renewing = renewing.await;
            let challenged = answer.headers().contains_key(header::WWW_AUTHENTICATE);
            if sent.is_call && !challenged {
                return Ok(answer);
            }
            renewed = renewing.map_err(Unanswered::NoToken)?;
            if !renewed {
                return Ok(answer);
            }
        }
    }
}

/// A request to an MCP endpoint.
pub(super) struct Sent<'a> {
    /// Where it goes, if not to the endpoint's own URL.
    pub(super) url: Option<&'a Url>,
    pub(super) method: Method,
    /// The headers of the protocol.
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
    /// Whose it is.
    pub(super) caller: Option<&'a Caller>,
    /// Whether it makes something run.
    pub(super) is_call: bool,
}
