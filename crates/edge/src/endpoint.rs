use axum::body::Body as HttpBody;
use axum::response::Response;
use http::HeaderMap;
use http::request::Parts;
use shoal_ports::Scheme;

use crate::legacy::http_sse::HttpSse;
use crate::refusal::Refusal;
use crate::refused::RefusedMessage;
use crate::state::EdgeState;
use crate::streamable::Streamable;
use crate::transport::{ClientTransport, Mount};
use crate::visit::Visit;
use crate::websocket::WebSocket;

/// The first transport that claims a request serves it.
macro_rules! transports {
    ($($transport:ident),+ $(,)?) => {
        #[derive(Clone, Copy, Debug)]
        pub(crate) enum Endpoint {
            $(
                $transport(Mount),
            )+
        }

        impl Endpoint {
            pub(crate) fn of(edge: &EdgeState, head: &Parts) -> Option<Self> {
                $(
                    if let Some(mount) = $transport::mount(edge, head) {
                        return Some(Self::$transport(mount));
                    }
                )+
                None
            }

            pub(crate) fn mount(self) -> Mount {
                match self {
                    $(Self::$transport(mount) => mount,)+
                }
            }

            pub(crate) fn token(
                self,
                headers: &HeaderMap,
            ) -> Result<Option<(Scheme, &[u8])>, Refusal> {
                match self {
                    $(Self::$transport(_) => $transport::token(headers),)+
                }
            }

            pub(crate) async fn answer(
                self,
                visit: Visit<'_>,
                body: HttpBody,
            ) -> Result<Response, RefusedMessage> {
                match self {
                    $(Self::$transport(_) => $transport::answer(visit, body).await,)+
                }
            }
        }
    };
}

transports! { WebSocket, Streamable, HttpSse }
