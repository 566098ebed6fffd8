//! The HTTP client of one server: certificates, redirects, headers and tokens.
//!
//! | file | content |
//! |---|---|
//! | `headers` | the operator's headers, and forwarded ones |
//! | `client_credentials` | Shoal's own token |
//! | `token_exchange`, `tokens` | exchange of callers' tokens |
//! | `cached_token`, `token_endpoint` | one token until it expires; requests for tokens |
//! | `body` | bounded reading of answers |
//! | `reachability` | whether the server and its equals are reachable |

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use http::{HeaderMap, HeaderValue, StatusCode, header};
use parking_lot::Mutex;
use reqwest::{RequestBuilder, Response, Url};
use shoal_outbound::{
    Client, ClientSettings, Identity, MOST_REDIRECTS, Named, Outbound, Redirects, whole_story,
};
use shoal_ports::{Caller, read_text, shown};
use tokio::time::Instant;

use self::client_credentials::ClientCredentials;
use self::headers::{Headers, forwarded, of_caller};
use self::token_exchange::TokenExchange;
use crate::upstream::Throttle;

mod body;
mod cached_token;
mod client_credentials;
mod config;
mod headers;
mod reachability;
mod redirect;
mod token_endpoint;
mod token_exchange;
mod tokens;

pub(crate) use self::body::{LATER, beginning_of, retry_after};
pub use self::client_credentials::{ClientAuthentication, ClientCredentialsConfig};
pub use self::config::{CallersWithoutToken, HttpTls, TokenExchangeConfig};
pub(crate) use self::config::{HttpClientConfig, client_of, endpoints};
pub(crate) use self::headers::is_settable;
pub(crate) use self::reachability::{EqualServers, Reachability};
pub(crate) use self::redirect::redirect_target;
pub(crate) use self::token_endpoint::NoToken;

/// How often the client checks its files for changes.
const LOOK: Duration = Duration::from_secs(1);
/// Maximum characters of a server's message that are forwarded or logged.
pub(crate) const SAID: usize = 300;
const SECRET_BYTES: u64 = 64 * 1024;

pub(crate) struct HttpClient {
    config: HttpClientConfig,
    outbound: Outbound,
    named: Named,
    headers: Headers,
    forward: Vec<Arc<str>>,
    credentials: Option<ClientCredentials>,
    exchange: Option<TokenExchange>,
    client: Mutex<Option<Built>>,
    /// Limits log lines about refused credentials of the operator.
    refusals: Throttle,
}

struct Built {
    client: Client,
    files: Vec<Option<SystemTime>>,
    looked: Instant,
}

#[derive(Clone, Debug)]
pub(crate) enum RequestUnanswered {
    NotSent(String),
    /// A part of the request may have arrived.
    Lost(String),
    NoToken(NoToken),
}

pub(crate) async fn off_the_runtime<T: Send + 'static>(
    read: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let read = tokio::task::spawn_blocking(read).await;
    read.unwrap_or_else(|ended| Err(io::Error::other(ended)))
}

/// Reads a file with a secret.
///
/// # Errors
/// Why the file cannot be read, without quoting it.
pub(crate) async fn read_secret(file: &Path) -> Result<String, String> {
    let path = file.to_owned();
    let read = off_the_runtime(move || read_text(&path, SECRET_BYTES)).await;
    read.map_err(|error| format!("cannot read {}: {error}", file.display()))
}

pub(crate) fn check_url(url: &str, what: &str) -> Result<Url, String> {
    let parsed: Result<Url, _> = url.parse();
    let Some(parsed) = parsed
        .ok()
        .filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
    else {
        return Err(format!(
            "{url:?} is no URL of {what}: use http://HOST:PORT/PATH or https://HOST/PATH"
        ));
    };
    if !parsed.username().is_empty() || parsed.password().is_some() {
        return Err("a URL must not hold a password: it is printed and logged; use headers".into());
    }
    Ok(parsed)
}

