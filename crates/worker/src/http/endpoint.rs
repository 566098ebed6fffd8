//! The HTTP client of one server: its URL, its certificates, its limits.

use std::error::Error as _;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode, header};
use parking_lot::Mutex;
use reqwest::redirect::{Attempt, Policy};
use reqwest::{Certificate, Client, Identity, Response, Url};
use shoal_ports::Caller;

use super::config::{HttpConfig, HttpTls};
use super::headers::{Headers, forwarded, of_caller};
use super::token_exchange::{NoToken, TokenExchange};

/// Finds out that the other end of a silent stream is gone.
const TCP_KEEP_ALIVE: Duration = Duration::from_secs(30);
/// Redirects that are followed, one after the other.
const REDIRECTS: usize = 3;

/// Sends requests to one MCP endpoint.
pub(super) struct Endpoint {
    url: Url,
    config: Arc<HttpConfig>,
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
pub(super) enum Unanswered {
    /// Nothing reached the server.
    NotSent(String),
    /// Something may have reached it.
    Lost(String),
    /// Nothing was sent, since there is no token for the caller.
    NoToken(NoToken),
}

/// Checks that a URL can be an MCP endpoint.
pub(super) fn check_url(url: &str) -> Result<(), String> {
    let parsed: Result<Url, _> = url.parse();
    let Some(parsed) = parsed
        .ok()
        .filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
    else {
        return Err(format!(
            "{url:?} is no URL of an MCP endpoint: use http://HOST:PORT/mcp or https://HOST/mcp"
        ));
    };
    if !parsed.username().is_empty() || parsed.password().is_some() {
        return Err("a URL must not hold a password: it is printed and logged; use headers".into());
    }
    Ok(())
}

impl Endpoint {
    /// Nothing is sent yet.
    pub(super) fn new(url: &str, config: Arc<HttpConfig>) -> Result<Self, String> {
        check_url(url)?;
        let url = url.parse().map_err(|_| format!("{url:?} is no URL"))?;
        Ok(Self {
            url,
            headers: Headers::new(&config)?,
            forward: forwarded(&config.forward)?,
            exchange: (config.exchange().cloned())
                .map(|exchange| TokenExchange::new(exchange, config.request_timeout.get()))
                .transpose()?,
            config,
            client: Mutex::default(),
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

    /// Makes the client, again when the certificates have changed.
    ///
    /// # Errors
    /// What is wrong with the files.
    pub(super) fn prepare(&self) -> Result<Client, String> {
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
    pub(super) async fn admit(&self, caller: &Caller) -> Result<(), NoToken> {
        let Some(exchange) = &self.exchange else {
            return Ok(());
        };
        let client = self.prepare().map_err(NoToken::Away)?;
        exchange.authorization(&client, caller).await.map(drop)
    }

    /// The server did not take what a caller's request carried.
    pub(super) fn not_accepted(&self, caller: Option<&Caller>) {
        if let (Some(exchange), Some(caller)) = (&self.exchange, caller) {
            exchange.forget(caller);
        }
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
        let mut all = self.headers.current();
        if let Some(caller) = caller {
            all.extend(of_caller(caller, &self.forward));
            if let Some(exchange) = &self.exchange {
                let traded = exchange.authorization(client, caller).await;
                all.insert(header::AUTHORIZATION, traded.map_err(Unanswered::NoToken)?);
            }
        }
        // What the protocol says is not the operator's to change.
        for (name, value) in headers {
            if let Some(name) = name {
                all.insert(name, value);
            }
        }
        let request = client
            .request(method, self.url.clone())
            .headers(all)
            .body(body);
        request.send().await.map_err(|error| {
            let story = whole_story(&error);
            if error.is_connect() || error.is_builder() {
                Unanswered::NotSent(format!("the server cannot be reached: {story}"))
            } else {
                Unanswered::Lost(format!("the connection to the server broke: {story}"))
            }
        })
    }
}

fn build(config: &HttpConfig) -> Result<Client, String> {
    let HttpTls {
        authority,
        certificate,
        key,
    } = &config.tls;
    let mut builder = Client::builder()
        .user_agent(concat!("shoal/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(config.connect_timeout.get())
        .pool_idle_timeout(config.connection_idle.get())
        .tcp_keepalive(TCP_KEEP_ALIVE)
        .tcp_nodelay(true)
        // A connection of HTTP/2 has room for some hundred streams, and a call would wait behind those that only listen.
        .http1_only()
        .redirect(Policy::custom(redirected));
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

/// Follows a redirect only where the request stays what it is and goes to the same origin: a server must not send Shoal's
/// credentials, or its requests, to others.
fn redirected(attempt: Attempt<'_>) -> reqwest::redirect::Action {
    let keeps = matches!(
        attempt.status(),
        StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT
    );
    let first = attempt.previous().first();
    let same = first.is_some_and(|first| first.origin() == attempt.url().origin());
    if keeps && same && attempt.previous().len() <= REDIRECTS {
        attempt.follow()
    } else {
        attempt.stop()
    }
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
pub(super) fn modified(file: &Path) -> Option<SystemTime> {
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
