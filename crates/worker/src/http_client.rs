//! The HTTP client of one server, whatever is spoken with it: certificates, redirects, headers, tokens.
//!
//! | file | its part |
//! |---|---|
//! | `config` | what an operator can say |
//! | `headers` | headers that the operator adds, and those of clients that are passed on |
//! | `token_exchange`, `tokens` | tokens of callers, traded for such that the server takes |
//! | `body` | reading an answer, bounded |
//! | `redirect` | which redirects are followed, and what is said of the others |
//! | `reachability` | whether the server is there |

use std::error::Error as _;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use http::{HeaderMap, header};
use parking_lot::Mutex;
use reqwest::redirect::Policy;
use reqwest::{Certificate, Client, Identity, RequestBuilder, Response, Url};
use shoal_ports::Caller;

use self::headers::{Headers, forwarded, of_caller};
use self::token_exchange::TokenExchange;

mod body;
mod config;
mod headers;
mod reachability;
mod redirect;
mod token_exchange;
mod tokens;

pub(crate) use self::body::{Broken, LATER, beginning_of, collect, retry_after};
pub(crate) use self::config::{HttpClientConfig, client_of, endpoints};
pub use self::config::{HttpTls, TokenExchangeConfig};
pub(crate) use self::headers::is_settable;
pub(crate) use self::reachability::Reachability;
pub(crate) use self::redirect::redirect_target;
pub(crate) use self::token_exchange::NoToken;

/// Finds out that the other end of a silent stream is gone.
const TCP_KEEP_ALIVE: Duration = Duration::from_secs(30);

/// Sends requests to one server.
pub(crate) struct HttpClient {
    config: HttpClientConfig,
    headers: Headers,
    forward: Vec<Arc<str>>,
    exchange: Option<TokenExchange>,
    client: Mutex<Option<Built>>,
}

/// A client, and the files that it was built with.
struct Built {
    client: Client,
    files: Vec<Option<SystemTime>>,
}

/// Why there is no answer.
#[derive(Clone, Debug)]
pub(crate) enum Unanswered {
    /// Nothing reached the server.
    NotSent(String),
    /// Something may have reached it.
    Lost(String),
    /// Nothing was sent, since there is no token for the caller.
    NoToken(NoToken),
}

/// Checks that a URL can be that of `what`.
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
    /// Nothing is sent yet.
    ///
    /// # Errors
    /// When the settings cannot be used.
    pub(crate) fn new(config: HttpClientConfig) -> Result<Self, String> {
        Ok(Self {
            headers: Headers::new(&config)?,
            forward: forwarded(&config.forward)?,
            exchange: (config.exchange().cloned())
                .map(|exchange| TokenExchange::new(exchange, config.exchange_timeout))
                .transpose()?,
            config,
            client: Mutex::default(),
        })
    }

    /// Makes the client, again when the certificates have changed.
    ///
    /// # Errors
    /// What is wrong with the files.
    pub(crate) fn prepare(&self) -> Result<Client, String> {
        let files = times(&self.config.tls);
        let mut built = self.client.lock();
        if let Some(built) = built.as_ref().filter(|built| built.files == files) {
            return Ok(built.client.clone());
        }
        let client = build(&self.config)?;
        *built = Some(Built {
            client: client.clone(),
            files,
        });
        Ok(client)
    }

    /// Makes sure that requests of a caller can be sent.
    ///
    /// # Errors
    /// When there is no token for it.
    pub(crate) async fn admit(&self, caller: &Caller) -> Result<(), NoToken> {
        let Some(exchange) = &self.exchange else {
            return Ok(());
        };
        let client = self.prepare().map_err(NoToken::Away)?;
        exchange.authorization(&client, caller).await.map(drop)
    }

    /// The server did not take what a caller's request carried.
    pub(crate) fn not_accepted(&self, caller: Option<&Caller>) {
        if let (Some(exchange), Some(caller)) = (&self.exchange, caller) {
            exchange.forget(caller);
        }
    }

    /// The headers that a request brings, of this caller where it is one's, besides those of the protocol that is spoken.
    ///
    /// # Errors
    /// When there is no token for the caller.
    pub(crate) async fn headers(
        &self,
        client: &Client,
        caller: Option<&Caller>,
    ) -> Result<HeaderMap, NoToken> {
        let mut all = self.headers.current().await;
        if let Some(caller) = caller {
            all.extend(of_caller(caller, &self.forward));
            if let Some(exchange) = &self.exchange {
                let traded = exchange.authorization(client, caller).await;
                all.insert(header::AUTHORIZATION, traded?);
            }
        }
        Ok(all)
    }
}

