//! The one constructor of clients.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use http::{HeaderMap, HeaderValue, Method, header};
use reqwest::{Certificate, RequestBuilder};
use rustls::ClientConfig;
use rustls::crypto::CryptoProvider;
use rustls_platform_verifier::BuilderVerifierExt;
use shoal_ports::read_file;
use url::{Host, Url};

use crate::config::OutboundConfig;
use crate::error::whole_story;
use crate::redirect::Redirects;
use crate::resolver::{Checking, Lookup, SystemLookup};
use crate::rules::{ChosenBy, Refused, Rules};

/// Finds out that the other end of a silent stream is gone.
const TCP_KEEP_ALIVE: Duration = Duration::from_secs(30);
/// Header fields of an answer at most. Servers behind several proxies have more than the 100 of the parser's default. Their bytes have a
/// limit of their own.
const MOST_HEADERS: usize = 512;
/// Bytes of a file with certificates or a key at most: an authority's bundle has a few hundred thousand.
const LONGEST_FILE: u64 = 4 << 20;

/// Where requests may go; makes the clients that send them. Clones are the same.
#[derive(Clone)]
pub struct Outbound {
    rules: Arc<Rules>,
    lookup: Arc<dyn Lookup>,
    proxies: bool,
    /// For clients without files of their own. To read the system's authorities takes milliseconds and memory, and there may be a
    /// thousand clients.
    system_tls: Arc<OnceLock<Result<ClientConfig, String>>>,
}

/// A certificate of one's own, and its private key, as files in PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The certificate.
    pub certificate: PathBuf,
    /// Its key.
    pub key: PathBuf,
}

/// What a client is like.
#[derive(Clone, Debug)]
pub struct ClientSettings {
    /// A file with authorities to trust besides those of the system.
    pub authority: Option<PathBuf>,
    /// What is shown to servers that ask.
    pub identity: Option<Identity>,
    /// How long a connection may take to be made.
    pub connect_timeout: Duration,
    /// How long a request may take in all; without it, whoever sends requests limits them.
    pub timeout: Option<Duration>,
    /// How long a connection that nobody uses is kept.
    pub connection_idle: Duration,
    /// What becomes of redirects.
    pub redirects: Redirects,
}

/// What an operator has named.
#[derive(Clone, Debug)]
pub enum Named {
    /// The hosts of these URLs, with their ports.
    These(Vec<Url>),
    /// All that is asked for.
    All,
}

/// Sends requests where they may go. Clones are the same.
#[derive(Clone)]
pub struct Client(Arc<Inner>);

struct Inner {
    outbound: Outbound,
    settings: ClientSettings,
    named: Named,
    /// Goes to what the operator has named.
    to_named: reqwest::Client,
    /// Goes to any other. Most clients have none.
    to_others: OnceLock<Result<reqwest::Client, String>>,
}

impl Default for Outbound {
    /// With the defaults of the configuration.
    fn default() -> Self {
        Self::new(&OutboundConfig::default()).expect("no network is wrong")
    }
}

impl Outbound {
    /// What the configuration says.
    ///
    /// # Errors
    /// When it cannot be used.
    pub fn new(config: &OutboundConfig) -> Result<Self, String> {
        Ok(Self {
            rules: Arc::new(Rules::new(config)?),
            lookup: Arc::new(SystemLookup),
            proxies: config.proxy_from_environment,
            system_tls: Arc::default(),
        })
    }

    /// The same, with names looked up in this way.
    #[must_use]
    pub fn with_lookup(self, lookup: Arc<dyn Lookup>) -> Self {
        Self { lookup, ..self }
    }

    /// A client for an operator who has named these targets.
    ///
    /// # Errors
    /// What is wrong with its files.
    pub fn client(&self, settings: ClientSettings, named: Named) -> Result<Client, String> {
        Ok(Client(Arc::new(Inner {
            to_named: self.build(&settings, ChosenBy::Operator)?,
            to_others: OnceLock::new(),
            named,
            outbound: self.clone(),
            settings,
        })))
    }

