use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, DigitallySignedStruct, Error, OtherError, SignatureScheme};
use tonic::Status;
use webpki::EndEntityCert;

/// Separates a pool's name and the cluster's in a certificate: `search.pool.shoal`.
const POOL: &str = ".pool.";
const ANY: &str = "*";

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Standing {
    /// All permissions: the certificate names no pool, or the connection has no TLS.
    #[default]
    Full,
    Worker(Arc<[String]>),
}

impl Standing {
    pub(super) fn of(
        certificate: &CertificateDer<'_>,
        name: &ServerName<'_>,
    ) -> Result<Self, Error> {
        let parsed = EndEntityCert::try_from(certificate)
            .map_err(|_| Error::InvalidCertificate(CertificateError::BadEncoding))?;
        let ServerName::DnsName(cluster) = name else {
            return Ok(Self::Full);
        };
        let cluster = cluster.as_ref().to_ascii_lowercase();
        let pools: Vec<String> = parsed
            .valid_dns_names()
            .filter_map(|name| {
                let name = name.to_ascii_lowercase();
                let pool = name.strip_suffix(&cluster)?.strip_suffix(POOL)?;
                Some(pool.to_owned())
            })
            .collect();
        Ok(match pools.is_empty() {
            true => Self::Full,
            false => Self::Worker(pools.into()),
        })
    }

    /// Returns why the peer may not serve `pool`, for both sides' logs.
    pub(crate) fn refuses(&self, pool: &str) -> Option<String> {
        let Self::Worker(pools) = self else {
            return None;
        };
        let serves = |named: &String| named == ANY || named == pool;
        (!pools.iter().any(serves)).then(|| {
            let pools = pools.join(", ");
            format!("the certificate is for the pools {pools}, and not for {pool:?}")
        })
    }

    /// The text completes a sentence that begins with "the certificate".
    pub(super) fn no_node(&self) -> Option<String> {
        let Self::Worker(pools) = self else {
            return None;
        };
        let pools = pools.join(", ");
        Some(format!(
            "is for workers of the pools {pools}, not for nodes"
        ))
    }

    pub(crate) fn expect_node(&self, what: &str) -> Result<(), Status> {
        let Some(why) = self.no_node() else {
            return Ok(());
        };
        let text = format!("the certificate {why}");
        tracing::warn!(
            what,
            why = text,
            "refused a request of a worker that only nodes may send"
        );
        Err(Status::failed_precondition(text))
    }
}

/// Verifies listeners' certificates. Rejects those of workers, because workers do not listen.
#[derive(Debug)]
pub(super) struct Nodes {
    inner: Arc<dyn ServerCertVerifier>,
}

impl Nodes {
    pub(super) fn new(inner: Arc<dyn ServerCertVerifier>) -> Self {
        Self { inner }
    }
}

#[derive(Debug, thiserror::Error)]
#[error("names pools, so it is for workers, not for nodes")]
struct NoNode;

impl ServerCertVerifier for Nodes {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let verified =
            (self.inner).verify_server_cert(end_entity, intermediates, name, ocsp, now)?;
        match Standing::of(end_entity, name)? {
            Standing::Full => Ok(verified),
            Standing::Worker(_) => Err(Error::InvalidCertificate(CertificateError::Other(
                OtherError(Arc::new(NoNode)),
            ))),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.inner.verify_tls12_signature(message, cert, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.inner.verify_tls13_signature(message, cert, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.inner.supported_verify_schemes()
    }
}
