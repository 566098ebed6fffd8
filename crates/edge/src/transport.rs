//! The interface of client transports. `CONTRIBUTING.md` has the rules for a new one.
//!
//! Each transport is one file, with a row in `transports!` (`endpoint.rs`). Behind the layers
//! (`layers.rs`), it sees only allowed requests. All transports share these steps:
//!
//! | step | where |
//! |---|---|
//! | count a stream or a message | [`Load::admit_stream`](crate::Load), [`RequestPermit::admit`](crate::permit::RequestPermit) |
//! | parse, record and trace a message | [`Incoming`](crate::incoming::Incoming) |
//! | pass the body to its session | [`legacy::hand_over`](crate::legacy::hand_over) |
//! | read the session's [`StreamItem`](shoal_ports::StreamItem)s | [`SessionGateway::listen`](shoal_ports::SessionGateway::listen) |
//! | count waiting answers | [`Visit::reader`] |

use axum::body::Body as HttpBody;
use axum::response::Response;
use http::HeaderMap;
use http::request::Parts;
use shoal_ports::Scheme;

use crate::authorize;
use crate::refusal::Refusal;
use crate::refused::RefusedMessage;
use crate::state::EdgeState;
use crate::visit::Visit;

/// A client transport. Static dispatch avoids allocations.
pub(crate) trait ClientTransport {
    /// A disabled transport claims its requests only to refuse them with the reason.
    fn mount(edge: &EdgeState, head: &Parts) -> Option<Mount>;

    /// Reads `Authorization`, or another place if the transport's clients cannot set headers. Fails
    /// for two tokens.
    fn token(headers: &HeaderMap) -> Result<Option<(Scheme, &[u8])>, Refusal> {
        Ok(authorize::token(headers))
    }

    /// The answer's body must hold the load permits.
    fn answer(
        visit: Visit<'_>,
        body: HttpBody,
    ) -> impl Future<Output = Result<Response, RefusedMessage>> + Send;
}

/// Allows a final slash, like most servers' routers.
pub(crate) fn is_at(head: &Parts, configured: &str) -> bool {
    let bare = |path: &'_ str| path.len() - usize::from(path.ends_with('/'));
    let path = head.uri.path();
    path[..bare(path)] == configured[..bare(configured)]
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Mount {
    pub(crate) route: &'static str,
    pub(crate) allow: &'static str,
}

impl Mount {
    pub(crate) fn expect(self, head: &Parts) -> Result<(), Refusal> {
        let allow = self.allow;
        let mut methods = allow.split(", ");
        methods
            .any(|method| method == head.method.as_str())
            .then_some(())
            .ok_or(Refusal::MethodNotAllowed { allow })
    }
}
