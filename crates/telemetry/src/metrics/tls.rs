//! The certificate that this process shows to the others of its cluster.

use std::sync::Arc;

use super::definition::{Kind, definitions};
use super::instrument::Factory;
use super::observed::{Observed, Registration, float};

definitions! {
    EXPIRY = Kind::Gauge, "shoal.tls.certificate.expiry", "s",
        "When the certificate that this process shows to the others expires, since the epoch; only with `cluster.tls`.", [];
    LIFETIME = Kind::Gauge, "shoal.tls.certificate.lifetime", "s",
        "How long that certificate is valid in all.", [];
}

/// When a certificate is valid, in seconds since the epoch.
#[derive(Clone, Copy, Debug)]
pub struct CertificateValidity {
    /// From when on.
    pub not_before: u64,
    /// Until when.
    pub not_after: u64,
}

/// The certificate that this process shows.
#[derive(Debug)]
pub struct TlsMetrics {
    expiry: Observed,
    lifetime: Observed,
}

impl TlsMetrics {
    pub(super) fn new(factory: &Factory) -> Self {
        Self {
            expiry: factory.observed(&EXPIRY),
            lifetime: factory.observed(&LIFETIME),
        }
    }

    /// When the certificate in use is valid.
    pub fn observe_certificate(
        &self,
        read: impl Fn() -> CertificateValidity + Send + Sync + 'static,
    ) -> [Registration; 2] {
        let read = Arc::new(read);
        let lasting = Arc::clone(&read);
        [
            self.expiry.number(move || float(read().not_after)),
            self.lifetime.number(move || {
                let validity = lasting();
                float(validity.not_after.saturating_sub(validity.not_before))
            }),
        ]
    }
}
