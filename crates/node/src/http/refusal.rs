//! Answers to requests that the connection refuses (`docs/errors.md`).

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use http::{HeaderValue, StatusCode, header};
use shoal_protocol::{RpcError, code, error_response_without_id};
use shoal_telemetry::metrics::{RefusalReason, metrics};

use super::HttpLimits;
use super::framing::FramingFault;

const TARGET_BYTES: usize = 65_534;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    Fault(FramingFault),
    Malformed,
    TargetTooLong,
    NoTls,
    HeadTooLarge { headers: usize, bytes: usize },
}

impl Refusal {
    /// Recognises hyper's own refusal: a head without a body. Handlers do not send such an answer with these statuses.
    pub(super) fn of_hyper(written: &[u8], limits: HeadLimits) -> Option<Self> {
        let refusal = match written.strip_prefix(b"HTTP/1.1 ")?.get(..3)? {
            b"400" => Self::Malformed,
            b"414" => Self::TargetTooLong,
            b"431" => Self::HeadTooLarge {
                headers: limits.headers,
                bytes: limits.bytes,
            },
            _ => return None,
        };
        let mut lines = written
            .strip_suffix(b"\r\n\r\n")?
            .split(|&byte| byte == b'\n')
            .skip(1);
        let plain = lines.all(|line| {
            let line = line.trim_ascii();
            line == b"connection: close"
                || line == b"content-length: 0"
                || line.starts_with(b"date: ")
        });
        plain.then_some(refusal)
    }

    fn status(self) -> StatusCode {
        match self {
            Self::Fault(FramingFault::UnknownCoding) => StatusCode::NOT_IMPLEMENTED,
            Self::Fault(_) | Self::Malformed | Self::NoTls => StatusCode::BAD_REQUEST,
            Self::TargetTooLong => StatusCode::URI_TOO_LONG,
            Self::HeadTooLarge { .. } => StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
        }
    }

    fn message(self) -> String {
        match self {
            Self::Fault(fault) => said_of(fault).to_owned(),
            Self::Malformed => {
                "the request is not well-formed HTTP/1.1: its request line or a header is broken"
                    .to_owned()
            }
            Self::NoTls => "this port speaks TLS: use https".to_owned(),
            Self::TargetTooLong => {
                format!(
                    "the request's target is longer than {TARGET_BYTES} bytes; send a shorter one"
                )
            }
            Self::HeadTooLarge { headers, bytes } => format!(
                "the request has more than {headers} header fields, or {bytes} bytes of target and header fields; send fewer"
            ),
        }
    }

    fn text(self) -> Bytes {
        metrics().http.refused(RefusalReason::Headers);
        let status = self.status().as_u16();
        let message = self.message();
        tracing::debug!(status, error = message, "refused a request");
        error_response_without_id(&RpcError::new(code::INVALID_REQUEST, message))
    }

    pub(super) fn response(self) -> Response {
        let mut response = Response::new(Body::from(self.text()));
        *response.status_mut() = self.status();
        let headers = response.headers_mut();
        headers.insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/json"),
        );
        headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
        response
    }

    pub(super) fn wire(self) -> Bytes {
        let text = self.text();
        let head = format!(
            "HTTP/1.1 {}\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
            self.status(),
            text.len()
        );
        [head.as_bytes(), &text].concat().into()
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct HeadLimits {
    headers: usize,
    bytes: usize,
}

impl HeadLimits {
    pub(super) fn of(limits: &HttpLimits) -> Self {
        Self {
            headers: limits.headers,
            bytes: limits.header_bytes,
        }
    }
}

fn said_of(fault: FramingFault) -> &'static str {
    match fault {
        FramingFault::BareLineFeed => {
            "a line of the request's head ends in LF alone; end each in CR LF"
        }
        FramingFault::LengthAndCoding => {
            "Content-Length and Transfer-Encoding exclude each other; send one of them"
        }
        FramingFault::LengthTwice => "the header content-length is there twice; send it once",
        FramingFault::CodingTwice => "the header transfer-encoding is there twice; send it once",
        FramingFault::UnknownCoding => {
            "the body has another transfer coding than chunked; send it without"
        }
        FramingFault::Unclear => {
            "where the request begins or its body ends is in doubt; send it on a new connection"
        }
    }
}
