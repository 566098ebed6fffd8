//! The certificate that this process shows to the others of its cluster.

use std::sync::Arc;

use super::Registration;
use super::area::area;

area! {
    /// The certificate that this process shows.
    TlsMetrics {
        expiry: Gauge(u64) []
            = "shoal.tls.certificate.expiry", "s",
            "When the certificate that this process shows to the others expires, since the epoch; only with `cluster.tls`.";
        lifetime: Gauge(u64) []
            = "shoal.tls.certificate.lifetime", "s", "How long that certificate is valid in all.";
    }
}

/// When a certificate is valid, in seconds since the epoch.
#[derive(Clone, Copy, Debug)]
pub struct CertificateValidity {
    /// From when on.
    pub not_before: u64,
    /// Until when.
    pub not_after: u64,
}

impl TlsMetrics {
    /// When the certificate in use is valid.
    pub fn observe_certificate(
        &self,
        read: impl Fn() -> CertificateValidity + Send + Sync + 'static,
    ) -> [Registration; 2] {
        let read = Arc::new(read);
        let lasting = Arc::clone(&read);
        [
            self.expiry(move || read().not_after),
            self.lifetime(move || {
                let validity = lasting();
                validity.not_after.saturating_sub(validity.not_before)
            }),
        ]
    }
}
