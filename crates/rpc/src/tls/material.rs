//! What the files hold, checked, as rustls wants it.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rustls::client::danger::ServerCertVerifier;
use rustls::client::{Resumption, WebPkiServerVerifier};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::sign::CertifiedKey;
use rustls::{CertificateError, ClientConfig, RootCertStore, ServerConfig};

use super::TlsFiles;
use super::error::{AUTHORITY, CERTIFICATE, KEY, TlsError, fault};
use super::named::Named;

/// What gRPC is called in TLS.
const H2: &[u8] = b"h2";

/// When a certificate is valid, in seconds since the epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Validity {
    /// From when on.
    pub not_before: u64,
    /// Until when.
    pub not_after: u64,
}

/// The bytes of the three files.
#[derive(PartialEq, Eq)]
pub(super) struct Contents {
    certificate: Vec<u8>,
    key: Vec<u8>,
    authority: Vec<u8>,
}

/// What connections are made with.
pub(super) struct Material {
    pub(super) contents: Contents,
    pub(super) server: Arc<ServerConfig>,
    pub(super) client: Arc<ClientConfig>,
    pub(super) validity: Validity,
}

impl Contents {
    /// Reads the files.
    ///
    /// # Errors
    /// Which one cannot be read.
    pub(super) fn read(files: &TlsFiles) -> Result<Self, TlsError> {
        let read = |which, path: &Path| {
            std::fs::read(path)
                .map_err(|error| TlsError::file(which, path, format!("cannot be read: {error}")))
        };
        Ok(Self {
            certificate: read(CERTIFICATE, &files.certificate)?,
            key: read(KEY, &files.key)?,
            authority: read(AUTHORITY, &files.authority)?,
        })
    }
}

impl Material {
    pub(super) fn read(files: &TlsFiles, name: &ServerName<'static>) -> Result<Self, TlsError> {
        Self::of(Contents::read(files)?, files, name)
    }

    /// Checks the contents of the files: that they belong together, and that the certificate would be
    /// accepted by peers that have the same authority and name.
    pub(super) fn of(
        contents: Contents,
        files: &TlsFiles,
        name: &ServerName<'static>,
    ) -> Result<Self, TlsError> {
        let provider = Arc::new(ring::default_provider());
        let chain = certificates(&contents.certificate, CERTIFICATE, &files.certificate)?;
        let key = key(&contents.key, &files.key)?;
        let roots = roots(&contents.authority, &files.authority)?;
        let of_key = |problem: String| TlsError::file(KEY, &files.key, problem);
        let certified = CertifiedKey::from_der(chain.clone(), key.clone_key(), &provider);
        certified.map_err(|error| match error {
            rustls::Error::InconsistentKeys(_) => of_key(format!(
                "does not belong to the certificate {}",
                files.certificate.display()
            )),
            other => of_key(format!("cannot be used: {other}")),
        })?;

        let of_authority = |error: rustls::server::VerifierBuilderError| {
            TlsError::file(AUTHORITY, &files.authority, error.to_string())
        };
        let servers =
            WebPkiServerVerifier::builder_with_provider(roots.clone(), provider.clone()).build();
        let servers = servers.map_err(of_authority)?;
        let clients = WebPkiClientVerifier::builder_with_provider(roots, provider.clone()).build();
        let clients: Arc<dyn ClientCertVerifier> =
            Arc::new(Named::new(clients.map_err(of_authority)?, name.clone()));
        let validity = check(&chain, name, &*servers, &*clients)
            .map_err(|problem| TlsError::file(CERTIFICATE, &files.certificate, problem))?;
        let of_certificate = |error: rustls::Error| {
            TlsError::file(CERTIFICATE, &files.certificate, error.to_string())
        };
        Ok(Self {
            server: server(&provider, clients, chain.clone(), key.clone_key())
                .map_err(of_certificate)?,
            client: client(&provider, servers, chain, key).map_err(of_certificate)?,
            contents,
            validity,
        })
    }
}

