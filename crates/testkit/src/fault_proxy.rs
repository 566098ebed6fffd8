//! A TCP proxy that can cut, silence and slow down connections.

mod link;

use std::collections::HashMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::sync::watch;

use self::link::Link;
use crate::relay::Relay;

/// A fault of the connections through a proxy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fault {
    /// Connections work.
    #[default]
    None,
    /// Connections are reset, and so are new ones.
    Cut,
    /// Connections stay open without bytes, and new ones are accepted. Held bytes arrive when the fault ends.
    BlackHole,
    /// Connections pass no bytes in this direction.
    OneWayHole(Direction),
    /// Each chunk is delayed by this time.
    Delay(Duration),
    /// Each direction of each connection passes this many bytes per second.
    Throttle(u32),
}

/// A direction of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the dialler to the server.
    Up,
    /// From the server to the dialler.
    Down,
}

/// Returns the class of a connection's dialler, by the addresses that the connection comes from and goes to. May
/// block.
pub type Classify = Arc<dyn Fn(SocketAddr, SocketAddr) -> String + Send + Sync>;

/// The fault of each class of diallers.
type Faults = HashMap<String, Fault>;

/// The class whose fault all diallers have.
const EVERYBODY: &str = "";

/// A proxy in front of one address. Dropping it closes all connections.
#[derive(Debug)]
pub struct FaultProxy {
    relay: Relay,
    faults: watch::Sender<Faults>,
    disturbed: Arc<AtomicU64>,
}

impl FaultProxy {
    /// Starts a proxy on a free loopback port.
    pub async fn start(upstream: SocketAddr) -> anyhow::Result<Self> {
        Self::classified(upstream, Arc::new(|_, _| EVERYBODY.to_owned())).await
    }

    /// Starts a proxy that distinguishes diallers by class.
    pub async fn classified(upstream: SocketAddr, classify: Classify) -> anyhow::Result<Self> {
        let (faults, disturbed) = (watch::Sender::default(), Arc::default());
        let link = Link {
            class: String::new(),
            faults: faults.subscribe(),
            disturbed: Arc::clone(&disturbed),
            direction: Direction::Up,
        };
        let carry = move |client: TcpStream, from| {
            let (classify, mut link) = (classify.clone(), link.clone());
            async move {
                if let Ok(to) = client.local_addr() {
                    let class = tokio::task::spawn_blocking(move || classify(from, to));
                    link.class = class.await.unwrap_or_default();
                }
                link::carry(client, upstream, link).await;
            }
        };
        let anywhere = (Ipv4Addr::LOCALHOST, 0).into();
        Ok(Self {
            relay: Relay::start(anywhere, carry).await?,
            faults,
            disturbed,
        })
    }

    /// Returns the address that clients dial.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.relay.address
    }

    /// Counts how often faults had an effect on a connection.
    #[must_use]
    pub fn disturbed(&self) -> u64 {
        self.disturbed.load(Ordering::Relaxed)
    }

    /// Sets a fault for all connections.
    pub fn set(&self, fault: Fault) {
        self.set_for(EVERYBODY, fault);
    }

    /// Sets a fault for the connections of a class.
    pub fn set_for(&self, class: &str, fault: Fault) {
        self.faults.send_modify(|faults| {
            faults.insert(class.to_owned(), fault);
        });
    }

    /// Ends all faults.
    pub fn heal(&self) {
        self.faults.send_replace(Faults::default());
    }
}
