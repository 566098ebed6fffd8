//! What a way by which clients reach this node has to be. `docs/transports.md` says how one is added.
//!
//! Each is one file, with a row in [`transports!`] below. In front of it stand the layers (`layers.rs`): it sees no request
//! whose host, origin, caller or method is not welcome. What it does with one goes through what all transports share:
//!
//! | step | where |
//! |---|---|
//! | a stream is counted, a message is counted | [`Load::admit_stream`](crate::Load), [`RequestPermit::admit`](crate::permit::RequestPermit) |
//! | the bytes of a message become a body that is recorded and traced | [`Incoming`](crate::incoming::Incoming) |
//! | the body goes to its session | [`legacy::hand_over`](crate::legacy::hand_over) |
//! | what the session says comes as [`StreamItem`](shoal_ports::StreamItem)s, with ids to resume from | [`SessionGateway::listen`](shoal_ports::SessionGateway::listen) |
//! | what waits to be written is counted | [`Visit::reader`] |

use axum::body::Body as HttpBody;
use axum::response::Response;
use http::HeaderMap;
use http::request::Parts;
use shoal_ports::Scheme;

use crate::authorize;
use crate::legacy::http_sse::HttpSse;
use crate::refusal::Refusal;
use crate::refused::Refused;
use crate::state::EdgeState;
use crate::streamable::Streamable;
use crate::visit::Visit;
use crate::websocket::WebSocket;

/// A way by which clients reach this node.
///
/// It is no object: nothing is allocated to find the transport of a request, or to answer one.
pub(crate) trait ClientTransport {
    /// Where it serves a request, if that is its own. What the operator has turned off belongs to nobody, unless there is
    /// something to say of it.
    fn mount(edge: &EdgeState, head: &Parts) -> Option<Mount>;

    /// The token of whoever is calling: that of `Authorization`, unless clients of this transport may have no
    /// say in headers.
    ///
    /// # Errors
    /// There are two.
    fn token(headers: &HeaderMap) -> Result<Option<(Scheme, &[u8])>, Refusal> {
        Ok(authorize::token(headers))
    }

    /// Answers a request whose caller is known and welcome.
    ///
    /// What it has taken of the load, it holds in the answer's body for as long as that is written.
    fn answer(
        visit: Visit<'_>,
        body: HttpBody,
    ) -> impl Future<Output = Result<Response, Refused>> + Send;
}

/// Whether a request is for a configured path, with or without a slash at its end: the routers of most servers make no
/// difference.
pub(crate) fn is_at(head: &Parts, configured: &str) -> bool {
    let bare = |path: &'_ str| path.len() - usize::from(path.ends_with('/'));
    let path = head.uri.path();
    path[..bare(path)] == configured[..bare(configured)]
}

/// Where a transport serves a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mount {
    /// What telemetry calls it.
    pub(crate) route: &'static str,
    /// The methods that it answers, as `Allow` names them.
    pub(crate) allow: &'static str,
}

impl Mount {
    /// Checks the method.
    pub(crate) fn expect(self, head: &Parts) -> Result<(), Refusal> {
        let allow = self.allow;
        let mut methods = allow.split(", ");
        methods
            .any(|method| method == head.method.as_str())
            .then_some(())
            .ok_or(Refusal::MethodNotAllowed { allow })
    }
}

/// Every transport; the first that knows a request as its own has it.
macro_rules! transports {
    ($($transport:ident),+ $(,)?) => {
        /// The transport of a request.
        #[derive(Clone, Copy, Debug)]
        pub(crate) enum Endpoint {
            $(
                $transport(Mount),
            )+
        }

        impl Endpoint {
            /// Whose a request is, if anybody's.
            pub(crate) fn of(edge: &EdgeState, head: &Parts) -> Option<Self> {
                $(
                    if let Some(mount) = $transport::mount(edge, head) {
                        return Some(Self::$transport(mount));
                    }
                )+
                None
            }

            /// Where it is served.
            pub(crate) fn mount(self) -> Mount {
                match self {
                    $(Self::$transport(mount) => mount,)+
                }
            }

            /// The token of whoever is calling.
            pub(crate) fn token(
                self,
                headers: &HeaderMap,
            ) -> Result<Option<(Scheme, &[u8])>, Refusal> {
                match self {
                    $(Self::$transport(_) => $transport::token(headers),)+
                }
            }

            /// Answers a request whose caller is known and welcome.
            pub(crate) async fn answer(
                self,
                visit: Visit<'_>,
                body: HttpBody,
            ) -> Result<Response, Refused> {
                match self {
                    $(Self::$transport(_) => $transport::answer(visit, body).await,)+
                }
            }
        }
    };
}

transports! { WebSocket, Streamable, HttpSse }