/// Sends a request, and waits for the head of its answer. Dropping the future, and later the answer, gives the request up.
///
/// # Errors
/// When there is no answer.
pub(crate) async fn send(request: RequestBuilder) -> Result<Response, Unanswered> {
    let (client, request) = request.build_split();
    let mut next = Some(request.map_err(|error| unanswered(&error))?);
    let mut followed = 0;
    loop {
        let request = next.take().expect("there is one, or the loop has ended");
        let again = redirect::may_move(request.method()).then(|| request.try_clone());
        let answer = client.execute(request).await;
        let answer = answer.map_err(|error| unanswered(&error))?;
        if let Some(mut again) = again.flatten()
            && followed < redirect::MOST
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

fn unanswered(error: &reqwest::Error) -> Unanswered {
    let story = whole_story(error);
    if error.is_connect() || error.is_builder() {
        Unanswered::NotSent(format!("the server cannot be reached: {story}"))
    } else {
        Unanswered::Lost(format!("the connection to the server broke: {story}"))
    }
}

fn build(config: &HttpClientConfig) -> Result<Client, String> {
    let HttpTls {
        authority,
        certificate,
        key,
    } = &config.tls;
    let mut builder = Client::builder()
        .user_agent(concat!("shoal/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(config.connect_timeout)
        .pool_idle_timeout(config.connection_idle)
        .tcp_keepalive(TCP_KEEP_ALIVE)
        .tcp_nodelay(true)
        // A connection of HTTP/2 has room for some hundred streams, and a call would wait behind those that only listen.
        .http1_only()
        .redirect(Policy::custom(redirect::followed));
    if let Some(authority) = authority {
        let certificates = Certificate::from_pem_bundle(&read(authority)?)
            .map_err(|error| format!("{}: {error}", authority.display()))?;
        builder = builder.tls_certs_merge(certificates);
    }
    if let (Some(certificate), Some(key)) = (certificate, key) {
        let mut pem = read(certificate)?;
        pem.push(b'\n');
        pem.extend(read(key)?);
        let identity = Identity::from_pem(&pem)
            .map_err(|error| format!("{}: {error}", certificate.display()))?;
        builder = builder.identity(identity);
    }
    builder
        .build()
        .map_err(|error| format!("cannot set up the HTTP client: {}", whole_story(&error)))
}

fn read(file: &Path) -> Result<Vec<u8>, String> {
    std::fs::read(file).map_err(|error| format!("cannot read {}: {error}", file.display()))
}

/// When the files were changed last.
fn times(tls: &HttpTls) -> Vec<Option<SystemTime>> {
    let files = [&tls.authority, &tls.certificate, &tls.key];
    let files = files.into_iter().flatten();
    files.map(|file| modified(file)).collect()
}

/// When a file was changed last.
pub(crate) fn modified(file: &Path) -> Option<SystemTime> {
    std::fs::metadata(file)
        .and_then(|about| about.modified())
        .ok()
}

/// An error with its causes; reqwest's own text names none. Not the URL: its query may hold what is nobody's business.
fn whole_story(error: &reqwest::Error) -> String {
    let mut cause = error.source();
    let Some(first) = cause else {
        return "the request failed".to_owned();
    };
    let mut story = first.to_string();
    while let Some(next) = cause.and_then(std::error::Error::source) {
        story.push_str(": ");
        story.push_str(&next.to_string());
        cause = Some(next);
    }
    story
}
