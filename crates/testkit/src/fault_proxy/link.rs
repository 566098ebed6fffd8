use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::watch;

use super::{Direction, EVERYBODY, Fault, Faults};

const PIECE: usize = 64 * 1024;

/// One direction of a connection.
#[derive(Clone)]
pub(super) struct Link {
    pub(super) direction: Direction,
    pub(super) class: String,
    pub(super) faults: watch::Receiver<Faults>,
    pub(super) disturbed: Arc<AtomicU64>,
}

impl Link {
    async fn cut(&mut self) -> io::Result<()> {
        self.until(|fault| fault == Fault::Cut).await;
        self.disturbed.fetch_add(1, Ordering::Relaxed);
        Err(io::ErrorKind::ConnectionReset.into())
    }

    async fn pass(&mut self, length: usize) {
        let hole = Fault::OneWayHole(self.direction);
        let passes = move |fault: Fault| fault != Fault::BlackHole && fault != hole;
        if !passes(of(&self.faults.borrow(), &self.class)) {
            self.disturbed.fetch_add(1, Ordering::Relaxed);
        }
        let slow = match self.until(passes).await {
            Fault::Delay(time) => time,
            Fault::Throttle(rate) => {
                Duration::from_secs_f64(length as f64 / f64::from(rate.max(1)))
            }
            _ => return,
        };
        self.disturbed.fetch_add(1, Ordering::Relaxed);
        tokio::time::sleep(slow).await;
        self.until(passes).await;
    }

    async fn until(&mut self, wanted: impl Fn(Fault) -> bool) -> Fault {
        let class = &self.class;
        let found = self.faults.wait_for(|faults| wanted(of(faults, class)));
        match found.await.map(|faults| of(&faults, class)) {
            Ok(fault) => fault,
            Err(_) => std::future::pending().await,
        }
    }

    async fn pump(
        mut self,
        mut from: impl AsyncRead + Unpin,
        mut to: impl AsyncWrite + Unpin,
    ) -> io::Result<()> {
        let mut piece = vec![0; PIECE];
        loop {
            let length = from.read(&mut piece).await?;
            self.pass(length).await;
            if length == 0 {
                return to.shutdown().await;
            }
            to.write_all(&piece[..length]).await?;
        }
    }
}

fn of(faults: &Faults, class: &str) -> Fault {
    let fault = |class| faults.get(class).copied().unwrap_or_default();
    match fault(EVERYBODY) {
        Fault::None => fault(class),
        fault => fault,
    }
}

pub(super) async fn carry(mut client: TcpStream, upstream: SocketAddr, mut link: Link) {
    let carried = tokio::select! {
        carried = join(&mut client, upstream, link.clone()) => carried,
        cut = link.cut() => cut,
    };
    if carried.is_err() {
        // Makes the close a reset.
        let _ = client.set_zero_linger();
    }
}

async fn join(client: &mut TcpStream, upstream: SocketAddr, mut up: Link) -> io::Result<()> {
    up.pass(0).await;
    let mut server = TcpStream::connect(upstream).await?;
    server.set_nodelay(true)?;
    let mut down = up.clone();
    down.direction = Direction::Down;
    let (from_client, to_client) = client.split();
    let (from_server, to_server) = server.split();
    let carried = tokio::try_join!(
        up.pump(from_client, to_server),
        down.pump(from_server, to_client),
    );
    if carried.is_err() {
        let _ = server.set_zero_linger();
    }
    carried.map(drop)
}