/// TLS 1.3 alone: nothing in a cluster is too old for it. Nothing is resumed either: links last, and what
/// was proved to an earlier certificate must not outlive it.
fn server(
    provider: &Arc<CryptoProvider>,
    clients: Arc<dyn ClientCertVerifier>,
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
) -> Result<Arc<ServerConfig>, rustls::Error> {
    let mut config = ServerConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_client_cert_verifier(clients)
        .with_single_cert(chain, key)?;
    config.alpn_protocols = vec![H2.to_vec()];
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Ok(Arc::new(config))
}

fn client(
    provider: &Arc<CryptoProvider>,
    servers: Arc<WebPkiServerVerifier>,
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
) -> Result<Arc<ClientConfig>, rustls::Error> {
    let mut config = ClientConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_webpki_verifier(servers)
        .with_client_auth_cert(chain, key)?;
    config.alpn_protocols = vec![H2.to_vec()];
    config.resumption = Resumption::disabled();
    Ok(Arc::new(config))
}

/// Looks at the own certificate as a peer would; when it is valid.
fn check(
    chain: &[CertificateDer<'static>],
    name: &ServerName<'static>,
    servers: &dyn ServerCertVerifier,
    clients: &dyn ClientCertVerifier,
) -> Result<Validity, String> {
    let (own, between) = chain.split_first().ok_or("holds no certificate")?;
    let in_words = |error: rustls::Error| match error {
        rustls::Error::InvalidCertificate(error) => fault(&error),
        other => format!("cannot be used: {other}"),
    };
    let now = UnixTime::now();
    let at = |time: UnixTime| servers.verify_server_cert(own, between, name, &[], time);
    at(now).map_err(in_words)?;
    clients
        .verify_client_cert(own, between, now)
        .map_err(in_words)?;
    // At the ends of time the verifier says when it would not have been refused.
    let begin = at(UnixTime::since_unix_epoch(Duration::ZERO)).err();
    let end = at(UnixTime::since_unix_epoch(Duration::from_secs(u64::MAX))).err();
    let not_before = match begin {
        Some(rustls::Error::InvalidCertificate(CertificateError::NotValidYetContext {
            not_before,
            ..
        })) => not_before.as_secs(),
        _ => 0,
    };
    let not_after = match end {
        Some(rustls::Error::InvalidCertificate(CertificateError::ExpiredContext {
            not_after,
            ..
        })) => not_after.as_secs(),
        _ => return Err("does not say until when it is valid".to_owned()),
    };
    Ok(Validity {
        not_before,
        not_after,
    })
}

fn certificates(
    text: &[u8],
    which: &'static str,
    path: &Path,
) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let found: Result<Vec<_>, pem::Error> = CertificateDer::pem_slice_iter(text).collect();
    let found =
        found.map_err(|error| TlsError::file(which, path, format!("is no PEM: {error}")))?;
    if found.is_empty() {
        let problem = "holds no certificate: a block -----BEGIN CERTIFICATE----- is expected";
        return Err(TlsError::file(which, path, problem));
    }
    Ok(found)
}

fn key(text: &[u8], path: &Path) -> Result<PrivateKeyDer<'static>, TlsError> {
    PrivateKeyDer::from_pem_slice(text).map_err(|error| {
        let problem = match error {
            pem::Error::NoItemsFound => {
                "holds no private key: a block -----BEGIN PRIVATE KEY----- is expected, and not an encrypted one"
                    .to_owned()
            }
            // Not the error's own words: they may quote the key.
            _ => "is no PEM, or only a part of it".to_owned(),
        };
        TlsError::file(KEY, path, problem)
    })
}

fn roots(text: &[u8], path: &Path) -> Result<Arc<RootCertStore>, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(text, AUTHORITY, path)? {
        roots.add(certificate).map_err(|error| {
            let problem = format!("holds a certificate that cannot be used: {error}");
            TlsError::file(AUTHORITY, path, problem)
        })?;
    }
    Ok(Arc::new(roots))
}
