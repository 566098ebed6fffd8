//! One MCP endpoint: its URL, and what is configured for it.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, Method};
use reqwest::{Response, Url};
use shoal_outbound::{Client, Named, Outbound};
use shoal_ports::Caller;

use super::config::HttpConfig;
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
    pub(super) async fn send(
        &self,
        client: &Client,
        method: Method,
        headers: HeaderMap,
        body: Bytes,
        caller: Option<&Caller>,
    ) -> Result<Response, Unanswered> {
        let all = self.http.headers(client, caller).await;
        let mut all = all.map_err(Unanswered::NoToken)?;
        // What the protocol says is not the operator's to change.
        for (name, value) in headers {
            if let Some(name) = name {
                all.insert(name, value);
            }
        }
        let request = client.request(method, &self.url);
        let request = request.map_err(Unanswered::NotSent)?;
        send(request.headers(all).body(body)).await
    }
}
