use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustls::client::danger::ServerCertVerifier as _;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::{CertificateError, RootCertStore, ServerConfig};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::contents::{Contents, pair, roots};
use super::error::{CERTIFICATE, CLIENT_AUTHORITY, TlsError, refusal};
use super::renewal::{self, CertificateSource, Renewed};
use super::validity::Validity;

/// ALPN protocols for clients, the preferred one first.
const PROTOCOLS: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// The certificate files of a listener.
#[derive(Clone, Debug)]
pub struct ListenerFiles {
    /// The setting that names the files, for messages.
    pub setting: &'static str,
    /// The certificate in PEM, followed by its intermediates, if any.
    pub certificate: PathBuf,
    /// The private key in PEM.
    pub key: PathBuf,
    /// The certificates of the clients' authorities, in PEM. Without them, clients need no certificate.
    pub client_authority: Option<PathBuf>,
    /// Also serves clients without a certificate. If a client shows a certificate, it must be
    /// valid.
    pub client_certificate_optional: bool,
}

/// A listener's TLS, from the last valid contents of its files; a cheap handle. Reloads affect only
/// new connections.
#[derive(Clone)]
pub struct ListenerTls {
    shared: Arc<Renewed<ListenerFiles>>,
}

pub(super) struct ServerTls {
    server: Arc<ServerConfig>,
    validity: Validity,
}

impl CertificateSource for ListenerFiles {
    type Made = ServerTls;

    fn whose(&self) -> &str {
        self.setting
    }

    fn read(&self) -> Result<Contents, TlsError> {
        let authority = self.client_authority.as_deref();
        let authority = authority.map(|path| (CLIENT_AUTHORITY, path));
        Contents::read(&self.certificate, &self.key, authority)
    }

    fn make(&self, contents: &Contents) -> Result<ServerTls, TlsError> {
        let provider = Arc::new(ring::default_provider());
        let (chain, key) = pair(contents, &self.certificate, &self.key, &provider)?;
        let of_certificate =
            |problem: String| TlsError::file(CERTIFICATE, &self.certificate, problem);
        let validity = validity(&chain, &provider).map_err(of_certificate)?;
        let clients = (self
            .client_authority
            .as_deref()
            .zip(contents.authority.as_deref()))
        .map(|(path, text)| self.clients(text, path, &provider))
        .transpose()?;
        let asks = clients.is_some();
        let clients = clients.unwrap_or_else(WebPkiClientVerifier::no_client_auth);
        let in_words = |error: rustls::Error| of_certificate(error.to_string());
        let mut server = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(in_words)?
            .with_client_cert_verifier(clients)
            .with_single_cert(chain, key)
            .map_err(in_words)?;
        server.alpn_protocols = PROTOCOLS.map(<[u8]>::to_vec).to_vec();
        if asks {
            // Resumption would let a client's certificate outlive its validity or authority.
            server.session_storage = Arc::new(NoServerSessionStorage {});
            server.send_tls13_tickets = 0;
        }
        let server = Arc::new(server);
        Ok(ServerTls { server, validity })
    }

    fn validity(made: &ServerTls) -> Validity {
        made.validity
    }
}

impl ListenerFiles {
    fn clients(
        &self,
        text: &[u8],
        path: &Path,
        provider: &Arc<CryptoProvider>,
    ) -> Result<Arc<dyn ClientCertVerifier>, TlsError> {
        let roots = roots(text, CLIENT_AUTHORITY, path)?;
        let asking = WebPkiClientVerifier::builder_with_provider(roots, provider.clone());
        let asking = match self.client_certificate_optional {
            true => asking.allow_unauthenticated(),
            false => asking,
        };
        let verifier = asking
            .build()
            .map_err(|error| TlsError::file(CLIENT_AUTHORITY, path, error.to_string()))?;
        Ok(verifier)
    }
}

/// Fails for a certificate that is not valid now. Only clients must trust the certificate's authority.
fn validity(
    chain: &[CertificateDer<'static>],
    provider: &Arc<CryptoProvider>,
) -> Result<Validity, String> {
    use super::error::fault;

    let own = chain.first().ok_or("holds no certificate")?;
    // With the certificate as its own authority, only times, names and usages can fail.
    let mut alone = RootCertStore::empty();
    (alone.add(own.clone())).map_err(|error| format!("cannot be used: {error}"))?;
    let verifier = rustls::client::WebPkiServerVerifier::builder_with_provider(
        Arc::new(alone),
        provider.clone(),
    )
    .build()
    .map_err(|error| error.to_string())?;
    let nobody = ServerName::try_from("shoal.invalid").map_err(|error| error.to_string())?;
    let at = |time: UnixTime| match verifier.verify_server_cert(own, &[], &nobody, &[], time) {
        Err(rustls::Error::InvalidCertificate(
            error @ (CertificateError::ExpiredContext { .. }
            | CertificateError::NotValidYetContext { .. }),
        )) => Err(rustls::Error::InvalidCertificate(error)),
        _ => Ok(()),
    };
    if let Err(rustls::Error::InvalidCertificate(error)) = at(UnixTime::now()) {
        return Err(fault(&error));
    }
    Validity::found(at)
}

impl ListenerTls {
    /// Reads the files and checks that they belong together and are valid now. Blocks.
    ///
    /// # Errors
    /// The file that cannot be used, and why.
    pub fn open(files: ListenerFiles) -> Result<Self, TlsError> {
        let shared = Renewed::open(files)?;
        Ok(Self { shared })
    }

    /// Like [`Tls::renew`](super::Tls::renew).
    ///
    /// # Panics
    /// Outside a Tokio runtime.
    pub fn renew(&self, every: Duration) {
        tokio::spawn(renewal::renew(Arc::downgrade(&self.shared), every));
    }

    /// Returns the validity of the certificate in use.
    pub fn validity(&self) -> Validity {
        self.shared.current().validity
    }

    /// Agrees on TLS with a client.
    ///
    /// # Errors
    /// Why the handshake failed, for the log.
    pub async fn accept<S>(&self, stream: S) -> Result<TlsStream<S>, String>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let acceptor = TlsAcceptor::from(Arc::clone(&self.shared.current().server));
        let accepted: io::Result<_> = acceptor.accept(stream).await;
        accepted.map_err(|error| refusal(&error))
    }
}

impl fmt::Debug for ListenerTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let files = &self.shared.source;
        f.debug_tuple("ListenerTls").field(files).finish()
    }
}
