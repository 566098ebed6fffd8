use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use flate2::write::GzEncoder;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use reqwest::Url;
use rustls::{ClientConfig, RootCertStore};

use super::attempt::{AttemptError, Retryable};
use crate::config::{Compression, Telemetry};

/// Maximum bytes of a response. A correct one has a few.
const LONGEST_ANSWER: usize = 256 * 1024;

#[derive(Debug)]
pub(super) struct OtlpHttp {
    client: reqwest::Client,
    url: Url,
    headers: HeaderMap,
    is_compressed: bool,
}

impl OtlpHttp {
    pub(super) fn new(
        otlp: &Telemetry,
        client: reqwest::Client,
        url: &str,
    ) -> Result<Self, String> {
        let is_compressed = otlp.compression == Compression::Gzip;
        let mut headers = HeaderMap::new();
        for (name, value) in &otlp.headers {
            let name = HeaderName::from_bytes(name.as_bytes());
            // The check of the configuration has validated the headers.
            if let (Ok(name), Ok(value)) = (name, value.expose().parse()) {
                headers.insert(name, value);
            }
        }
        let protobuf = HeaderValue::from_static("application/x-protobuf");
        headers.insert(CONTENT_TYPE, protobuf);
        if is_compressed {
            headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
        Ok(Self {
            client,
            url: url.parse().map_err(|error| format!("{url}: {error}"))?,
            headers,
            is_compressed,
        })
    }

    pub(super) async fn send(&self, request: Bytes) -> Result<Bytes, AttemptError> {
        let body = if self.is_compressed {
            compressed(&request)
        } else {
            request
        };
        let sent = (self.client.post(self.url.clone()))
            .headers(self.headers.clone())
            .body(body)
            .send();
        let mut answer = sent.await.map_err(broken)?;
        let status = answer.status();
        if !status.is_success() {
            return Err(AttemptError {
                why: format!("the collector answered {status}"),
                again: again(status, answer.headers()),
            });
        }
        let mut body = BytesMut::new();
        while let Some(part) = answer.chunk().await.map_err(broken)? {
            if body.len() + part.len() > LONGEST_ANSWER {
                return Err(AttemptError {
                    why: format!("the answer is longer than {LONGEST_ANSWER} bytes"),
                    again: Retryable::Soon,
                });
            }
            body.extend_from_slice(&part);
        }
        Ok(body.freeze())
    }
}

fn broken(error: reqwest::Error) -> AttemptError {
    AttemptError {
        why: error.to_string(),
        again: Retryable::Soon,
    }
}

pub(super) fn client(otlp: &Telemetry, address: &str) -> Result<reqwest::Client, String> {
    let mut roots = RootCertStore::empty();
    if address.starts_with("https:") {
        let found = rustls_native_certs::load_native_certs();
        roots.add_parsable_certificates(found.certs);
        if roots.is_empty() {
            return Err(format!(
                "{address} needs the system's certificate authorities, and none were found: install them, or set \
                 SSL_CERT_FILE"
            ));
        }
    }
    let tls =
        ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?
            .with_root_certificates(roots)
            .with_no_client_auth();
    reqwest::Client::builder()
        .tls_backend_preconfigured(tls)
        .timeout(otlp.timeout.get())
        // A redirect would send the headers' secrets elsewhere.
        .redirect(reqwest::redirect::Policy::none())
        .build()
        .map_err(|error| error.to_string())
}

fn again(status: StatusCode, headers: &HeaderMap) -> Retryable {
    let told = headers.get(RETRY_AFTER);
    let seconds = told.and_then(|told| told.to_str().ok()?.trim().parse().ok());
    match (status, seconds) {
        (StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE, Some(seconds)) => {
            Retryable::After(Duration::from_secs(seconds))
        }
        (
            StatusCode::TOO_MANY_REQUESTS
            | StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT,
            _,
        ) => Retryable::Soon,
        _ => Retryable::Never,
    }
}

fn compressed(request: &[u8]) -> Bytes {
    let room = Vec::with_capacity(request.len() / 4);
    let mut gzip = GzEncoder::new(room, flate2::Compression::fast());
    let written = gzip.write_all(request).and_then(|()| gzip.finish());
    written.expect("memory takes everything").into()
}
