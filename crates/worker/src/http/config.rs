//! What an operator can say about a server that is reached over HTTP.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shoal_ports::{ListScope, Period, Secret, settings};

use crate::http_client::{
    CallersWithoutToken, ClientCredentialsConfig, HttpClientConfig, HttpTls, TokenExchangeConfig,
    client_of, endpoints,
};
use crate::upstream::{Binding, EraChoice, Settings};

settings! {
    /// An MCP server that speaks Streamable HTTP, of either era.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
    #[serde(default, deny_unknown_fields, expecting = "a table with url, or with urls")]
    #[schemars(rename = "Http")]
    pub struct HttpConfig {
        /// The URL of its MCP endpoint. Which addresses it may have: [backends](backends.md#where-requests-may-go).
        /// Secrets belong in `headers`: this is printed and logged.
        #[serde(skip_serializing_if = "String::is_empty")]
        pub url: String = String::new(),
        /// The URLs of several servers that are equal, instead of `url`. Each is a worker of its own: when one is away, the
        /// calls go to the others.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub urls: Vec<String> = Vec::new(),
        /// Who shares a session of a legacy server.
        pub isolation: HttpIsolation = HttpIsolation::Session,
        /// Sessions at the server at most. If there are as many, Shoal ends an idle one to make room for another
        /// principal's.
        pub sessions: usize = 1024,
        /// A session at the server ends after this time without a call.
        pub session_idle: Period = Period::seconds(300),
        /// In which era the server is spoken to: `"auto"`, `"legacy"` (2025-11-25 and before) or `"modern"`
        /// (2026-07-28). `"auto"` is legacy where the server keeps sessions, since a server's requests to clients exist
        /// only there, and modern for tools that ask by `InputRequiredResult`
        /// ([backends](backends.md#servers-of-both-eras)).
        pub era: EraChoice = EraChoice::Auto,
        /// Headers of every request. `config show` does not print the values.
        pub headers: BTreeMap<String, Secret> = BTreeMap::new(),
        /// A file with more headers, one `Name: value` a line. A changed file is read again.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub headers_file: Option<PathBuf> = None,
        /// Headers of clients' requests that are passed on with their calls, by name. By default none is. It replaces
        /// a header of the same name in `headers`, which then goes only with Shoal's own requests.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub forward: Vec<String> = Vec::new(),
        /// Whose the server's lists are: `"shared"`, or `"principal"` for a server that lists to each caller what that one may
        /// use. Then Shoal reads them with what the caller's request brings by `forward` or `token_exchange`
        /// ([credentials](server-credentials.md#lists-of-each-caller)).
        pub lists: ListScope = ListScope::Shared,
        /// How callers without a token are treated if `forward` names `authorization`: `"refuse"`, or `"service"` for Shoal's own
        /// credentials.
        pub callers_without_token: CallersWithoutToken = CallersWithoutToken::Refuse,
        /// Shoal's own token for the server. Not with `authorization` in `headers`.
        pub client_credentials: ClientCredentialsConfig = ClientCredentialsConfig::default(),
        /// Trades the bearer token of each call's client for one that the server takes (RFC 8693). Not with `authorization` in
        /// `forward`.
        pub token_exchange: TokenExchangeConfig = TokenExchangeConfig::default(),
        /// Certificates for `https`, besides those of the system.
        pub tls: HttpTls = HttpTls::default(),
        /// How long a connection may take to be made.
        pub connect_timeout: Period = Period::seconds(10),
        /// How long the handshake may take.
        pub start_timeout: Period = Period::seconds(30),
        /// How long the server may say nothing to `initialize` before it is sent `server/discover` too.
        pub probe_timeout: Period = Period::seconds(5),
        /// How long a list, a subscription or a ping may take.
        pub request_timeout: Period = Period::seconds(30),
        /// How long the stream of a call may be silent before it counts as broken; 0 for as long as the call may take.
        pub stream_idle: Period = Period::ZERO,
        /// How long a broken stream is tried to be resumed.
        pub resume_for: Period = Period::seconds(60),
        /// How long a connection that nobody uses is kept. It must be shorter than the server keeps it.
        pub connection_idle: Period = Period::seconds(4),
        /// How often the server is asked whether it is there.
        pub health_interval: Period = Period::seconds(10),
        /// How long the server may take to end a session.
        pub shutdown_grace: Period = Period::seconds(2),
        /// Bytes of one message from it.
        pub message_bytes: usize = 16 * 1024 * 1024,
        /// The pause before the first new attempt to reach it; it doubles with each failure in a row.
        pub restart_delay: Period = Period::millis(100),
        /// The longest of these pauses.
        pub max_restart_delay: Period = Period::seconds(5),
    }
}

/// Who shares a session of a legacy server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum HttpIsolation {
    /// Nobody: each legacy session has one of its own. Of callers without a session, calls of those that can be asked have one
    /// each, and the others share one for each principal.
    #[default]
    Session,
    /// All callers of one principal.
    Principal,
}

impl HttpConfig {
    /// One server, with the defaults for the rest.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            ..Self::default()
        }
    }

    /// The URLs of the servers.
    ///
    /// # Errors
    /// What is wrong with them.
    pub fn endpoints(&self) -> Result<Vec<&str>, String> {
        endpoints(
            ("url", &self.url),
            ("urls", &self.urls),
            super::endpoint::WHAT,
        )
    }

    /// Checks what can be checked without the server.
    ///
    /// # Errors
    /// The setting, and what is wrong with it.
    pub fn check(&self) -> Result<(), (&'static str, String)> {
        let setting = if self.urls.is_empty() { "url" } else { "urls" };
        self.endpoints().map_err(|wrong| (setting, wrong))?;
        self.client().check()?;
        if self.lists == ListScope::Principal && self.client().wanted().is_empty() {
            let told = "\"principal\" reads the lists with what callers bring: set forward, or token_exchange";
            return Err(("lists", told.to_owned()));
        }
        if self.sessions == 0 {
            return Err(("sessions", "must be at least 1".to_owned()));
        }
        if self.message_bytes == 0 {
            return Err(("message_bytes", "must be at least 1".to_owned()));
        }
        Ok(())
    }

    /// How it is reached.
    pub(crate) fn client(&self) -> HttpClientConfig {
        HttpClientConfig {
            client_credentials: self.client_credentials.clone(),
            ..client_of!(self)
        }
    }

    /// What there is to say of the server whatever carries its messages.
    pub(super) fn settings(&self, alone: bool) -> Settings {
        Settings {
            era: self.era,
            // A question comes by its call's own stream. Roots are not about a call: servers keep those of one client. Where
            // sessions are not shared, what is listed for this connection is theirs too, so it declares what they do.
            shared: Binding::shared(true, self.isolation == HttpIsolation::Session, false),
            sessions_have_own: self.isolation == HttpIsolation::Session,
            lists: self.lists,
            sessions: self.sessions,
            session_idle: self.session_idle.get(),
            start_timeout: self.start_timeout.get(),
            probe_timeout: self.probe_timeout.get(),
            restart_delay: self.restart_delay.get(),
            max_restart_delay: self.max_restart_delay.get(),
            headers: self.client().wanted(),
            waits_to_reopen: if alone { Duration::MAX } else { Duration::ZERO },
        }
    }
}
