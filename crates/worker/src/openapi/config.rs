//! What an operator can say about a service that an OpenAPI document describes.

use std::collections::BTreeMap;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shoal_ports::{Period, Secret, settings};

use super::source::DocumentSource;
use crate::http_client::{
    CallersWithoutToken, HttpClientConfig, HttpTls, TokenExchangeConfig, client_of, endpoints,
};

/// What a base URL is called.
pub(super) const BASE: &str = "a service";

settings! {
    /// A service over HTTP that an OpenAPI document describes: its operations are tools.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
    #[serde(default, deny_unknown_fields, expecting = "a table with document")]
    #[schemars(rename = "OpenApi")]
    pub struct OpenApiConfig {
        /// The OpenAPI document, 3.0 or later, or Swagger 2.0, JSON or YAML: a file or a URL. Files that it refers to are read with
        /// it. A changed file is read again, a URL when the service comes back.
        pub document: String = String::new(),
        /// Tags of operations that can be tools; all operations if it is empty. `*` stands for any characters.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub tags: Vec<String> = Vec::new(),
        /// Paths of operations that can be tools, as the document writes them; all if it is empty. `*` stands for any
        /// characters: `["/v1/orders*"]`.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub paths: Vec<String> = Vec::new(),
        /// How lists are written where the document says `deepObject`, which OpenAPI does not define for lists.
        pub deep_lists: DeepLists = DeepLists::Mixed,
        /// Where the service is, in place of the first of the document's `servers`. Which addresses it may have:
        /// [backends](backends.md#where-requests-may-go).
        #[serde(skip_serializing_if = "String::is_empty")]
        pub base_url: String = String::new(),
        /// Where several services are that are equal, instead of `base_url`. Each is a worker of its own: when one is away,
        /// the calls go to the others.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub base_urls: Vec<String> = Vec::new(),
        /// Values for the variables of the server's URL, in place of the document's defaults.
        #[serde(skip_serializing_if = "BTreeMap::is_empty")]
        pub server_variables: BTreeMap<String, String> = BTreeMap::new(),
        /// Credentials, by the names of the document's security schemes. An operation is called with the first of its
        /// alternatives whose credentials are all configured.
        #[serde(skip_serializing_if = "BTreeMap::is_empty")]
        pub security: BTreeMap<String, CredentialConfig> = BTreeMap::new(),
        /// Headers of every request. `config show` does not print the values.
        pub headers: BTreeMap<String, Secret> = BTreeMap::new(),
        /// A file with more headers, one `Name: value` a line. A changed file is read again.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub headers_file: Option<PathBuf> = None,
        /// Headers of clients' requests that are passed on with their calls, by name. By default none is.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub forward: Vec<String> = Vec::new(),
        /// How callers without a token are treated if `forward` names `authorization`: `"refuse"`, or `"service"` for Shoal's own
        /// credentials.
        pub callers_without_token: CallersWithoutToken = CallersWithoutToken::Refuse,
        /// Trades the bearer token of each call's client for one that the service takes (RFC 8693). Not with `authorization` in
        /// `forward`.
        pub token_exchange: TokenExchangeConfig = TokenExchangeConfig::default(),
        /// Certificates for `https`, besides those of the system.
        pub tls: HttpTls = HttpTls::default(),
        /// Whether tools say what their structured results look like (`outputSchema`).
        pub output_schemas: bool = true,
        /// How long a connection may take to be made.
        pub connect_timeout: Period = Period::seconds(10),
        /// How long the service may take to answer a call; 0 for as long as the call may take.
        pub call_timeout: Period = Period::ZERO,
        /// How long the document, a health check or a token may take.
        pub request_timeout: Period = Period::seconds(30),
        /// How long a connection that nobody uses is kept. It must be shorter than the service keeps it.
        pub connection_idle: Period = Period::seconds(4),
        /// How often the service is asked whether it is there, by `HEAD` of its base URL. Any answer will do.
        pub health_interval: Period = Period::seconds(10),
        /// Bytes of the document, with the files that it refers to.
        pub document_bytes: usize = 128 * 1024 * 1024,
        /// Bytes of all tools together. Operations that would exceed them are left out.
        pub tools_bytes: usize = 256 * 1024 * 1024,
        /// Bytes of a tool's schemas, each. A larger one is listed in less detail
        /// ([OpenAPI](openapi.md#large-documents)).
        pub schema_bytes: usize = 64 * 1024,
        /// Bytes of an answer.
        pub answer_bytes: usize = 4 * 1024 * 1024,
        /// The pause before the first new attempt to reach the service; it doubles with each failure in a row.
        pub restart_delay: Period = Period::millis(100),
        /// The longest of these pauses.
        pub max_restart_delay: Period = Period::seconds(5),
    }
}

/// How lists are written in parameters and forms of the style `deepObject`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum DeepLists {
    /// `a[]=1&a[]=2`, but `a[0][b]=1` for lists of objects and of lists: as Stripe documents it.
    #[default]
    Mixed,
    /// `a[]=1&a[]=2`, and `a[][b]=1`.
    Brackets,
    /// `a[0]=1&a[1]=2`, and `a[0][b]=1`.
    Indices,
    /// `a=1&a=2`, and `a[b]=1`.
    Repeat,
}

settings! {
    /// The credential for one security scheme.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
    #[serde(default, deny_unknown_fields, expecting = "a table with secret, or with secret_file")]
    #[schemars(rename = "Credential")]
    pub struct CredentialConfig {
        /// The API key, the bearer token (of OAuth 2 and OpenID Connect too), or the password.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub secret: Option<Secret> = None,
        /// A file that holds it, instead. It is read for each call.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub secret_file: Option<PathBuf> = None,
        /// The name that goes with a password.
        #[serde(skip_serializing_if = "String::is_empty")]
        pub username: String = String::new(),
    }
}

impl OpenApiConfig {
    /// A document by its file or URL, with the defaults for the rest.
    pub fn new(document: impl Into<String>) -> Self {
        Self {
            document: document.into(),
            ..Self::default()
        }
    }

    /// The base URLs that are named; `[None]` where the document says it.
    ///
    /// # Errors
    /// What is wrong with them.
    pub fn bases(&self) -> Result<Vec<Option<&str>>, String> {
        if self.base_url.is_empty() && self.base_urls.is_empty() {
            return Ok(vec![None]);
        }
        let (one, several) = (("base_url", &*self.base_url), &*self.base_urls);
        let named = endpoints(one, ("base_urls", several), BASE)?;
        Ok(named.into_iter().map(Some).collect())
    }

    /// Checks what can be checked without the document and the service.
    ///
    /// # Errors
    /// The setting, and what is wrong with it.
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

    /// Whether requests bring anything that is not everybody's to see.
    pub(super) fn has_credentials(&self) -> bool {
        self.has_headers() || !self.security.is_empty()
    }

    /// Whether requests bring headers that the operator or the caller gives: they may be credentials.
    pub(super) fn has_headers(&self) -> bool {
        let own = !self.headers.is_empty() || self.headers_file.is_some();
        own || !self.client().wanted().is_empty()
    }

    /// The same for requests to whoever the document names: nothing of it is the service's alone.
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

    /// How the service is reached.
    pub(super) fn client(&self) -> HttpClientConfig {
        client_of!(self)
    }
}
