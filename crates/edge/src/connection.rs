//! What is known of the connection that a request came on.

use std::net::SocketAddr;
use std::sync::Arc;

use http::Extensions;
use parking_lot::Mutex;
use shoal_ports::{ClientCertificate, ClientInfo, LastToken};
use shoal_protocol::RawJson;

use crate::writing::Writing;

/// The connection that a request came on. Whoever serves connections puts it into the extensions of each request; without it,
/// nobody knows where a request comes from, and an edge can give up no answer that waits.
#[derive(Clone)]
pub struct Connection {
    /// Who is at its other end.
    pub peer: Arc<Peer>,
    /// How the writing of the answer goes on.
    pub writing: Writing,
}

impl Connection {
    /// That of the request with these extensions.
    pub(crate) fn of(request: &Extensions) -> Option<&Self> {
        request.get()
    }
}

/// Who is at the other end of a connection: a client, or a proxy with many behind it.
#[derive(Default)]
pub struct Peer {
    /// Its address.
    pub address: Option<SocketAddr>,
    /// The certificate that it showed.
    pub certificate: Option<ClientCertificate>,
    /// Whether TLS ends in this process.
    pub over_tls: bool,
    /// The token of the last request.
    pub last_token: LastToken,
    /// Who sent the last modern request. Most connections have one client, which says in each request who it is.
    pub last_client: LastClient,
}

/// The client that a connection heard of last. It takes as much memory as clients may say of themselves, and ends with the
/// connection.
#[derive(Default)]
pub struct LastClient(Mutex<Option<ClientInfo>>);

impl LastClient {
    /// The client that says this of itself, which is the last one from now on.
    pub(crate) fn named(&self, info: &RawJson) -> ClientInfo {
        let mut last = self.0.lock();
        if let Some(known) = last.as_ref().filter(|known| known.as_json() == info) {
            return known.clone();
        }
        // Apart from the message that it came in, which would be kept with it.
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
