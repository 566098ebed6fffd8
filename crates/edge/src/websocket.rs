//! WebSocket (RFC 6455) at the MCP endpoint, after the community's draft SEP-1288: a session whose messages go both ways on
//! one connection. `docs/websocket.md` has the protocol as clients see it.
//!
//! All that a session says goes on its one stream, as with HTTP+SSE, so one event id says all that a client has. One that
//! asks for the ids loses nothing with its connection: it comes back to any edge, and goes on after the last id.
//!
//! Each message is one text frame or more. Of those that come, so many are handed over at once; what has been read is handed
//! over whatever becomes of the connection.
//!
//! | file | what it holds |
//! |---|---|
//! | `handshake.rs` | what a client asks for when it connects, and why it is refused |
//! | `client.rs` | whoever is at the other end, and the session of the connection |
//! | `connection.rs` | a connection from its handshake to its end |
//! | `receiving.rs` | messages of the client, and how they reach the session |
//! | `sending.rs` | messages of the server |
//! | `closing.rs` | why a connection ends, and how its client is told |

mod client;
mod closing;
mod connection;
mod handshake;
mod receiving;
mod sending;

use axum::body::Body as HttpBody;
use axum::response::Response;
use http::request::Parts;
use http::{HeaderMap, Method as HttpMethod};
use shoal_ports::Scheme;

use self::handshake::{AUTH, TOKEN_ONCE, accept, named_once};
use crate::authorize;
use crate::refusal::Refusal;
use crate::refused::Refused;
use crate::state::EdgeState;
use crate::transport::{ClientTransport, Mount, is_at};
use crate::upgrade;
use crate::visit::Visit;

/// WebSocket.
pub(crate) struct WebSocket;

impl ClientTransport for WebSocket {
    /// Also where it is turned off: then that is said, and not that something is wrong with a GET.
    fn mount(edge: &EdgeState, head: &Parts) -> Option<Mount> {
        let asked = head.method == HttpMethod::GET && upgrade::asks_for_websocket(&head.headers);
        (asked && is_at(head, &edge.config.path)).then_some(Mount {
            route: edge.routes.mcp,
            allow: "GET, POST, DELETE, OPTIONS",
        })
    }

    /// Of two, another reader could take the other.
    fn token(headers: &HeaderMap) -> Result<Option<(Scheme, &[u8])>, Refusal> {
        let offered = named_once(headers, AUTH, TOKEN_ONCE)?;
        let offered = offered.map(|token| (Scheme::Bearer, token.as_bytes()));
        match (authorize::token(headers), offered) {
            (Some(_), Some(_)) => Err(Refusal::WebSocketHandshake(TOKEN_ONCE.to_owned())),
            (said, offered) => Ok(said.or(offered)),
        }
    }

    async fn answer(visit: Visit<'_>, _: HttpBody) -> Result<Response, Refused> {
        if !visit.edge.config.websocket {
            return Err(Refusal::WebSocketOff.into());
        }
        Box::pin(accept(visit)).await
    }
}
