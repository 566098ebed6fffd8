use std::collections::VecDeque;
use std::hash::{BuildHasher, Hash, Hasher};
use std::sync::Arc;

use foldhash::fast::RandomState;
use parking_lot::Mutex;
use rmcp::ServerHandler;
use rmcp::model::{ClientCapabilities, Implementation, InitializeRequestParams, ProtocolVersion};
use rmcp::service::{Peer, RoleServer, RunningService, serve_directly};
use shoal_ports::{Caller, ClientInfo, Principal, SessionId};
use shoal_protocol::RawJson;

use super::client_end::{ClientEnd, InProcessPeer};
use super::hub::HandlerHub;
use crate::CallContext;

pub(super) const SHARDS: usize = 16;
/// Maximum idle peers per shard. A peer takes about 14 KiB.
pub(super) const KEPT: usize = 64;

/// Lends each peer to one call at a time, and keeps recent ones.
///
/// Messages on a peer belong to the call that holds it. A peer serves one caller.
pub(super) struct PeerCache {
    hub: Arc<HandlerHub>,
    hasher: RandomState,
    /// Least recently used first.
    shards: [Mutex<VecDeque<Idle>>; SHARDS],
}

struct Idle {
    /// `None` if the peer is kept only for its tool's announcements.
    hash: Option<u64>,
    connection: Box<PeerConnection>,
}

struct PeerConnection {
    service: RunningService<RoleServer, NoService>,
    client_end: Arc<ClientEnd>,
    owner: PeerOwner,
}

struct PeerOwner {
    identity: PeerIdentity,
    info: Option<RawJson>,
    capabilities: RawJson,
}

enum PeerIdentity {
    Session(SessionId),
    Principal(Principal),
}

/// A running call's peer. Without [`Self::give_back`] no other call gets it, because messages may
/// be under way.
pub(super) struct LentPeer<'a> {
    peers: &'a PeerCache,
    hash: u64,
    connection: Option<Box<PeerConnection>>,
}

/// Gets no requests, because calls go to the handler directly.
struct NoService;

impl ServerHandler for NoService {}

impl PeerCache {
    pub(super) fn new(hub: Arc<HandlerHub>) -> Self {
        Self {
            hub,
            hasher: RandomState::default(),
            shards: Default::default(),
        }
    }

    /// Requires a tokio runtime.
    pub(super) fn lend(&self, context: &CallContext, caller: &Caller) -> LentPeer<'_> {
        let hash = self.hash(caller);
        let idle = self.take(hash, caller);
        let connection = idle.unwrap_or_else(|| Box::new(self.open(PeerOwner::of(caller))));
        connection.client_end.serve(context.clone());
        LentPeer {
            peers: self,
            hash,
            connection: Some(connection),
        }
    }

    /// Equal for callers that [`PeerOwner::is`] finds equal, but covers fewer members.
    fn hash(&self, caller: &Caller) -> u64 {
        let mut hasher = self.hasher.build_hasher();
        match &caller.session {
            Some(session) => session.hash(&mut hasher),
            None => {
                caller.principal.hash(&mut hasher);
                caller.capabilities.as_bytes().hash(&mut hasher);
            }
        }
        hasher.finish()
    }

    fn shard(&self, hash: u64) -> &Mutex<VecDeque<Idle>> {
        &self.shards[hash as usize % SHARDS]
    }

    fn take(&self, hash: u64, caller: &Caller) -> Option<Box<PeerConnection>> {
        let mut idle = self.shard(hash).lock();
        let at = idle.iter().rposition(|idle| {
            let connection = &idle.connection;
            idle.hash == Some(hash)
                && connection.owner.is(caller)
                && !connection.client_end.is_used_up()
        })?;
        idle.remove(at).map(|idle| idle.connection)
    }

    fn open(&self, owner: PeerOwner) -> PeerConnection {
        let client_end = ClientEnd::new(Arc::clone(&self.hub));
        let transport = InProcessPeer(Arc::clone(&client_end));
        PeerConnection {
            service: serve_directly(NoService, transport, Some(owner.describe())),
            client_end,
            owner,
        }
    }

    fn keep(&self, hash: u64, connection: Box<PeerConnection>, again: bool) {
        connection.client_end.leave();
        let hash_if_lent = (again && !connection.client_end.is_used_up()).then_some(hash);
        let oldest = {
            let mut idle = self.shard(hash).lock();
            let is_full = idle.len() >= KEPT;
            let oldest = is_full.then(|| idle.pop_front()).flatten();
            idle.push_back(Idle {
                hash: hash_if_lent,
                connection,
            });
            oldest
        };
        // Dropped outside the lock, because this ends the peer's service loop.
        drop(oldest);
    }

    #[cfg(test)]
    pub(super) fn kept(&self) -> (usize, usize) {
        let mut kept = (0, 0);
        for shard in &self.shards {
            let idle = shard.lock();
            kept.0 += idle.len();
            kept.1 += idle.iter().filter(|idle| idle.hash.is_some()).count();
        }
        kept
    }

    pub(super) fn close(&self) {
        for shard in &self.shards {
            let idle = std::mem::take(&mut *shard.lock());
            drop(idle);
        }
    }
}

impl LentPeer<'_> {
    pub(super) fn peer(&self) -> Peer<RoleServer> {
        let connection = self.connection.as_ref();
        let connection = connection.expect("a lent peer is there until it is dropped");
        connection.service.peer().clone()
    }

    pub(super) fn give_back(mut self) {
        if let Some(connection) = self.connection.take() {
            self.peers.keep(self.hash, connection, true);
        }
    }
}

impl Drop for LentPeer<'_> {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take() {
            self.peers.keep(self.hash, connection, false);
        }
    }
}

impl PeerOwner {
    /// Copies a caller's data, so that the peer does not keep the whole request in memory.
    fn of(caller: &Caller) -> Self {
        let identity = match &caller.session {
            Some(session) => PeerIdentity::Session(session.clone()),
            None => PeerIdentity::Principal(caller.principal.clone()),
        };
        Self {
            identity,
            info: (caller.client_info.as_ref()).map(|info| info.as_json().detached()),
            capabilities: caller.capabilities.detached(),
        }
    }

    fn is(&self, caller: &Caller) -> bool {
        let same = match (&self.identity, &caller.session) {
            (PeerIdentity::Session(own), Some(session)) => own == session,
            (PeerIdentity::Principal(own), None) => *own == caller.principal,
            (PeerIdentity::Session(_), None) | (PeerIdentity::Principal(_), Some(_)) => false,
        };
        same && self.info.as_ref() == caller.client_info.as_ref().map(ClientInfo::as_json)
            && self.capabilities == caller.capabilities
    }

    /// Describes the client in the newest revision in which servers may ask. Shoal translates the
    /// questions.
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
    use shoal_ports::{Caller, ClientInfo, ForwardedHeaders, Principal};
    use shoal_protocol::{RawJson, Revision};

    use super::PeerOwner;

    #[test]
    fn an_owner_that_is_remembered_does_not_keep_its_message() {
        let message = Bytes::from(br#"{"name":"n"}{}"#.to_vec());
        let part = |at| RawJson::from_valid(message.slice(at));
        let caller = Caller {
            principal: Principal::anonymous(),
            session: None,
            revision: Revision::V2026_07_28,
            client_info: Some(ClientInfo::new(part(0..12))),
            capabilities: part(12..14),
            headers: ForwardedHeaders::default(),
            grant: None,
        };
        let owner = PeerOwner::of(&caller);
        assert!(owner.is(&caller));
        drop(caller);
        assert!(message.is_unique());
    }
}
