use std::io;
use std::path::{Path, PathBuf};

use rustls::{AlertDescription, CertificateError};

pub(super) const CERTIFICATE: &str = "certificate";
pub(super) const KEY: &str = "key";
pub(super) const AUTHORITY: &str = "authority";
pub(super) const CLIENT_AUTHORITY: &str = "client_authority";

/// Why a process cannot use its certificate.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum TlsError {
    /// Certificates cannot carry the name.
    #[error(
        "name = {0:?} cannot be the name of a certificate, such as \"shoal\" or \"shoal.example.com\""
    )]
    Name(String),
    /// A file cannot be used.
    #[error("{which} {}: {problem}", path.display())]
    File {
        /// `certificate`, `key`, `authority` or `client_authority`.
        which: &'static str,
        /// Path of the file.
        path: PathBuf,
        /// The problem, and what to do.
        problem: String,
    },
}

impl TlsError {
    pub(super) fn file(which: &'static str, path: &Path, problem: impl Into<String>) -> Self {
        Self::File {
            which,
            path: path.to_owned(),
            problem: problem.into(),
        }
    }
}

/// The description completes a sentence that begins with "it".
pub(super) fn fault(error: &CertificateError) -> String {
    match error {
        CertificateError::ExpiredContext { time, not_after } => {
            let ago = time.as_secs().saturating_sub(not_after.as_secs());
            format!("has expired, {ago} seconds ago")
        }
        CertificateError::NotValidYetContext { time, not_before } => {
            let until = not_before.as_secs().saturating_sub(time.as_secs());
            format!("is valid only in {until} seconds: compare the clocks")
        }
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            "is not issued by the authority that this process trusts".to_owned()
        }
        CertificateError::NotValidForNameContext {
            expected,
            presented,
        } => {
            let expected = expected.to_str();
            match presented.as_slice() {
                [] => format!("carries no name, instead of {expected:?}"),
                names => format!("carries {}, and not {expected:?}", names.join(", ")),
            }
        }
        CertificateError::InvalidPurposeContext { .. } => {
            "needs the usages \"server auth\" and \"client auth\": every process is both".to_owned()
        }
        CertificateError::Other(own) => own.to_string(),
        other => format!("cannot be used: {other}"),
    }
}

pub(super) fn refusal(error: &io::Error) -> String {
    match cause(error) {
        Some(rustls::Error::InvalidCertificate(error)) => {
            format!("its certificate {}", fault(error))
        }
        Some(rustls::Error::NoCertificatesPresented) => "it shows no certificate".to_owned(),
        Some(rustls::Error::InvalidMessage(_)) => "it does not speak TLS".to_owned(),
        Some(rustls::Error::AlertReceived(AlertDescription::ProtocolVersion))
        | Some(rustls::Error::PeerIncompatible(_)) => "it does not speak TLS 1.3".to_owned(),
        Some(rustls::Error::AlertReceived(alert)) => {
            format!("it refuses this process's certificate ({alert:?})")
        }
        Some(other) => other.to_string(),
        None if error.kind() == io::ErrorKind::UnexpectedEof => {
            "it ended the connection before TLS was agreed".to_owned()
        }
        None => error.to_string(),
    }
}

pub(super) fn cause(error: &io::Error) -> Option<&rustls::Error> {
    error.get_ref()?.downcast_ref()
}
