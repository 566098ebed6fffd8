use std::sync::Arc;

use super::Registration;
use super::area::area;
use super::labels::{KIND, OUTCOME, labels};

area! {
    /// The metrics of TLS.
    TlsMetrics {
        expiry: Gauge(u64) [port: TlsPort]
            = "shoal.tls.certificate.expiry", "s",
            "Unix time when the certificate expires.";
        lifetime: Gauge(u64) [port: TlsPort]
            = "shoal.tls.certificate.lifetime", "s",
            "Length of the certificate's validity.";
        /// Observes how many processes of the cluster this one cannot agree on TLS with; `None` without TLS between
        /// processes.
        pub observe_distrusted: Gauge(Option<u64>) []
            = "shoal.tls.distrusted", "{peer}", "Dialled processes with which TLS fails.";
        /// Counts an incoming handshake.
        pub handshake: Counter [port: TlsPort, outcome: HandshakeOutcome]
            = "shoal.tls.handshakes", "{handshake}", "Incoming TLS handshakes.";
    }
}

labels! {
    /// The port that presents a certificate.
    TlsPort: KIND {
        /// Port for other processes.
        Cluster = "cluster",
        /// Port for MCP clients.
        Clients = "clients",
        /// Admin port.
        Operators = "operators",
    }
}

labels! {
    /// How a handshake ended.
    HandshakeOutcome: OUTCOME {
        /// Agreed.
        Agreed = "agreed",
        /// No agreement on versions, ciphers or certificates.
        Failed = "failed",
        /// Too slow.
        TooSlow = "too_slow",
        /// Plaintext.
        Plaintext = "plaintext",
    }
}

/// The validity of a certificate, in seconds since the epoch.
#[derive(Clone, Copy, Debug)]
pub struct CertificateValidity {
    /// The start.
    pub not_before: u64,
    /// The end.
    pub not_after: u64,
}

impl TlsMetrics {
    /// Observes the validity of the certificate in use.
    pub fn observe_certificate(
        &self,
        port: TlsPort,
        read: impl Fn() -> CertificateValidity + Send + Sync + 'static,
    ) -> [Registration; 2] {
        let read = Arc::new(read);
        let lasting = Arc::clone(&read);
        [
            self.expiry(move |to| to(port, read().not_after)),
            self.lifetime(move |to| {
                let validity = lasting();
                to(port, validity.not_after.saturating_sub(validity.not_before));
            }),
        ]
    }
}
