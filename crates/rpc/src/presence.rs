//! Detects the death of a worker's process.
//!
//! Workers dial their nodes, so a node has no address to probe when a link breaks. The worker's
//! process therefore opens a port, which the kernel closes when the process ends.

use std::collections::HashMap;
use std::io::{self, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use shoal_ports::Backoff;
use tokio::io::AsyncReadExt as _;
use tokio::net::{TcpListener, TcpStream, UdpSocket, lookup_host};
use tokio::time::{sleep, timeout};
use tokio_util::task::AbortOnDropHandle;

use crate::Sight;
use crate::proto::worker::v1::Presence;

/// Pause after a failure to accept, such as for want of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// Short, because an exiting process may close its link before its port.
const DIAL_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_DIAL_PAUSE: Duration = Duration::from_millis(500);

/// The presence ports of a process with workers, one for each local address. A cheap handle;
/// dropping the last one closes the ports.
#[derive(Clone, Default)]
pub struct PresencePorts(Arc<PresencePortsInner>);

#[derive(Default)]
struct PresencePortsInner {
    number: u16,
    open: Mutex<HashMap<IpAddr, PresencePort>>,
}

impl PresencePorts {
    /// Opens the port `number` when it is first needed; 0 means free ports.
    #[must_use]
    pub fn new(number: u16) -> Self {
        let open = Mutex::default();
        Self(Arc::new(PresencePortsInner { number, open }))
    }

    /// If no port can be opened, the node notices a death later.
    pub(crate) async fn towards(&self, address: &str) -> Option<Presence> {
        let here = match local_address(address).await {
            Ok(here) => here,
            Err(error) => {
                tracing::debug!(address, %error, "no presence port: this process does not know its address towards the node");
                return None;
            }
        };
        let mut ports = self.0.open.lock();
        if let Some(port) = ports.get(&here) {
            return Some(port.presence);
        }
        match PresencePort::open(here, self.0.number) {
            Ok(port) => Some(ports.entry(here).or_insert(port).presence),
            Err(error) => {
                let port = self.0.number;
                tracing::warn!(address = %here, port, %error, "cannot open the presence port: if this process dies, nodes wait `cluster.rejoin` for its workers");
                None
            }
        }
    }
}

struct PresencePort {
    presence: Presence,
    _accepting: AbortOnDropHandle<()>,
}

impl PresencePort {
    fn open(address: IpAddr, number: u16) -> io::Result<Self> {
        let listener = std::net::TcpListener::bind((address, number))?;
        listener.set_nonblocking(true)?;
        let port = listener.local_addr()?.port();
        let id = rand::random();
        let accepting = tokio::spawn(accept(TcpListener::from_std(listener)?, id));
        Ok(Self {
            presence: Presence {
                port: port.into(),
                id,
            },
            _accepting: AbortOnDropHandle::new(accepting),
        })
    }
}

async fn accept(listener: TcpListener, id: u64) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                let told = stream.into_std();
                let _ = told.and_then(|mut stream| stream.write_all(&id.to_be_bytes()));
            }
            Err(_) => sleep(ACCEPT_PAUSE).await,
        }
    }
}