impl HttpClient {
    /// `named` are the targets that the operator configured, which may be private addresses.
    pub(crate) fn new(
        config: HttpClientConfig,
        outbound: &Outbound,
        named: Named,
    ) -> Result<Self, String> {
        let server = match &named {
            Named::These(urls) => urls.first().cloned(),
            Named::All => None,
        };
        Ok(Self {
            outbound: outbound.clone(),
            named,
            headers: Headers::new(&config)?,
            forward: forwarded(&config.forward)?,
            credentials: (config.credentials().cloned().zip(server))
                .map(|(own, server)| ClientCredentials::new(own, server, config.token_timeout))
                .transpose()?,
            exchange: (config.exchange().cloned())
                .map(|exchange| TokenExchange::new(exchange, config.token_timeout))
                .transpose()?,
            config,
            client: Mutex::default(),
            refusals: Throttle::default(),
        })
    }

    /// Rebuilds the client if the certificates changed. Checks their files at intervals.
    pub(crate) fn prepare(&self) -> Result<Client, String> {
        let mut built = self.client.lock();
        if let Some(built) = &mut *built {
            let now = Instant::now();
            if now < built.looked + LOOK {
                return Ok(built.client.clone());
            }
            if built.files == times(&self.config.tls) {
                built.looked = now;
                return Ok(built.client.clone());
            }
        }
        // Taken first, so that a change during the read is seen later.
        let (files, looked) = (times(&self.config.tls), Instant::now());
        let client = self.build()?;
        *built = Some(Built {
            client: client.clone(),
            files,
            looked,
        });
        Ok(client)
    }

    fn build(&self) -> Result<Client, String> {
        let config = &self.config;
        let HttpTls {
            authority,
            certificate,
            key,
        } = &config.tls;
        let identity = certificate.clone().zip(key.clone());
        let settings = ClientSettings {
            authority: authority.clone(),
            identity: identity.map(|(certificate, key)| Identity { certificate, key }),
            connect_timeout: config.connect_timeout,
            timeout: None,
            connection_idle: config.connection_idle,
            redirects: Redirects::WithinOrigin,
        };
        let mut named = self.named.clone();
        if let Named::These(urls) = &mut named {
            urls.extend((self.exchange.iter()).map(|exchange| exchange.endpoint().clone()));
            urls.extend(
                (config.credentials().into_iter()).flat_map(ClientCredentialsConfig::named),
            );
        }
        self.outbound.client(settings, named)
    }

    pub(crate) async fn admit(&self, caller: &Caller) -> Result<(), NoToken> {
        self.expect_token(caller)?;
        let Some(exchange) = &self.exchange else {
            return Ok(());
        };
        let client = self.prepare().map_err(NoToken::Away)?;
        exchange.authorization(&client, caller).await.map(drop)
    }

    pub(crate) fn not_accepted(&self, caller: Option<&Caller>) {
        if let (Some(exchange), Some(caller)) = (&self.exchange, caller) {
            exchange.forget(caller);
        }
    }

    /// Returns headers besides the protocol's. `caller` is set for a caller's request.
    pub(crate) async fn headers(
        &self,
        client: &Client,
        caller: Option<&Caller>,
    ) -> Result<HeaderMap, NoToken> {
        let mut all = self.headers.current().await;
        if let Some(own) = self.own_credentials(caller)
            && let Some(token) = own.authorization(client).await?
        {
            all.insert(header::AUTHORIZATION, token);
        }
        if let Some(caller) = caller {
            self.expect_token(caller)?;
            all.extend(of_caller(caller, &self.forward));
            if let Some(exchange) = &self.exchange {
                let traded = exchange.authorization(client, caller).await;
                all.insert(header::AUTHORIZATION, traded?);
            }
        }
        Ok(all)
    }

    /// Renews Shoal's own token after a 401 to a request that carried the token `sent`. Returns whether there is a new
    /// token to try.
    pub(crate) async fn renew(
        &self,
        client: &Client,
        caller: Option<&Caller>,
        sent: Option<&HeaderValue>,
        answer: &HeaderMap,
    ) -> Result<bool, NoToken> {
        match self.own_credentials(caller) {
            Some(own) => own.renew(client, sent, answer).await,
            None => Ok(false),
        }
    }