    fn build(
        &self,
        settings: &ClientSettings,
        chosen: ChosenBy,
    ) -> Result<reqwest::Client, String> {
        let mut builder = reqwest::Client::builder()
            .user_agent(concat!("shoal/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(settings.connect_timeout)
            .pool_idle_timeout(settings.connection_idle)
            .tcp_keepalive(TCP_KEEP_ALIVE)
            .tcp_nodelay(true)
            // What servers compress all the same is unpacked, in pieces of a few kilobytes: whoever reads an answer limits what comes of it.
            .default_headers(HeaderMap::from_iter([(
                header::ACCEPT_ENCODING,
                HeaderValue::from_static("identity"),
            )]))
            // A connection of HTTP/2 has room for some hundred streams, and a call would wait behind those that only listen.
            .http1_only()
            .http1_max_headers(MOST_HEADERS)
            .redirect(settings.redirects.policy());
        builder = match self.proxies {
            // The resolver is asked for the proxy's name too, which the operator has named.
            true => builder.dns_resolver(self.checking(ChosenBy::Operator)),
            false => builder.dns_resolver(self.checking(chosen)).no_proxy(),
        };
        if let Some(timeout) = settings.timeout {
            builder = builder.timeout(timeout);
        }
        if settings.authority.is_none() && settings.identity.is_none() {
            let tls = self.system_tls.get_or_init(system_tls).clone();
            let tls = tls.map_err(|error| format!("cannot set up TLS: {error}"))?;
            builder = builder.tls_backend_preconfigured(tls);
        }
        if let Some(authority) = &settings.authority {
            let certificates = Certificate::from_pem_bundle(&read(authority)?)
                .map_err(|error| format!("{}: {error}", authority.display()))?;
            builder = builder.tls_certs_merge(certificates);
        }
        if let Some(Identity { certificate, key }) = &settings.identity {
            let mut pem = read(certificate)?;
            pem.push(b'\n');
            pem.extend(read(key)?);
            let identity = reqwest::Identity::from_pem(&pem)
                .map_err(|error| format!("{}: {error}", certificate.display()))?;
            builder = builder.identity(identity);
        }
        let built = builder.build();
        built.map_err(|error| format!("cannot set up the HTTP client: {}", whole_story(&error)))
    }

    fn checking(&self, chosen: ChosenBy) -> Checking {
        Checking {
            lookup: self.lookup.clone(),
            rules: self.rules.clone(),
            chosen,
        }
    }
}

/// Trusts the system's authorities.
fn system_tls() -> Result<ClientConfig, String> {
    let ours = || Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let provider = CryptoProvider::get_default().cloned();
    let tls = ClientConfig::builder_with_provider(provider.unwrap_or_else(ours))
        .with_safe_default_protocol_versions()
        .and_then(BuilderVerifierExt::with_platform_verifier);
    let mut tls = tls
        .map_err(|error| error.to_string())?
        .with_no_client_auth();
    tls.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(tls)
}

impl Client {
    /// Begins a request.
    ///
    /// # Errors
    /// When its target may not be reached, which an address alone tells. What a name's address is, sending tells.
    pub fn request(&self, method: Method, url: &Url) -> Result<RequestBuilder, String> {
        let Inner {
            outbound,
            settings,
            named,
            to_named,
            to_others,
        } = &*self.0;
        if named.has(url) {
            return Ok(to_named.request(method, url.clone()));
        }
        outbound
            .expect_reachable(url)
            .map_err(|refused| refused.to_string())?;
        let to_others = to_others.get_or_init(|| outbound.build(settings, ChosenBy::Others));
        let client = to_others.as_ref().map_err(String::clone)?;
        Ok(client.request(method, url.clone()))
    }
}

impl Outbound {
    /// Whether a URL that others name may be asked, as far as it says so itself.
    fn expect_reachable(&self, url: &Url) -> Result<(), Refused> {
        let address = match url.host() {
            Some(Host::Ipv4(address)) => address.into(),
            Some(Host::Ipv6(address)) => address.into(),
            // A resolver does not see an address that stands in a URL, and sees each name.
            Some(Host::Domain(_)) | None => return Ok(()),
        };
        match self.rules.against(address, ChosenBy::Others) {
            Some(kind) => Err(Refused {
                host: address.to_string(),
                kind: kind.as_str(),
            }),
            None => Ok(()),
        }
    }
}

impl Named {
    /// Another port is another server: a document at one must not lead to what else listens on that machine.
    fn has(&self, url: &Url) -> bool {
        let place = |url: &Url| {
            (
                url.host().map(|host| host.to_owned()),
                url.port_or_known_default(),
            )
        };
        match self {
            Self::These(urls) => urls.iter().any(|named| place(named) == place(url)),
            Self::All => true,
        }
    }
}

fn read(file: &Path) -> Result<Vec<u8>, String> {
    read_file(file, LONGEST_FILE)
        .map_err(|error| format!("cannot read {}: {error}", file.display()))
}
