use async_trait::async_trait;
use axum::body::Body;
use futures::StreamExt as _;
use http::{HeaderValue, Request, header};
use shoal_edge::EdgeService;

use super::{BodyError, ExchangeReply, Outgoing, SendError, ServerExchange};

pub(in crate::stdio) struct InProcess {
    edge: EdgeService,
    path: String,
}

impl InProcess {
    pub(in crate::stdio) fn new(edge: EdgeService, path: String) -> Self {
        Self { edge, path }
    }
}

#[async_trait]
impl ServerExchange for InProcess {
    async fn send(&self, outgoing: Outgoing) -> Result<ExchangeReply, SendError> {
        let mut request = Request::new(Body::from(outgoing.body));
        *request.method_mut() = outgoing.method;
        *request.headers_mut() = outgoing.headers;
        let host = HeaderValue::from_static("localhost");
        request.headers_mut().insert(header::HOST, host);
        *request.uri_mut() = self
            .path
            .parse()
            .map_err(|error| SendError::NotSent(format!("{:?} is no path: {error}", self.path)))?;
        let answer = self.edge.answer(request).await;
        Ok(answer.map(|body| {
            body.into_data_stream()
                .map(|bytes| bytes.map_err(|error| BodyError(error.to_string())))
                .boxed()
        }))
    }
}
