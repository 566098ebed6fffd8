use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::watch;

use super::{Direction, Fault, Faults};

const PIECE: usize = 64 * 1024;

#[derive(Clone)]
pub(super) struct Link {
    pub(super) direction: Direction,
    pub(super) class: String,
    pub(super) faults: watch::Receiver<Faults>,
    pub(super) disturbed: Arc<AtomicU64>,
}

impl Link {
    pub(super) async fn cut(&mut self) {
        self.until(|fault| fault == Fault::Cut).await;
        self.disturbed.fetch_add(1, Ordering::Relaxed);
    }

    fn back(mut self) -> Self {
        self.direction = Direction::Down;
        self
    }

    async fn pass(&mut self, length: usize) {
        let direction = self.direction;
        let passes = move |fault: Fault| !fault.swallows(direction);
        if !passes(self.faults.borrow().of(&self.class)) {
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
        let found = self
            .faults
            .wait_for(|faults| wanted(faults.of(class)))
            .await;
        match found.map(|faults| faults.of(class)) {
            Ok(fault) => fault,
            Err(_) => std::future::pending().await,
        }
    }
}

pub(super) async fn carry(
    client: &mut TcpStream,
    upstream: SocketAddr,
    mut link: Link,
) -> io::Result<()> {
    link.pass(0).await;
    let mut server = TcpStream::connect(upstream).await?;
    server.set_nodelay(true)?;
    let (mut from_client, mut to_client) = client.split();
    let (mut from_server, mut to_server) = server.split();
    let carried = tokio::try_join!(
        pump(&mut from_client, &mut to_server, link.clone()),
        pump(&mut from_server, &mut to_client, link.back()),
    );
    if carried.is_err() {
        let _ = server.set_zero_linger();
    }
    carried.map(drop)
}

async fn pump(
    from: &mut (impl AsyncRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
    mut link: Link,
) -> io::Result<()> {
    let mut piece = vec![0; PIECE];
    loop {
        let length = from.read(&mut piece).await?;
        link.pass(length).await;
        if length == 0 {
            return to.shutdown().await;
        }
        to.write_all(&piece[..length]).await?;
    }
}
