//! A TCP proxy that can be cut, made a black hole in one direction or both, slowed down and healed.

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

/// What becomes of the connections through a proxy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fault {
    /// They work.
    #[default]
    None,
    /// They are reset, and new ones are reset as soon as they are made.
    Cut,
    /// They stay open and carry nothing either way; new ones are accepted into the same silence. What was
    /// under way arrives when the fault is healed, as after a break in the network.
    BlackHole,
    /// The same in this direction alone: one side hears the other, and is not heard.
    OneWayHole(Direction),
    /// Every piece that passes waits this long.
    Delay(Duration),
    /// No more than so many bytes pass in a second, in each direction of each connection.
    Throttle(u32),
}

/// Which way bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From whoever dialled.
    Up,
    /// To whoever dialled.
    Down,
}

impl Fault {
    /// Whether nothing passes in this direction.
    fn swallows(self, direction: Direction) -> bool {
        self == Self::BlackHole || self == Self::OneWayHole(direction)
    }
}

/// Who dials, by the addresses that the connection comes from and goes to; faults can be set for some of them
/// only. It may block.
pub type Classify = Arc<dyn Fn(SocketAddr, SocketAddr) -> String + Send + Sync>;

/// A proxy in front of one address. Dropped, it closes all its connections.
#[derive(Debug)]
pub struct FaultProxy {
    address: SocketAddr,
    faults: watch::Sender<Faults>,
    disturbed: Arc<AtomicU64>,
    closed: CancellationToken,
}

/// What is wrong, and for whom.
#[derive(Clone, Debug, Default)]
struct Faults {
    everybody: Fault,
    classes: BTreeMap<String, Fault>,
}

impl FaultProxy {
    /// A proxy on a free loopback port.
    ///
    /// # Errors
    /// When no port can be had.
    pub async fn start(upstream: SocketAddr) -> anyhow::Result<Self> {
        Self::classified(upstream, Arc::new(|_, _| String::new())).await
    }

    /// A proxy that tells those who dial apart.
    ///
    /// # Errors
    /// When no port can be had.
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

    /// Where to dial.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// How often a connection was cut, or something on one was held up. A fault that disturbs nothing shows
    /// nothing.
    #[must_use]
    pub fn disturbed(&self) -> u64 {
        self.disturbed.load(Ordering::Relaxed)
    }

    /// Sets a fault for everybody.
    pub fn set(&self, fault: Fault) {
        self.faults.send_modify(|faults| faults.everybody = fault);
    }

    /// Sets a fault for those of a class.
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

/// Accepts until it is dropped, with all its connections.
async fn accept(
    listener: TcpListener,
    upstream: SocketAddr,
    classify: Classify,
    link: relay::Link,
) {
    let closed = CancellationToken::new();
    let _close = closed.clone().drop_guard();
    loop {
        // Out of descriptors, for instance: the next one may work.
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
        // Dropped, it is reset, so that the other side cannot take the end for an orderly one.
        let _ = client.set_zero_linger();
    }
}