async fn local_address(address: &str) -> io::Result<IpAddr> {
    let mut found = lookup_host(address).await?;
    let node = found.next().ok_or(io::ErrorKind::NotFound)?;
    let any: IpAddr = match node {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((any, 0)).await?;
    socket.connect(node).await?;
    Ok(socket.local_addr()?.ip())
}

/// A node's probe of the presence port of one worker.
///
/// The node dials only the source address of the worker's link, so a worker cannot make the node
/// dial other addresses. A refused dial proves the death only if the worker's process answered
/// while the link was up, because address translation or a firewall may refuse it too.
pub(crate) struct PresenceProbe {
    seen: Option<AbortOnDropHandle<Option<Dial>>>,
}

impl PresenceProbe {
    pub(crate) fn begin(
        address: Option<SocketAddr>,
        presence: Option<Presence>,
        within: Duration,
    ) -> Self {
        let dial = address.zip(presence).and_then(|(address, presence)| {
            let port = u16::try_from(presence.port).ok().filter(|port| *port > 0)?;
            Some(Dial {
                address: SocketAddr::new(address.ip(), port),
                id: presence.id,
                within,
            })
        });
        let look = |dial: Dial| async move { (dial.sight().await == Sight::There).then_some(dial) };
        Self {
            seen: dial.map(|dial| AbortOnDropHandle::new(tokio::spawn(look(dial)))),
        }
    }

    /// Another process at the port also proves the death. Cancellation safe.
    pub(crate) async fn gone(self) {
        let seen = match self.seen {
            Some(seen) => seen.await.ok().flatten(),
            None => None,
        };
        let Some(dial) = seen else {
            return std::future::pending().await;
        };
        let mut backoff = Backoff::new(DIAL_PAUSE, LONGEST_DIAL_PAUSE);
        while dial.sight().await != Sight::Gone {
            sleep(backoff.pause()).await;
        }
    }
}

#[derive(Clone, Copy)]
struct Dial {
    address: SocketAddr,
    id: u64,
    within: Duration,
}

impl Dial {
    async fn sight(&self) -> Sight {
        match timeout(self.within, self.read()).await {
            Ok(Ok(id)) if id == self.id => Sight::There,
            Ok(Ok(_)) => Sight::Gone,
            Ok(Err(error)) if error.kind() == io::ErrorKind::ConnectionRefused => Sight::Gone,
            Ok(Err(_)) | Err(_) => Sight::Unknown,
        }
    }

    async fn read(&self) -> io::Result<u64> {
        TcpStream::connect(self.address).await?.read_u64().await
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddr};
    use std::time::Duration;

    use futures::FutureExt as _;
    use tokio::net::TcpListener;

    use super::{PresencePorts, PresenceProbe};

    const WITHIN: Duration = Duration::from_secs(10);
    const NODE: &str = "127.0.0.1:9";
    const WORKER: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 9);

    #[tokio::test]
    async fn a_process_is_gone_when_its_port_is() {
        let ports = PresencePorts::default();
        let told = ports.towards(NODE).await.expect("a port");
        let again = ports.towards(NODE).await.expect("the same");
        assert_eq!(told, again);
        let mut probe = PresenceProbe::begin(Some(WORKER), Some(told), WITHIN);
        let seen = probe.seen.take().expect("it is looked for").await;
        assert!(seen.expect("no panic").is_some(), "it is there");

        let probe = PresenceProbe::begin(Some(WORKER), Some(told), WITHIN);
        while !probe.seen.as_ref().is_some_and(|seen| seen.is_finished()) {
            tokio::task::yield_now().await;
        }
        let gone = probe.gone();
        tokio::pin!(gone);
        assert!(gone.as_mut().now_or_never().is_none(), "it is still there");
        drop(ports);
        gone.await;
    }

    #[tokio::test]
    async fn a_port_that_was_never_seen_shows_nothing() {
        let ports = PresencePorts::default();
        let told = ports.towards(NODE).await.expect("a port");
        drop(ports);
        let mut probe = PresenceProbe::begin(Some(WORKER), Some(told), WITHIN);
        let seen = probe.seen.take().expect("it is looked for").await;
        assert!(seen.expect("no panic").is_none());

        let unknown = PresenceProbe::begin(None, Some(told), WITHIN);
        assert!(unknown.gone().now_or_never().is_none());
        let silent = PresenceProbe::begin(Some(WORKER), None, WITHIN);
        assert!(silent.gone().now_or_never().is_none());
    }

    #[tokio::test]
    async fn another_process_at_the_port_is_not_the_worker() {
        let other = PresencePorts::default();
        let theirs = other.towards(NODE).await.expect("a port");
        let mut claimed = theirs;
        claimed.id = claimed.id.wrapping_add(1);
        let mut probe = PresenceProbe::begin(Some(WORKER), Some(claimed), WITHIN);
        let seen = probe.seen.take().expect("it is looked for").await;
        assert!(seen.expect("no panic").is_none());
    }

    #[tokio::test]
    async fn a_stopped_process_is_not_gone() {
        let silent = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = silent.local_addr().unwrap();
        let dial = super::Dial {
            address,
            id: 1,
            within: Duration::from_millis(50),
        };
        assert_eq!(dial.sight().await, crate::Sight::Unknown);
    }
}
