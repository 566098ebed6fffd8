//! TLS: certificates in files, on links between processes and on the ports of clients and operators.
//!
//! On links it is mutual: who dials and who listens show each other a certificate of the same authority.
//!
//! | | |
//! |---|---|
//! | `contents` | what the files hold |
//! | `renewal` | the files are read again while the process runs |
//! | `validity` | when a certificate is valid |
//! | `listener` | the ports of clients and operators |
//! | `material` | what links need of the files, checked, as rustls wants it |
//! | `named` | clients' certificates must carry the cluster's name too |
//! | `standing` | what a peer's certificate lets it do |
//! | `accept` | the listener's side |
//! | `connect` | the dialer's side |
//! | `proving` | a dialled connection, until its peer has accepted the dialer's certificate |
//! | `trust` | with whom TLS could be agreed on |
//! | `stream` | an accepted connection, with TLS or without |
//! | `error` | what is wrong with files and peers, in words |

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
pub(crate) use connect::{Unreached, dial};
use contents::Contents;
use error::AUTHORITY;
pub use error::TlsError;
pub use listener::{ListenerFiles, ListenerTls};
use material::Material;
use renewal::{Renewed, Source};
pub(crate) use standing::Standing;
pub(crate) use stream::peer_address;
use trust::Trust;
pub use trust::{Distrusted, PeerTrust};
pub use validity::Validity;

/// Where a process finds its certificate, and what it asks of its peers' ones.
#[derive(Clone, Debug)]
pub struct TlsFiles {
    /// The certificate in PEM, followed by those between it and the authority, if there are any.
    pub certificate: PathBuf,
    /// Its private key in PEM.
    pub key: PathBuf,
    /// The certificates of the authorities that peers' certificates may be from, in PEM.
    pub authority: PathBuf,
    /// The name that every certificate of the cluster carries, this process's own included.
    pub name: String,
    /// Accepts peers without TLS as well, and dials those without that know none. Only for the time in
    /// which processes with and without TLS are mixed: whoever stands in between can have it left out.
    pub allow_plaintext: bool,
    /// The process is a node, which others would not take it for with a worker's certificate.
    pub for_node: bool,
}

/// The TLS of a process: what its files held when they were last good; a cheap handle.
///
/// What is open stays open, whatever is read later.
#[derive(Clone)]
pub struct Tls {
    shared: Arc<Renewed<Link>>,
    trust: Arc<Trust>,
}

/// What links need.
struct Link {
    files: TlsFiles,
    name: ServerName<'static>,
}

impl Source for Link {
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
    /// Reads the files and checks that peers with the same authority and name would accept the certificate, as a node's if it is one.
    /// Blocks while it reads.
    ///
    /// # Errors
    /// What is wrong with which file.
    pub fn open(files: TlsFiles) -> Result<Self, TlsError> {
        let name = server_name(&files.name)?;
        let shared = Renewed::open(Link { files, name })?;
        let trust = Arc::default();
        Ok(Self { shared, trust })
    }

    /// Reads the files again `every` so often, for connections that are made from then on, until the last
    /// handle is dropped. What cannot be used is logged, and the former certificate stays.
    ///
    /// # Panics
    /// Outside a Tokio runtime.
    pub fn renew(&self, every: Duration) {
        tokio::spawn(renewal::renew(Arc::downgrade(&self.shared), every));
    }

    /// When the certificate in use is valid.
    pub fn validity(&self) -> Validity {
        self.material().validity
    }

    /// Returns what the last dials of the peers at `addresses` (`host:port`) and the open connections show.
    pub fn trust_of<'a>(&self, addresses: impl Iterator<Item = &'a str>) -> PeerTrust {
        self.trust.with_peers(addresses)
    }

    /// Whether a connection is open on which both sides have accepted the other's certificate.
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

/// Whether [`TlsFiles::name`] can be the name of a certificate.
///
/// # Errors
/// [`TlsError`] with the name.
pub fn check_name(name: &str) -> Result<(), TlsError> {
    server_name(name).map(drop)
}

fn server_name(name: &str) -> Result<ServerName<'static>, TlsError> {
    ServerName::try_from(name.to_owned()).map_err(|_| TlsError::Name(name.to_owned()))
}
