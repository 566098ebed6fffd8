use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shoal_ports::{Secret, settings};

use super::{ClientCredentialsConfig, check_url, headers, token_exchange};

const AUTHORIZATION: &str = "authorization";
const ACCESS_TOKEN: &str = "urn:ietf:params:oauth:token-type:access_token";

#[derive(Clone, Debug)]
pub(crate) struct HttpClientConfig {
    pub(crate) headers: BTreeMap<String, Secret>,
    pub(crate) headers_file: Option<PathBuf>,
    pub(crate) forward: Vec<String>,
    pub(crate) callers_without_token: CallersWithoutToken,
    pub(crate) client_credentials: ClientCredentialsConfig,
    pub(crate) token_exchange: TokenExchangeConfig,
    pub(crate) tls: HttpTls,
    pub(crate) connect_timeout: Duration,
    pub(crate) connection_idle: Duration,
    pub(crate) token_timeout: Duration,
}

/// Builds the client's settings from a backend's. A macro, because serde cannot refuse unknown
/// fields around a flattened struct, so each backend repeats these fields.
macro_rules! client_of {
    ($settings:expr) => {
        $crate::http_client::HttpClientConfig {
            headers: $settings.headers.clone(),
            headers_file: $settings.headers_file.clone(),
            forward: $settings.forward.clone(),
            callers_without_token: $settings.callers_without_token,
            client_credentials: $crate::http_client::ClientCredentialsConfig::default(),
            token_exchange: $settings.token_exchange.clone(),
            tls: $settings.tls.clone(),
            connect_timeout: $settings.connect_timeout.get(),
            connection_idle: $settings.connection_idle.get(),
            token_timeout: $settings.request_timeout.get(),
        }
    };
}
pub(crate) use client_of;

settings! {
    /// Token exchange. Its requests use the certificates and proxies of the server.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
    #[serde(default, deny_unknown_fields, expecting = "a table with endpoint")]
    #[schemars(rename = "TokenExchange")]
    pub struct TokenExchangeConfig {
        /// URL of the token endpoint; required.
        #[serde(skip_serializing_if = "String::is_empty")]
        pub endpoint: String = String::new(),
        /// Client id at the token endpoint.
        #[serde(skip_serializing_if = "String::is_empty")]
        pub client_id: String = String::new(),
        /// File with the client secret for `Authorization: Basic`, read for each request.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub client_secret_file: Option<PathBuf> = None,
        /// Name of the server that the new token is for.
        #[serde(skip_serializing_if = "String::is_empty")]
        pub audience: String = String::new(),
        /// URL of the new token's server, if the endpoint needs it.
        #[serde(skip_serializing_if = "String::is_empty")]
        pub resource: String = String::new(),
        /// Scopes of the new token, separated by spaces.
        #[serde(skip_serializing_if = "String::is_empty")]
        pub scope: String = String::new(),
        /// Type of the callers' tokens.
        pub subject_token_type: String = ACCESS_TOKEN.to_owned(),
        /// Type of the new token; by default the endpoint chooses.
        #[serde(skip_serializing_if = "String::is_empty")]
        pub requested_token_type: String = String::new(),
    }
}

settings! {
    /// Certificates for an `https` server, read again for new sessions when they change.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
    #[serde(default, deny_unknown_fields, expecting = "a table")]
    pub struct HttpTls {
        /// PEM file: further trusted authorities.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub authority: Option<PathBuf> = None,
        /// PEM file: client certificate.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub certificate: Option<PathBuf> = None,
        /// PEM file: private key of the client certificate.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub key: Option<PathBuf> = None,
    }
}

/// The treatment of callers without a token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CallersWithoutToken {
    /// Shoal refuses them.
    #[default]
    Refuse,
    /// Shoal uses its own credentials for them.
    Service,
}

impl TokenExchangeConfig {
    fn names_something(&self) -> bool {
        let named = [&self.client_id, &self.audience, &self.resource, &self.scope];
        self.client_secret_file.is_some() || named.iter().any(|named| !named.is_empty())
    }
}

impl HttpClientConfig {
    /// Checks the settings without contacting the server.
    ///
    /// # Errors
    /// The setting, and its fault.
    pub(crate) fn check(&self) -> Result<(), (&'static str, String)> {
        headers::check(&self.headers).map_err(|wrong| ("headers", wrong))?;
        let forwarded = headers::forwarded(&self.forward);
        let forwarded = forwarded.map_err(|wrong| ("forward", wrong))?;
        if self.exchange().is_none() && self.token_exchange.names_something() {
            return Err(("token_exchange", "endpoint is missing".to_owned()));
        }
        if let Some(exchange) = self.exchange() {
            token_exchange::check(exchange).map_err(|wrong| ("token_exchange", wrong))?;
            if forwarded.iter().any(|name| **name == *AUTHORIZATION) {
                let both = "authorization cannot be passed on and its token be traded";
                return Err(("forward", both.to_owned()));
            }
        }
        let own = self.client_credentials.check();
        own.map_err(|wrong| ("client_credentials", wrong))?;
        if self.credentials().is_some()
            && self
                .headers
                .keys()
                .any(|name| name.eq_ignore_ascii_case(AUTHORIZATION))
        {
            let both = "authorization is what client_credentials set; remove one of them";
            return Err(("headers", both.to_owned()));
        }
        if self.tls.certificate.is_some() != self.tls.key.is_some() {
            return Err(("tls", "certificate and key go together".to_owned()));
        }
        Ok(())
    }

    pub(super) fn credentials(&self) -> Option<&ClientCredentialsConfig> {
        Some(&self.client_credentials).filter(|own| own.is_set())
    }

    pub(super) fn exchange(&self) -> Option<&TokenExchangeConfig> {
        Some(&self.token_exchange).filter(|exchange| !exchange.endpoint.is_empty())
    }

    pub(crate) fn wanted(&self) -> Vec<Arc<str>> {
        // `check` has validated the headers.
        let mut wanted = headers::forwarded(&self.forward).unwrap_or_default();
        if self.exchange().is_some() {
            wanted.push(AUTHORIZATION.into());
        }
        wanted
    }
}

/// Returns the URLs of equal servers, from two alternative settings.
pub(crate) fn endpoints<'a>(
    (one, url): (&str, &'a str),
    (several, urls): (&str, &'a [String]),
    what: &str,
) -> Result<Vec<&'a str>, String> {
    let single = (!url.is_empty()).then_some(url);
    let all = single.into_iter().chain(urls.iter().map(String::as_str));
    let all: Vec<&str> = all.collect();
    if all.is_empty() {
        return Err(format!("name {what} by {one}, or several by {several}"));
    }
    if !url.is_empty() && !urls.is_empty() {
        return Err(format!("give {one} or {several}, not both"));
    }
    for (at, url) in all.iter().enumerate() {
        check_url(url, what)?;
        if all[..at].contains(url) {
            return Err(format!("{url} is there twice"));
        }
    }
    Ok(all)
}
