//! The server is this process: its router is called without a socket.

use async_trait::async_trait;
use axum::Router;
use axum::body::Body;
use futures::StreamExt as _;
use http::{HeaderValue, Request, header};
use tower::ServiceExt as _;

use super::{Broken, Exchange, Outgoing, Reply, Unanswered};

/// Calls a router of this process.
pub(in crate::stdio) struct InProcess {
    router: Router,
    path: String,
}

impl InProcess {
    pub(in crate::stdio) fn new(router: Router, path: String) -> Self {
        Self { router, path }
    }
}

#[async_trait]
impl Exchange for InProcess {
    async fn send(&self, outgoing: Outgoing) -> Result<Reply, Unanswered> {
        let mut request = Request::new(Body::from(outgoing.body));
        *request.method_mut() = outgoing.method;
        *request.headers_mut() = outgoing.headers;
        let host = HeaderValue::from_static("localhost");
        request.headers_mut().insert(header::HOST, host);
        *request.uri_mut() = self
            .path
            .parse()
            .map_err(|error| Unanswered::NotSent(format!("{:?} is no path: {error}", self.path)))?;
        let answer = match self.router.clone().oneshot(request).await {
            Ok(answer) => answer,
            Err(never) => match never {},
        };
        Ok(answer.map(|body| {
            body.into_data_stream()
                .map(|bytes| bytes.map_err(|error| Broken(error.to_string())))
                .boxed()
        }))
    }
}
