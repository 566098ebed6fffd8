//! The only constructor of HTTP clients.

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
use crate::rules::{AddressRules, ChosenBy, RefusedAddress};

/// Detects a dead peer behind a silent stream.
const TCP_KEEP_ALIVE: Duration = Duration::from_secs(30);
/// Servers behind several proxies exceed the parser's default of 100.
const MOST_HEADERS: usize = 512;
/// Maximum bytes of a PEM file. An authority bundle has a few hundred thousand.
const LONGEST_FILE: u64 = 4 << 20;

/// Builds HTTP clients for allowed targets. Clones share everything.
#[derive(Clone)]
pub struct Outbound {
    rules: Arc<AddressRules>,
    lookup: Arc<dyn Lookup>,
    proxies: bool,
    /// Shared, because loading the system's authorities costs milliseconds and memory, and there may be a thousand
    /// clients.
    system_tls: Arc<OnceLock<ClientConfig>>,
}

/// A client certificate and key, as PEM files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The certificate.
    pub certificate: PathBuf,
    /// The private key.
    pub key: PathBuf,
}

/// Settings of a client.
#[derive(Clone, Debug)]
pub struct ClientSettings {
    /// Authorities to trust besides the system's.
    pub authority: Option<PathBuf>,
    /// The certificate for servers that request one.
    pub identity: Option<Identity>,
    /// Timeout for connecting.
    pub connect_timeout: Duration,
    /// Timeout for a whole request. Without it, the caller must limit requests.
    pub timeout: Option<Duration>,
    /// How long idle connections are kept.
    pub connection_idle: Duration,
    /// Whether redirects are followed.
    pub redirects: Redirects,
}

/// Targets that the operator has named.
#[derive(Clone, Debug)]
pub enum Named {
    /// These URLs' hosts and ports.
    These(Vec<Url>),
    /// Every target.
    All,
}

/// Sends requests to allowed targets. Clones share connections.
#[derive(Clone)]
pub struct Client(Arc<ClientInner>);

struct ClientInner {
    outbound: Outbound,
    settings: ClientSettings,
    named: Named,
    to_named: reqwest::Client,
    /// Few clients have any.
    to_others: OnceLock<reqwest::Client>,
}

impl Default for Outbound {
    fn default() -> Self {
        Self::new(&OutboundConfig::default()).expect("no network is wrong")
    }
}

impl Outbound {
    /// Applies a configuration.
    ///
    /// # Errors
    /// The configuration is invalid.
    pub fn new(config: &OutboundConfig) -> Result<Self, String> {
        Ok(Self {
            rules: Arc::new(AddressRules::new(config)?),
            lookup: Arc::new(SystemLookup),
            proxies: config.proxy_from_environment,
            system_tls: Arc::default(),
        })
    }

    /// Replaces the name lookup.
    #[must_use]
    pub fn with_lookup(self, lookup: Arc<dyn Lookup>) -> Self {
        Self { lookup, ..self }
    }

    /// Creates a client.
    pub fn client(&self, settings: ClientSettings, named: Named) -> Result<Client, String> {
        Ok(Client(Arc::new(ClientInner {
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
            // Asks for uncompressed responses. A compressed one is unpacked in small pieces, and its reader limits the
            // result.
            .default_headers(HeaderMap::from_iter([(
                header::ACCEPT_ENCODING,
                HeaderValue::from_static("identity"),
            )]))
            // An HTTP/2 connection allows some hundred streams, so calls could wait behind listening requests.
            .http1_only()
            .http1_max_headers(MOST_HEADERS)
            .redirect(settings.redirects.policy());
        builder = match self.proxies {
            // With a proxy, the resolver resolves the proxy's name, which the operator has chosen.
            true => builder.dns_resolver(self.checking(ChosenBy::Operator)),
            false => builder.dns_resolver(self.checking(chosen)).no_proxy(),
        };
        if let Some(timeout) = settings.timeout {
            builder = builder.timeout(timeout);
        }
        if settings.authority.is_none() && settings.identity.is_none() {
            let tls = get_or_try(&self.system_tls, system_tls);
            let tls = tls.map_err(|error| format!("cannot set up TLS: {error}"))?;
            builder = builder.tls_backend_preconfigured(tls.clone());
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

/// A failure leaves the cell empty, so that the next call tries again.
fn get_or_try<T>(
    cell: &OnceLock<T>,
    make: impl FnOnce() -> Result<T, String>,
) -> Result<&T, String> {
    match cell.get() {
        Some(value) => Ok(value),
        None => {
            let made = make()?;
            Ok(cell.get_or_init(|| made))
        }
    }
}

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
    /// Starts a request.
    ///
    /// # Errors
    /// The URL has a forbidden address. Sending checks the addresses of a host name.
    pub fn request(&self, method: Method, url: &Url) -> Result<RequestBuilder, String> {
        let ClientInner {
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
        let client = get_or_try(to_others, || outbound.build(settings, ChosenBy::Others))?;
        Ok(client.request(method, url.clone()))
    }
}

impl Outbound {
    fn expect_reachable(&self, url: &Url) -> Result<(), RefusedAddress> {
        let address = match url.host() {
            Some(Host::Ipv4(address)) => address.into(),
            Some(Host::Ipv6(address)) => address.into(),
            // The resolver checks names, but does not see addresses in URLs.
            Some(Host::Domain(_)) | None => return Ok(()),
        };
        match self.rules.against(address, ChosenBy::Others) {
            Some(kind) => Err(RefusedAddress {
                host: address.to_string(),
                kind: kind.as_str(),
            }),
            None => Ok(()),
        }
    }
}

impl Named {
    /// Compares ports too, so that a document at one port cannot lead to that machine's other servers.
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
