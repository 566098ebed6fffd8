//! TLS with certificate files, on links between processes and on the ports of clients and
//! operators.
//!
//! Links use mutual TLS: both sides show a certificate of the same authority.
//!
//! | | |
//! |---|---|
//! | `contents` | the contents of the files |
//! | `renewal` | reloads the files while the process runs |
//! | `validity` | when a certificate is valid |
//! | `listener` | the ports of clients and operators |
//! | `material` | the checked configuration of links for rustls |
//! | `named` | requires the cluster's name in clients' certificates |
//! | `standing` | the permissions of a peer's certificate |
//! | `accept` | the listener's side |
//! | `connect` | the dialer's side |
//! | `proving` | a dialled connection until its peer has accepted the dialer's certificate |
//! | `trust` | the peers with which TLS was agreed |
//! | `stream` | an accepted connection, with TLS or without |
//! | `error` | errors of files and peers |

mod accept;
mod connect;
mod contents;
mod error;
mod listener;
mod material;
mod named;
mod proving;
mod renewal;
mod standing;
mod stream;
mod trust;
mod validity;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::ServerName;

pub(crate) use accept::incoming;
pub(crate) use connect::{UnreachedPeer, dial};
use contents::Contents;
use error::AUTHORITY;
pub use error::TlsError;
pub use listener::{ListenerFiles, ListenerTls};
use material::Material;
use renewal::{CertificateSource, Renewed};
pub(crate) use standing::Standing;
pub(crate) use stream::peer_address;
use trust::Trust;
pub use trust::{Distrusted, PeerTrust};
pub use validity::Validity;

/// A process's certificate files, and its requirements for peers' certificates.
#[derive(Clone, Debug)]
pub struct TlsFiles {
    /// The certificate in PEM, followed by its intermediates, if any.
    pub certificate: PathBuf,
    /// The private key in PEM.
    pub key: PathBuf,
    /// The certificates of the peers' authorities, in PEM.
    pub authority: PathBuf,
    /// The name that every certificate of the cluster carries, including this process's own.
    pub name: String,
    /// Also accepts and dials peers in plaintext. Use this only during a rollout, because an attacker on the network
    /// can suppress TLS.
    pub allow_plaintext: bool,
    /// Whether this process is a node. Other processes reject a node that has a worker's certificate.
    pub for_node: bool,
}

/// A process's TLS, from the last valid contents of its files; a cheap handle. Reloads affect only
/// new connections.
#[derive(Clone)]
pub struct Tls {
    shared: Arc<Renewed<LinkTls>>,
    trust: Arc<Trust>,
}

struct LinkTls {
    files: TlsFiles,
    name: ServerName<'static>,
}

impl CertificateSource for LinkTls {
    type Made = Material;

    fn whose(&self) -> &'static str {
        "cluster.tls"
    }

    fn read(&self) -> Result<Contents, TlsError> {
        let authority = Some((AUTHORITY, self.files.authority.as_path()));
        Contents::read(&self.files.certificate, &self.files.key, authority)
    }

    fn make(&self, contents: &Contents) -> Result<Material, TlsError> {
        Material::of(contents, &self.files, &self.name)
    }

    fn validity(made: &Material) -> Validity {
        made.validity
    }
}

impl Tls {
    /// Reads the files and checks that peers would accept the certificate. Blocks.
    ///
    /// # Errors
    /// The file that cannot be used, and why.
    pub fn open(files: TlsFiles) -> Result<Self, TlsError> {
        let name = server_name(&files.name)?;
        let shared = Renewed::open(LinkTls { files, name })?;
        let trust = Arc::default();
        Ok(Self { shared, trust })
    }

    /// Rereads the files at this interval, until the last handle is dropped. On failure, keeps the
    /// former certificate and logs the reason.
    ///
    /// # Panics
    /// Outside a Tokio runtime.
    pub fn renew(&self, every: Duration) {
        tokio::spawn(renewal::renew(Arc::downgrade(&self.shared), every));
    }

    /// Returns the validity of the certificate in use.
    pub fn validity(&self) -> Validity {
        self.material().validity
    }

    /// Returns whether TLS worked with peers: at the last dial of each of `addresses` (`host:port`), and on open
    /// connections.
    pub fn trust_of<'a>(&self, addresses: impl Iterator<Item = &'a str>) -> PeerTrust {
        self.trust.with_peers(addresses)
    }

    /// Whether a connection is open on which both certificates were accepted.
    pub fn has_connections(&self) -> bool {
        self.trust.has_open()
    }

    fn trust(&self) -> &Arc<Trust> {
        &self.trust
    }

    fn material(&self) -> Arc<Material> {
        self.shared.current()
    }

    fn files(&self) -> &TlsFiles {
        &self.shared.source.files
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Tls").field(self.files()).finish()
    }
}

/// Checks that [`TlsFiles::name`] can be the name of a certificate.
///
/// # Errors
/// [`TlsError`] with the name.
pub fn check_name(name: &str) -> Result<(), TlsError> {
    server_name(name).map(drop)
}

fn server_name(name: &str) -> Result<ServerName<'static>, TlsError> {
    ServerName::try_from(name.to_owned()).map_err(|_| TlsError::Name(name.to_owned()))
}
