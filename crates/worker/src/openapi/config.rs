use std::collections::BTreeMap;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shoal_ports::{Period, Secret, settings};

use super::source::DocumentSource;
use crate::http_client::{
    CallersWithoutToken, HttpClientConfig, HttpTls, TokenExchangeConfig, client_of, endpoints,
};

/// The service's name in messages about its URL.
pub(super) const BASE: &str = "a service";

settings! {
    /// An HTTP service with an OpenAPI document. Its operations become tools.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
    #[serde(default, deny_unknown_fields, expecting = "a table with document")]
    #[schemars(rename = "OpenApi")]
    pub struct OpenApiConfig {
        /// File or URL: OpenAPI 3.0 or later, or Swagger 2.0. Shoal rereads a file on change, and a URL after the
        /// service was away.
        pub document: String = String::new(),
        /// Tags of operations that become tools; if empty, all.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub tags: Vec<String> = Vec::new(),
        /// Paths of operations that become tools; if empty, all.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub paths: Vec<String> = Vec::new(),
        /// Form of lists in `deepObject` parameters.
        pub deep_lists: DeepLists = DeepLists::Mixed,
        /// URL of the service, instead of the document's first server ([allowed
        /// addresses](backends.md#where-requests-may-go)).
        #[serde(skip_serializing_if = "String::is_empty")]
        pub base_url: String = String::new(),
        /// URLs of equal services, instead of `base_url`. Each is a worker.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub base_urls: Vec<String> = Vec::new(),
        /// Values of variables in the server's URL, instead of their defaults.
        #[serde(skip_serializing_if = "BTreeMap::is_empty")]
        pub server_variables: BTreeMap<String, String> = BTreeMap::new(),
        /// Credentials, by security scheme. Of an operation's alternatives, Shoal uses the first for which you set all
        /// credentials.
        #[serde(skip_serializing_if = "BTreeMap::is_empty")]
        pub security: BTreeMap<String, CredentialConfig> = BTreeMap::new(),
        /// Headers of every request.
        pub headers: BTreeMap<String, Secret> = BTreeMap::new(),
        /// File with more `Name: value` lines, read again on change.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub headers_file: Option<PathBuf> = None,
        /// Headers of the client's request that Shoal passes on. In calls, they replace those of the same name in
        /// `headers`.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub forward: Vec<String> = Vec::new(),
        /// Callers without a token, if `forward` has `authorization`.
        pub callers_without_token: CallersWithoutToken = CallersWithoutToken::Refuse,
        /// Exchanges the callers' tokens for tokens that the service accepts (RFC 8693), instead of `authorization` in
        /// `forward`.
        pub token_exchange: TokenExchangeConfig = TokenExchangeConfig::default(),
        /// Certificates for `https` connections.
        pub tls: HttpTls = HttpTls::default(),
        /// Declares the tools' `outputSchema`.
        pub output_schemas: bool = true,
        /// Time limit to open a connection.
        pub connect_timeout: Period = Period::seconds(10),
        /// Time limit of the service's answer; 0 is as long as the call lasts.
        pub call_timeout: Period = Period::ZERO,
        /// Time limit for the document, a token or a health check.
        pub request_timeout: Period = Period::seconds(30),
        /// How long Shoal keeps an unused connection. Stay below the other side's idle timeout.
        pub connection_idle: Period = Period::seconds(4),
        /// How often Shoal checks the service by `HEAD` to the base URL.
        pub health_interval: Period = Period::seconds(10),
        /// Maximum bytes of the document and its files.
        pub document_bytes: usize = 128 * 1024 * 1024,
        /// Maximum bytes of all tools. Shoal leaves out further tools.
        pub tools_bytes: usize = 256 * 1024 * 1024,
        /// Maximum bytes of a tool's schema. Larger schemas have [less detail](openapi.md#large-documents).
        pub schema_bytes: usize = 64 * 1024,
        /// Maximum bytes of the service's answer.
        pub answer_bytes: usize = 4 * 1024 * 1024,
        /// First pause before a restart or reconnection. Each failure doubles the pause.
        pub restart_delay: Period = Period::millis(100),
        /// Maximum pause before a restart or reconnection.
        pub max_restart_delay: Period = Period::seconds(5),
    }
}

/// How lists are written in parameters and forms of the style `deepObject`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum DeepLists {
    /// `a[]=1&a[]=2`; nested `a[0][b]=1` (Stripe).
    #[default]
    Mixed,
    /// `a[]=1&a[]=2`; `a[][b]=1`.
    Brackets,
    /// `a[0]=1&a[1]=2`; `a[0][b]=1`.
    Indices,
    /// `a=1&a=2`; `a[b]=1`.
    Repeat,
}

settings! {
    /// Credential for one security scheme.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
    #[serde(default, deny_unknown_fields, expecting = "a table with secret, or with secret_file")]
    #[schemars(rename = "Credential")]
    pub struct CredentialConfig {
        /// API key, bearer token or password.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub secret: Option<Secret> = None,
        /// File with the secret, read for each call.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub secret_file: Option<PathBuf> = None,
        /// User name, if the secret is a password.
        #[serde(skip_serializing_if = "String::is_empty")]
        pub username: String = String::new(),
    }
}

impl OpenApiConfig {
    /// Settings for a document by file or URL, with defaults.
    pub fn new(document: impl Into<String>) -> Self {
        Self {
            document: document.into(),
            ..Self::default()
        }
    }

    /// The configured base URLs, or `[None]` if the document names the service.
    ///
    /// # Errors
    /// A URL is invalid, or both settings have one.
    pub fn bases(&self) -> Result<Vec<Option<&str>>, String> {
        if self.base_url.is_empty() && self.base_urls.is_empty() {
            return Ok(vec![None]);
        }
        let (one, several) = (("base_url", &*self.base_url), &*self.base_urls);
        let named = endpoints(one, ("base_urls", several), BASE)?;
        Ok(named.into_iter().map(Some).collect())
    }

    /// Checks the settings without reading the document.
    ///
    /// # Errors
    /// The setting, and its fault.
    pub fn check(&self) -> Result<(), (&'static str, String)> {
        if self.document.is_empty() {
            return Err(("document", "name a file or a URL".to_owned()));
        }
        DocumentSource::of(&self.document).map_err(|wrong| ("document", wrong))?;
        let setting = match self.base_urls.is_empty() {
            true => "base_url",
            false => "base_urls",
        };
        self.bases().map_err(|wrong| (setting, wrong))?;
        for (name, credential) in &self.security {
            if credential.secret.is_some() == credential.secret_file.is_some() {
                let one = format!("{name:?} needs secret or secret_file, and not both");
                return Err(("security", one));
            }
        }
        self.client().check()
    }

    pub(super) fn has_credentials(&self) -> bool {
        self.has_headers() || !self.security.is_empty()
    }

    /// Whether requests carry the operator's or caller's headers, which may be credentials.
    pub(super) fn has_headers(&self) -> bool {
        let own = !self.headers.is_empty() || self.headers_file.is_some();
        own || !self.client().wanted().is_empty()
    }

    /// The settings for other origins that the document names, without the service's credentials.
    pub(super) fn without_credentials(&self) -> Self {
        Self {
            tls: HttpTls {
                authority: self.tls.authority.clone(),
                ..HttpTls::default()
            },
            connect_timeout: self.connect_timeout,
            request_timeout: self.request_timeout,
            connection_idle: self.connection_idle,
            ..Self::new(self.document.clone())
        }
    }

    pub(super) fn client(&self) -> HttpClientConfig {
        client_of!(self)
    }
}
