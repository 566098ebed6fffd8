//! A TCP proxy that can cut, silence and slow down connections.

mod relay;

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::Context as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

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

impl Fault {
    fn swallows(self, direction: Direction) -> bool {
        self == Self::BlackHole || self == Self::OneWayHole(direction)
    }
}

/// Returns the class of a connection's dialler, by the addresses that the connection comes from and goes to. May
/// block.
pub type Classify = Arc<dyn Fn(SocketAddr, SocketAddr) -> String + Send + Sync>;

/// A proxy in front of one address. Dropping it closes all connections.
#[derive(Debug)]
pub struct FaultProxy {
    address: SocketAddr,
    faults: watch::Sender<Faults>,
    disturbed: Arc<AtomicU64>,
    closed: CancellationToken,
}

#[derive(Clone, Debug, Default)]
struct Faults {
    everybody: Fault,
    classes: BTreeMap<String, Fault>,
}

impl FaultProxy {
    /// Starts a proxy on a free loopback port.
    pub async fn start(upstream: SocketAddr) -> anyhow::Result<Self> {
        Self::classified(upstream, Arc::new(|_, _| String::new())).await
    }

    /// Starts a proxy that distinguishes diallers by class.
    pub async fn classified(upstream: SocketAddr, classify: Classify) -> anyhow::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            .await
            .context("cannot listen")?;
        let proxy = Self {
            address: listener.local_addr()?,
            faults: watch::Sender::default(),
            disturbed: Arc::default(),
            closed: CancellationToken::new(),
        };
        let link = relay::Link {
            class: String::new(),
            faults: proxy.faults.subscribe(),
            disturbed: proxy.disturbed.clone(),
            direction: Direction::Up,
        };
        let accept = accept(listener, upstream, classify, link);
        let closed = proxy.closed.clone();
        tokio::spawn(closed.run_until_cancelled_owned(accept));
        Ok(proxy)
    }

    /// Returns the address that clients dial.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Counts how often faults had an effect on a connection.
    #[must_use]
    pub fn disturbed(&self) -> u64 {
        self.disturbed.load(Ordering::Relaxed)
    }

    /// Sets a fault for all connections.
    pub fn set(&self, fault: Fault) {
        self.faults.send_modify(|faults| faults.everybody = fault);
    }

    /// Sets a fault for the connections of a class.
    pub fn set_for(&self, class: &str, fault: Fault) {
        self.faults.send_modify(|faults| {
            faults.classes.insert(class.to_owned(), fault);
        });
    }

    /// Ends all faults.
    pub fn heal(&self) {
        self.faults.send_replace(Faults::default());
    }
}

impl Drop for FaultProxy {
    fn drop(&mut self) {
        self.closed.cancel();
    }
}

impl Faults {
    fn of(&self, class: &str) -> Fault {
        match self.everybody {
            Fault::None => self.classes.get(class).copied().unwrap_or_default(),
            fault => fault,
        }
    }
}

async fn accept(
    listener: TcpListener,
    upstream: SocketAddr,
    classify: Classify,
    link: relay::Link,
) {
    let closed = CancellationToken::new();
    let _close = closed.clone().drop_guard();
    loop {
        // This process may run out of descriptors for a while.
        let Ok((client, from)) = listener.accept().await else {
            tokio::time::sleep(Duration::from_millis(10)).await;
            continue;
        };
        let (classify, mut link) = (classify.clone(), link.clone());
        let carry = async move {
            if let Ok(to) = client.local_addr() {
                let class = tokio::task::spawn_blocking(move || classify(from, to));
                link.class = class.await.unwrap_or_default();
            }
            carry(client, upstream, link).await;
        };
        tokio::spawn(closed.clone().run_until_cancelled_owned(carry));
    }
}

async fn carry(mut client: TcpStream, upstream: SocketAddr, mut link: relay::Link) {
    let _ = client.set_nodelay(true);
    let carried = tokio::select! {
        carried = relay::carry(&mut client, upstream, link.clone()) => carried,
        () = link.cut() => Err(std::io::ErrorKind::ConnectionReset.into()),
    };
    if carried.is_err() {
        // Makes the close a reset.
        let _ = client.set_zero_linger();
    }
}
