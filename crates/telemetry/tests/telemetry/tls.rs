use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rcgen::{CertifiedKey, generate_simple_self_signed};
use shoal_telemetry::config::Protocol;
use shoal_telemetry::metrics::prometheus_text;
use shoal_telemetry::trace;
use tonic::transport::Identity;

use crate::collector::Collector;
use crate::process::{LONG, alone_with, json, telemetry};

const AUTHORITIES: &str = "SSL_CERT_FILE";

struct Certificate(PathBuf);

impl Certificate {
    fn new(test: &str) -> Self {
        let directory = std::env::temp_dir().join(format!("{test}-{}", std::process::id()));
        fs::create_dir_all(&directory).expect("a directory");
        let CertifiedKey { cert, signing_key } =
            generate_simple_self_signed(["127.0.0.1".to_owned()]).expect("a certificate");
        fs::write(directory.join("cert.pem"), cert.pem()).expect("written");
        fs::write(directory.join("key.pem"), signing_key.serialize_pem()).expect("written");
        Self(directory)
    }

    fn path(&self) -> PathBuf {
        self.0.join("cert.pem")
    }
}

impl Drop for Certificate {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn trusting(name: &str, body: impl FnOnce()) {
    let certificate = Certificate::new(&name.replace("::", "-"));
    alone_with(name, &[(AUTHORITIES, &certificate.path())], body);
}

fn identity(certificate: &Path) -> Identity {
    let key = certificate.with_file_name("key.pem");
    let read = |path: &Path| fs::read(path).expect("the file");
    Identity::from_pem(read(certificate), read(&key))
}

fn trusted() -> Identity {
    #[expect(
        clippy::disallowed_methods,
        reason = "what the test itself has set, and no configuration of Shoal"
    )]
    let path = std::env::var(AUTHORITIES);
    identity(Path::new(&path.expect("it is set")))
}

fn send_a_span(collector: &Collector, protocol: Protocol) {
    let mut telemetry = telemetry(collector.endpoint.clone(), protocol);
    telemetry.timeout = Duration::from_secs(5).into();
    let guard = shoal_telemetry::init(&telemetry, &json()).expect("telemetry starts");
    trace::internal("a span").start().end();
    guard.shutdown(LONG);
}

#[test]
fn works_over_grpc() {
    trusting("tls::works_over_grpc", || {
        let collector = Collector::secure(Protocol::Grpc, trusted());
        send_a_span(&collector, Protocol::Grpc);
        collector.span("a span");
    });
}

#[test]
fn works_over_http() {
    trusting("tls::works_over_http", || {
        let collector = Collector::secure(Protocol::Http, trusted());
        send_a_span(&collector, Protocol::Http);
        collector.span("a span");
    });
}

/// Telemetry reveals much about a service, so Shoal sends it only to trusted collectors.
fn stranger(protocol: Protocol) {
    let own = Certificate::new(&format!("stranger-{protocol:?}"));
    let collector = Collector::secure(protocol, identity(&own.path()));
    send_a_span(&collector, protocol);
    assert_eq!(collector.spans(), []);
    let text = prometheus_text();
    assert!(
        text.contains("reason=\"export_failed\",shoal_telemetry_signal=\"traces\"} 1"),
        "{text}"
    );
}

#[test]
fn tells_a_stranger_nothing_over_grpc() {
    trusting("tls::tells_a_stranger_nothing_over_grpc", || {
        stranger(Protocol::Grpc);
    });
}

#[test]
fn tells_a_stranger_nothing_over_http() {
    trusting("tls::tells_a_stranger_nothing_over_http", || {
        stranger(Protocol::Http);
    });
}
