//! The rmcp peers that calls borrow.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use rmcp::ServerHandler;
use rmcp::model::{ClientCapabilities, Implementation, InitializeRequestParams, ProtocolVersion};
use rmcp::service::{Peer, RoleServer, RunningService, serve_directly};
use shoal_ports::Caller;
use shoal_protocol::RawJson;

use super::gauge::{Gauge, Reading};
use super::hub::Hub;
use super::seat::{InProcess, Seat};
use crate::CallContext;

/// Unused peers that are kept for the next calls.
const IDLE: usize = 128;
/// Peers of ended calls that are kept because their tools have kept them.
const KEPT: usize = 128;

/// Lends a peer to every call, and to one call at a time.
///
/// A peer knows nothing of calls, so what arrives through it belongs to the call that has it. For that
/// to be exact, a peer that was lent is lent again only if all that was sent through it has reached its
/// call, and nobody has kept a clone of it. Starting one costs several times as much as finding that out.
pub(super) struct Peers {
    hub: Arc<Hub>,
    gauge: Option<Gauge>,
    idle: Mutex<Vec<Line>>,
    kept: Mutex<VecDeque<Line>>,
}

/// rmcp's service loop behind one peer.
struct Line {
    service: RunningService<RoleServer, Nobody>,
    seat: Arc<Seat>,
    client: Client,
}

/// Whom a peer's info describes.
#[derive(PartialEq, Eq)]
struct Client {
    info: Option<RawJson>,
    capabilities: RawJson,
}

/// A call's peer, until it is dropped.
pub(super) struct Lent<'a> {
    peers: &'a Peers,
    line: Option<Line>,
}

/// The service behind the loops: it is never asked anything, since calls go to the handler directly.
struct Nobody;

impl ServerHandler for Nobody {}

impl Peers {
    /// Must be called within a runtime.
    pub(super) async fn start(hub: Arc<Hub>) -> Self {
        let mut peers = Self {
            hub,
            gauge: None,
            idle: Mutex::default(),
            kept: Mutex::default(),
        };
        let probe = peers.open(Client {
            info: None,
            capabilities: RawJson::from_static("{}"),
        });
        peers.gauge = Gauge::calibrate(probe.service.peer()).await;
        if peers.gauge.is_none() {
            tracing::info!("rmcp peers cannot be told to be unused; every call starts its own");
        }
        peers
    }

    /// Lends a peer to a call.
    pub(super) fn lend(&self, context: &CallContext, caller: &Caller) -> Lent<'_> {
        let idle = self.idle.lock().pop();
        let line = match idle {
            Some(line) if line.client.is(caller) => line,
            Some(mut line) => {
                line.client = Client::of(caller);
                line.service.peer().set_peer_info(line.client.describe());
                line
            }
            None => self.open(Client::of(caller)),
        };
        line.seat.take(context.clone());
        Lent {
            peers: self,
            line: Some(line),
        }
    }

    fn open(&self, client: Client) -> Line {
        let seat = Seat::new(Arc::clone(&self.hub));
        let transport = InProcess(Arc::clone(&seat));
        Line {
            service: serve_directly(Nobody, transport, Some(client.describe())),
            seat,
            client,
        }
    }

    fn take_back(&self, line: Line) {
        line.seat.leave();
        match self.read(&line) {
            Some(Reading {
                shared: false,
                sent,
            }) if sent == line.seat.settled() => {
                let mut idle = self.idle.lock();
                if idle.len() < IDLE {
                    idle.push(line);
                }
            }
            // A tool may go on in the background and announce changes later. It reaches no call
            // any more.
            Some(Reading { shared: true, .. }) => {
                let mut kept = self.kept.lock();
                kept.retain(|line| self.read(line).is_some_and(|reading| reading.shared));
                if kept.len() >= KEPT {
                    kept.pop_front();
                }
                kept.push_back(line);
            }
            _ => {}
        }
    }

    fn read(&self, line: &Line) -> Option<Reading> {
        self.gauge?.read(line.service.peer())
    }

    /// Whether unused peers are lent again.
    #[cfg(test)]
    pub(super) fn can_reuse(&self) -> bool {
        self.gauge.is_some()
    }

    /// How many peers wait to be lent again.
    #[cfg(test)]
    pub(super) fn idle(&self) -> usize {
        self.idle.lock().len()
    }

    /// Ends the loops that are not lent out.
    pub(super) fn close(&self) {
        self.idle.lock().clear();
        self.kept.lock().clear();
    }
}

impl Lent<'_> {
    /// A handle for the handler.
    pub(super) fn peer(&self) -> Peer<RoleServer> {
        let line = self
            .line
            .as_ref()
            .expect("a lent peer is there until it is dropped");
        line.service.peer().clone()
    }
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        if let Some(line) = self.line.take() {
            self.peers.take_back(line);
        }
    }
}

impl Client {
    /// Kept when the call has ended, hence apart from the message that it came in.
    fn of(caller: &Caller) -> Self {
        Self {
            info: caller.client_info.as_ref().map(RawJson::detached),
            capabilities: caller.capabilities.detached(),
        }
    }

    fn is(&self, caller: &Caller) -> bool {
        self.info == caller.client_info && self.capabilities == caller.capabilities
    }

    /// The client as rmcp describes it. Always of the newest revision in which a server may ask its
    /// client: Shoal asks in the way of the client's own.
    fn describe(&self) -> InitializeRequestParams {
        let info = self.info.as_ref().and_then(|info| info.read().ok());
        let info = info.unwrap_or_else(|| Implementation::new("unknown", ""));
        let capabilities: Option<ClientCapabilities> = self.capabilities.read().ok();
        InitializeRequestParams::new(capabilities.unwrap_or_default(), info)
            .with_protocol_version(ProtocolVersion::V_2025_11_25)
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use shoal_ports::{Caller, Principal};
    use shoal_protocol::{RawJson, Revision};

    use super::Client;

    #[test]
    fn a_client_that_is_remembered_does_not_keep_its_message() {
        let message = Bytes::from(br#"{"name":"n"}{}"#.to_vec());
        let part = |at| RawJson::from_valid(message.slice(at));
        let caller = Caller {
            principal: Principal::anonymous(),
            session: None,
            revision: Revision::V2026_07_28,
            client_info: Some(part(0..12)),
            capabilities: part(12..14),
        };
        let client = Client::of(&caller);
        assert!(client.is(&caller));
        drop(caller);
        assert!(message.is_unique());
    }
}
