use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

#[derive(Clone)]
pub(crate) struct Proxy {
    address: SocketAddr,
    control: Arc<watch::Sender<Control>>,
    connections: Arc<AtomicUsize>,
}

#[derive(Clone, Copy, Default)]
struct Control {
    /// Connections of earlier generations are closed.
    generation: usize,
    blocked: bool,
    frozen: bool,
}

impl Proxy {
    pub(crate) async fn start(target: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let proxy = Self {
            address: listener.local_addr().unwrap(),
            control: Arc::new(watch::Sender::default()),
            connections: Arc::default(),
        };
        let accepting = proxy.clone();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                if accepting.control.borrow().blocked {
                    continue;
                }
                let server = TcpStream::connect(target).await.unwrap();
                accepting.connections.fetch_add(1, Ordering::Relaxed);
                let (from_client, to_client) = client.into_split();
                let (from_server, to_server) = server.into_split();
                tokio::spawn(copy(from_client, to_server, accepting.control.subscribe()));
                tokio::spawn(copy(from_server, to_client, accepting.control.subscribe()));
            }
        });
        proxy
    }

    pub(crate) fn address(&self) -> String {
        self.address.to_string()
    }

    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }

    pub(crate) fn cut(&self) {
        self.control.send_modify(|control| control.generation += 1);
    }

    pub(crate) fn block(&self) {
        self.control.send_modify(|control| {
            control.blocked = true;
            control.generation += 1;
        });
    }

    pub(crate) fn unblock(&self) {
        self.control.send_modify(|control| control.blocked = false);
    }

    pub(crate) fn freeze(&self) {
        self.control.send_modify(|control| control.frozen = true);
    }

    pub(crate) fn thaw(&self) {
        self.control.send_modify(|control| control.frozen = false);
    }
}

async fn copy(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mut control: watch::Receiver<Control>,
) {
    let generation = control.borrow().generation;
    let cut = move |control: &Control| control.generation != generation;
    let mut cuts = control.clone();
    let copying = async {
        let mut buffer = vec![0; 16 * 1024];
        loop {
            let read = from.read(&mut buffer).await;
            let _ = control
                .wait_for(|control| !control.frozen || cut(control))
                .await;
            match read {
                Ok(read) if read > 0 && to.write_all(&buffer[..read]).await.is_ok() => {}
                _ => return,
            }
        }
    };
    tokio::select! {
        () = copying => {}
        _ = cuts.wait_for(cut) => {}
    }
}
