//! WebSocket (RFC 6455) at the MCP endpoint, after the community's draft SEP-1288.
//! `docs/websocket.md` describes the protocol for clients.
//!
//! All messages of a session go on its single stream, so one event id describes what the client has
//! received. A client that asks for ids can continue at any edge. A read message is handed over
//! even if the connection ends.
//!
//! | file | content |
//! |---|---|
//! | `handshake.rs` | the client's offer, and refusals |
//! | `client.rs` | the client and its session |
//! | `connection.rs` | a connection from its handshake to its end |
//! | `receiving.rs` | messages of the client |
//! | `sending.rs` | messages of the server |
//! | `end.rs` | the reasons to close a connection |
//! | `closing.rs` | the end of a connection |

mod client;
mod closing;
mod connection;
mod end;
mod handshake;
mod receiving;
mod sending;

use axum::body::Body as HttpBody;
use axum::response::Response;
use http::request::Parts;
use http::{HeaderMap, Method as HttpMethod};
use shoal_ports::Scheme;

use self::handshake::{AUTH, TOKEN_ONCE, accept, named_once};
use crate::refusal::Refusal;
use crate::refused::RefusedMessage;
use crate::state::EdgeState;
use crate::transport::{ClientTransport, Mount, is_at};
use crate::visit::Visit;
use crate::{authorize, upgrade};

pub(crate) struct WebSocket;

impl ClientTransport for WebSocket {
    fn mount(edge: &EdgeState, head: &Parts) -> Option<Mount> {
        let asked = head.method == HttpMethod::GET && upgrade::asks_for_websocket(&head.headers);
        (asked && is_at(head, &edge.config.endpoint.path)).then_some(Mount {
            route: edge.routes.mcp,
            allow: "GET, POST, DELETE, OPTIONS",
        })
    }

    /// Refuses two tokens, because a proxy could have checked the other one.
    fn token(headers: &HeaderMap) -> Result<Option<(Scheme, &[u8])>, Refusal> {
        let offered = named_once(headers, AUTH, TOKEN_ONCE)?;
        let offered = offered.map(|token| (Scheme::Bearer, token.as_bytes()));
        match (authorize::token(headers), offered) {
            (Some(_), Some(_)) => Err(Refusal::WebSocketHandshake(TOKEN_ONCE.to_owned())),
            (said, offered) => Ok(said.or(offered)),
        }
    }

    async fn answer(visit: Visit<'_>, _: HttpBody) -> Result<Response, RefusedMessage> {
        if !visit.edge.config.endpoint.websocket {
            return Err(Refusal::WebSocketOff.into());
        }
        Box::pin(accept(visit)).await
    }
}