    pub(crate) fn was_renewed_in_vain(&self) {
        if let Some(own) = &self.credentials {
            own.was_futile();
        }
    }

    fn own_credentials(&self, caller: Option<&Caller>) -> Option<&ClientCredentials> {
        let is_callers = caller.is_some_and(|caller| self.is_callers(caller));
        self.credentials.as_ref().filter(|_| !is_callers)
    }

    /// Includes exchanged tokens.
    pub(crate) fn is_callers(&self, caller: &Caller) -> bool {
        self.exchange.is_some() || self.forwards_token() && brings_token(caller)
    }

    /// Whether requests carry the operator's headers, certificate or token, perhaps beside the
    /// caller's. A caller's header replaces the operator's of the same name. A file's headers
    /// always count, because their names are unknown here.
    pub(crate) fn is_operators(&self, caller: Option<&Caller>) -> bool {
        let is_replaced = |name: &String| {
            let name = name.to_ascii_lowercase();
            let is_traded = self.exchange.is_some() && name == *header::AUTHORIZATION.as_str();
            let is_forwarded = (self.forward.iter()).any(|forwarded| **forwarded == *name);
            caller.is_some_and(|caller| {
                is_traded || is_forwarded && caller.headers.get(&name).is_some()
            })
        };
        self.own_credentials(caller).is_some()
            || self.config.tls.certificate.is_some()
            || self.config.headers_file.is_some()
            || self.config.headers.keys().any(|name| !is_replaced(name))
    }

    pub(crate) fn log_refusal(&self, server: &str, status: StatusCode, said: &str) {
        if let Some(kept_back) = self.refusals.admit() {
            let said = shown(said, SAID);
            tracing::warn!(target: "shoal::http", server, %status, said, kept_back, "the server refuses the credentials that are configured for it");
        }
    }

    fn forwards_token(&self) -> bool {
        (self.forward.iter()).any(|name| **name == *header::AUTHORIZATION.as_str())
    }

    /// A caller must bring its token, unless the operator's credentials may stand in for it.
    fn expect_token(&self, caller: &Caller) -> Result<(), NoToken> {
        let may_go_without = self.config.callers_without_token == CallersWithoutToken::Service;
        if may_go_without || !self.forwards_token() || brings_token(caller) {
            return Ok(());
        }
        let why = "the server is called with the caller's own token, and this request brought none; send Authorization";
        Err(NoToken::Refused(why.to_owned()))
    }
}

fn brings_token(caller: &Caller) -> bool {
    caller.headers.get(header::AUTHORIZATION.as_str()).is_some()
}

/// Waits for the head of the answer. Dropping the future, and later the answer, cancels the request.
pub(crate) async fn send(request: RequestBuilder) -> Result<Response, RequestUnanswered> {
    let (client, request) = request.build_split();
    let mut next = Some(request.map_err(|error| unanswered(&error))?);
    let mut followed = 0;
    loop {
        let request = next.take().expect("there is one, or the loop has ended");
        let again = redirect::may_move(request.method()).then(|| request.try_clone());
        let answer = client.execute(request).await;
        let answer = answer.map_err(|error| unanswered(&error))?;
        if let Some(mut again) = again.flatten()
            && followed < MOST_REDIRECTS
            && let Some(url) = redirect::moved(&answer)
        {
            followed += 1;
            *again.url_mut() = url;
            next = Some(again);
        } else {
            return Ok(answer);
        }
    }
}

fn unanswered(error: &reqwest::Error) -> RequestUnanswered {
    let story = whole_story(error);
    if error.is_connect() || error.is_builder() {
        RequestUnanswered::NotSent(format!("the server cannot be reached: {story}"))
    } else {
        RequestUnanswered::Lost(format!("the connection to the server broke: {story}"))
    }
}

fn times(tls: &HttpTls) -> Vec<Option<SystemTime>> {
    let files = [&tls.authority, &tls.certificate, &tls.key];
    let files = files.into_iter().flatten();
    files.map(|file| modified(file)).collect()
}

pub(crate) fn modified(file: &Path) -> Option<SystemTime> {
    std::fs::metadata(file)
        .and_then(|about| about.modified())
        .ok()
}
