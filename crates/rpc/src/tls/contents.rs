use std::path::Path;
use std::sync::Arc;

use rustls::RootCertStore;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use shoal_ports::read_file;

use super::error::{CERTIFICATE, KEY, TlsError};

/// Maximum bytes of a file. An authority's bundle has a few hundred thousand.
const LONGEST: u64 = 4 << 20;

#[derive(PartialEq, Eq)]
pub(super) struct Contents {
    certificate: Vec<u8>,
    key: Vec<u8>,
    pub(super) authority: Option<Vec<u8>>,
}

impl Contents {
    pub(super) fn read(
        certificate: &Path,
        key: &Path,
        authority: Option<(&'static str, &Path)>,
    ) -> Result<Self, TlsError> {
        let authority = authority.map(|(which, path)| read(which, path));
        Ok(Self {
            certificate: read(CERTIFICATE, certificate)?,
            key: read(KEY, key)?,
            authority: authority.transpose()?,
        })
    }
}

fn read(which: &'static str, path: &Path) -> Result<Vec<u8>, TlsError> {
    read_file(path, LONGEST)
        .map_err(|error| TlsError::file(which, path, format!("cannot be read: {error}")))
}

pub(super) fn pair(
    contents: &Contents,
    certificate: &Path,
    key_path: &Path,
    provider: &CryptoProvider,
) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), TlsError> {
    let chain = certificates(&contents.certificate, CERTIFICATE, certificate)?;
    let key = key(&contents.key, key_path)?;
    let of_key = |problem: String| TlsError::file(KEY, key_path, problem);
    CertifiedKey::from_der(chain.clone(), key.clone_key(), provider).map_err(
        |error| match error {
            rustls::Error::InconsistentKeys(_) => of_key(format!(
                "does not belong to the certificate {}",
                certificate.display()
            )),
            other => of_key(format!("cannot be used: {other}")),
        },
    )?;
    Ok((chain, key))
}

fn certificates(
    text: &[u8],
    which: &'static str,
    path: &Path,
) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let found: Result<Vec<_>, pem::Error> = CertificateDer::pem_slice_iter(text).collect();
    let found =
        found.map_err(|error| TlsError::file(which, path, format!("is not PEM: {error}")))?;
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
            // The error may quote the key.
            _ => "is not PEM, or is truncated".to_owned(),
        };
        TlsError::file(KEY, path, problem)
    })
}

pub(super) fn roots(
    text: &[u8],
    which: &'static str,
    path: &Path,
) -> Result<Arc<RootCertStore>, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(text, which, path)? {
        roots.add(certificate).map_err(|error| {
            let problem = format!("holds a certificate that cannot be used: {error}");
            TlsError::file(which, path, problem)
        })?;
    }
    Ok(Arc::new(roots))
}
