use std::net::SocketAddr;
use std::sync::Arc;

use http::Extensions;
use parking_lot::Mutex;
use shoal_ports::{ClientCertificate, ClientInfo, LastToken};
use shoal_protocol::RawJson;

use crate::writing::Writing;

/// A request's connection, which the HTTP server adds to the request's extensions. Without it, the
/// edge does not know client addresses and cannot drop waiting answers.
#[derive(Clone)]
pub struct Connection {
    /// The peer.
    pub peer: Arc<Peer>,
    /// The answer's write progress.
    pub writing: Writing,
}

impl Connection {
    pub(crate) fn of(request: &Extensions) -> Option<&Self> {
        request.get()
    }
}

/// A client, or a proxy with many clients.
#[derive(Default)]
pub struct Peer {
    /// The peer's address.
    pub address: Option<SocketAddr>,
    /// The peer's TLS certificate.
    pub certificate: Option<ClientCertificate>,
    /// Whether TLS ends in this process.
    pub over_tls: bool,
    /// The last request's token.
    pub last_token: LastToken,
    /// The client of the last modern request.
    pub last_client: LastClient,
}

/// A connection's last `clientInfo`, which requests that repeat it share. `protocol/src/lengths.rs`
/// limits its size.
#[derive(Default)]
pub struct LastClient(Mutex<Option<ClientInfo>>);

impl LastClient {
    pub(crate) fn named(&self, info: &RawJson) -> ClientInfo {
        let mut last = self.0.lock();
        if let Some(known) = last.as_ref().filter(|known| known.as_json() == info) {
            return known.clone();
        }
        // Detached, so that the whole message does not stay in memory.
        last.insert(ClientInfo::new(info.detached())).clone()
    }
}

#[cfg(test)]
mod tests {
    use shoal_protocol::RawJson;

    use super::LastClient;

    #[test]
    fn each_client_has_its_own_name_whoever_came_before() {
        let last = LastClient::default();
        for name in ["a", "a", "b", "a"] {
            let info = RawJson::of(&serde_json::json!({ "name": name }));
            assert_eq!(last.named(&info).name(), name);
        }
    }
}
