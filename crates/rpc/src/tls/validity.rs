use std::time::Duration;

use rustls::CertificateError;
use rustls::pki_types::UnixTime;

/// When a certificate is valid, in seconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Validity {
    /// When the validity begins.
    pub not_before: u64,
    /// When the validity ends.
    pub not_after: u64,
}

impl Validity {
    /// Finds the validity from the errors of a verifier that checks the earliest and the latest time.
    pub(super) fn found<T>(
        at: impl Fn(UnixTime) -> Result<T, rustls::Error>,
    ) -> Result<Self, String> {
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
            _ => return Err("has no end of validity".to_owned()),
        };
        Ok(Validity {
            not_before,
            not_after,
        })
    }
}
