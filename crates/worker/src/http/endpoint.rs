use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode, header};
use reqwest::{Response, Url};
use shoal_outbound::{Client, Named, Outbound};
use shoal_ports::Caller;

use super::config::{HttpConfig, WHAT};
use super::cookies::Cookies;
use crate::http_client::{HttpClient, RequestUnanswered, check_url, send};

pub(super) struct HttpEndpoint {
    pub(super) http: HttpClient,
    url: Url,
    config: Arc<HttpConfig>,
}

impl HttpEndpoint {
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

    pub(super) fn url(&self) -> &Url {
        &self.url
    }

    pub(super) fn config(&self) -> &HttpConfig {
        &self.config
    }

    /// Waits for the head of the answer. Dropping the future or the answer cancels the request.
    ///
    /// After a 401, replaces Shoal's own token and resends once. A call is resent only if a
    /// challenge shows that the token was refused, so the tool did not run.
    pub(super) async fn send(
        &self,
        client: &Client,
        sent: Sent<'_>,
        cookies: Option<&Cookies>,
    ) -> Result<Response, RequestUnanswered> {
        let url = sent.url.unwrap_or(&self.url);
        let mut renewed = false;
        loop {
            let all = self.http.headers(client, sent.caller).await;
            let mut all = all.map_err(RequestUnanswered::NoToken)?;
            let token = all.get(header::AUTHORIZATION).cloned();
            // The protocol's headers override the operator's.
            for (name, value) in &sent.headers {
                all.insert(name, value.clone());
            }
            if let Some(cookies) = cookies {
                cookies.add(url, &mut all);
            }
            let request = client.request(sent.method.clone(), url);
            let request = request.map_err(RequestUnanswered::NotSent)?;
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
            renewed = renewing.map_err(RequestUnanswered::NoToken)?;
            if !renewed {
                return Ok(answer);
            }
        }
    }
}

pub(super) struct Sent<'a> {
    pub(super) url: Option<&'a Url>,
    pub(super) method: Method,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
    pub(super) caller: Option<&'a Caller>,
    pub(super) is_call: bool,
}
