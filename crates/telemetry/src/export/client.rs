//! HTTP to the collector, on telemetry's own runtime.

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use http::{Request, Response};
use opentelemetry_http::{HttpClient, HttpError};
use rustls::{ClientConfig, RootCertStore};
use tokio::runtime::Handle;

use crate::config::Otlp;

/// What a collector's answer may be long; a good one has a few bytes.
const LONGEST_ANSWER: usize = 256 * 1024;

/// Sends exports, each as a task of the runtime: the exporting threads have none.
#[derive(Debug)]
pub(super) struct Client {
    client: reqwest::Client,
    runtime: Handle,
}

impl Client {
    pub(super) fn new(otlp: &Otlp, runtime: Handle) -> Result<Self, String> {
        let mut roots = RootCertStore::empty();
        if otlp.endpoint.starts_with("https:") {
            let found = rustls_native_certs::load_native_certs();
            roots.add_parsable_certificates(found.certs);
            if roots.is_empty() {
                return Err(format!(
                    "{} needs the system's certificate authorities, and none were found: install them, or set \
                     SSL_CERT_FILE",
                    otlp.endpoint
                ));
            }
        }
        let tls = ClientConfig::builder_with_provider(std::sync::Arc::new(
            rustls::crypto::ring::default_provider(),
        ))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(roots)
        .with_no_client_auth();
        let client = reqwest::Client::builder()
            .tls_backend_preconfigured(tls)
            .timeout(otlp.timeout)
            // A collector that sends exports elsewhere would get the headers' secrets sent there.
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .map_err(|error| error.to_string())?;
        Ok(Self { client, runtime })
    }
}

#[async_trait]
impl HttpClient for Client {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let client = self.client.clone();
        self.runtime
            .spawn(async move { send(&client, request).await })
            .await?
    }
}

async fn send(
    client: &reqwest::Client,
    request: Request<Bytes>,
) -> Result<Response<Bytes>, HttpError> {
    let mut answer = client.execute(request.try_into()?).await?;
    let mut body = BytesMut::new();
    while let Some(part) = answer.chunk().await? {
        if body.len() + part.len() > LONGEST_ANSWER {
            return Err(format!("the answer is longer than {LONGEST_ANSWER} bytes").into());
        }
        body.extend_from_slice(&part);
    }
    let mut response = Response::builder().status(answer.status());
    if let Some(headers) = response.headers_mut() {
        *headers = std::mem::take(answer.headers_mut());
    }
    Ok(response.body(body.freeze())?)
}
