use std::net::{IpAddr, SocketAddr};

use http::HeaderName;
use http::request::Parts;
use shoal_ports::Network;

use crate::connection::Connection;

const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

const LONGEST_CHAIN: usize = 32;

/// Proxies whose `X-Forwarded-For` is trusted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrustedProxies(Vec<Network>);

impl TrustedProxies {
    /// Parses addresses and networks.
    ///
    /// # Errors
    /// The first text that is not a network, as a message.
    pub fn parse<S: AsRef<str>>(networks: &[S]) -> Result<Self, String> {
        Network::parse_all(networks).map(Self)
    }

    fn trusts(&self, address: IpAddr) -> bool {
        self.0.iter().any(|network| network.holds(address))
    }

    /// Finds the nearest address that does not belong to a trusted proxy.
    pub(crate) fn address_of(&self, head: &Parts) -> Option<IpAddr> {
        let peer = Connection::of(&head.extensions)?.peer.address?;
        let mut nearest = peer.ip().to_canonical();
        if !self.trusts(nearest) {
            return Some(nearest);
        }
        let lines = head.headers.get_all(FORWARDED_FOR).iter().rev();
        // Reads from the end, so that a client's invalid text does not hide addresses that proxies
        // added.
        let parts = lines.flat_map(|line| line.as_bytes().rsplit(|byte| *byte == b','));
        let mut before = parts.take(LONGEST_CHAIN);
        while self.trusts(nearest) {
            let Some(next) = before.next().and_then(read) else {
                break;
            };
            nearest = next.to_canonical();
        }
        Some(nearest)
    }
}

/// Drops a port, which some proxies add.
fn read(text: &[u8]) -> Option<IpAddr> {
    let text = str::from_utf8(text.trim_ascii()).ok()?;
    let with_port = || text.parse::<SocketAddr>().ok().map(|it| it.ip());
    text.parse().ok().or_else(with_port)
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, SocketAddr};
    use std::sync::Arc;

    use http::Request;

    use super::TrustedProxies;
    use crate::connection::{Connection, Peer};
    use crate::writing::Writing;

    fn address<T: AsRef<[u8]>>(peer: &str, forwarded: &[T]) -> String {
        let proxies = TrustedProxies::parse(&["10.0.0.0/8", "::1"]).unwrap();
        let mut request = Request::builder();
        for line in forwarded {
            request = request.header("x-forwarded-for", line.as_ref());
        }
        let (mut head, ()) = request.body(()).unwrap().into_parts();
        let peer = SocketAddr::new(peer.parse::<IpAddr>().unwrap(), 1);
        head.extensions.insert(Connection {
            peer: Arc::new(Peer {
                address: Some(peer),
                ..Peer::default()
            }),
            writing: Writing::default(),
        });
        proxies.address_of(&head).unwrap().to_string()
    }

    #[test]
    fn only_trusted_proxies_are_believed() {
        assert_eq!(address("192.0.2.1", &["198.51.100.7"]), "192.0.2.1");
        assert_eq!(address("10.1.1.1", &["198.51.100.7"]), "198.51.100.7");
        assert_eq!(
            address("10.1.1.1", &["1.1.1.1, 198.51.100.7", "10.2.2.2"]),
            "198.51.100.7",
            "what the client says of itself is not believed"
        );
        assert_eq!(address("::1", &["[2001:db8::1]:80"]), "2001:db8::1");
        assert_eq!(
            address("::ffff:10.1.1.1", &["198.51.100.7"]),
            "198.51.100.7"
        );
        assert_eq!(address("10.1.1.1", &["unknown"]), "10.1.1.1");
        assert_eq!(address::<&str>("10.1.1.1", &[]), "10.1.1.1");
    }

    #[test]
    fn what_is_no_text_hides_nothing() {
        let own = b"\xff, 198.51.100.7".to_vec();
        assert_eq!(address("10.1.1.1", &[own]), "198.51.100.7");
        let lines = ["198.51.100.7".as_bytes(), b"\xff"];
        assert_eq!(address("10.1.1.1", &lines), "10.1.1.1");
        assert_eq!(address("10.1.1.1", &["é, 198.51.100.7"]), "198.51.100.7");
    }
}
