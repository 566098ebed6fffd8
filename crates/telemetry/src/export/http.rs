//! OTLP over HTTP, with requests that are bytes already.

use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use flate2::write::GzEncoder;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode, Uri};
use opentelemetry_http::HttpClient as _;

use super::client::Client;
use super::sender::{Again, Refused};
use crate::config::{Compression, Otlp};

/// Where and how spans are posted.
#[derive(Debug)]
pub(super) struct Http {
    client: Arc<Client>,
    uri: Uri,
    headers: HeaderMap,
    is_compressed: bool,
}

impl Http {
    pub(super) fn new(otlp: &Otlp, client: Arc<Client>, url: &str) -> Result<Self, String> {
        let is_compressed = otlp.compression == Compression::Gzip;
        let mut headers = HeaderMap::new();
        for (name, value) in &otlp.headers {
            let name = HeaderName::from_bytes(name.as_bytes());
            // Both were checked with the rest of the configuration.
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
            uri: url.parse().map_err(|error| format!("{url}: {error}"))?,
            headers,
            is_compressed,
        })
    }

    pub(super) async fn send(&self, request: Bytes) -> Result<Bytes, Refused> {
        let body = if self.is_compressed {
            compressed(&request)
        } else {
            request
        };
        let mut request = Request::new(body);
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.uri.clone();
        *request.headers_mut() = self.headers.clone();
        let answer = (self.client.send_bytes(request).await).map_err(|error| Refused {
            why: error.to_string(),
            again: Again::Soon,
        })?;
        let status = answer.status();
        if status.is_success() {
            return Ok(answer.into_body());
        }
        Err(Refused {
            why: format!("the collector answered {status}"),
            again: again(status, answer.headers()),
        })
    }
}

fn again(status: StatusCode, headers: &HeaderMap) -> Again {
    let told = headers.get(RETRY_AFTER);
    let seconds = told.and_then(|told| told.to_str().ok()?.trim().parse().ok());
    match (status, seconds) {
        (StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE, Some(seconds)) => {
            Again::After(Duration::from_secs(seconds))
        }
        (
            StatusCode::TOO_MANY_REQUESTS
            | StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT,
            _,
        ) => Again::Soon,
        _ => Again::Never,
    }
}

fn compressed(request: &[u8]) -> Bytes {
    let room = Vec::with_capacity(request.len() / 4);
    let mut gzip = GzEncoder::new(room, flate2::Compression::fast());
    let written = gzip.write_all(request).and_then(|()| gzip.finish());
    written.expect("memory takes everything").into()
}
