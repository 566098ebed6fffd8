use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::routing::get;
use bytes::Bytes;
use futures::stream::{self, StreamExt as _};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;

use super::{SOON, limits};
use crate::http::{BoundHttp, HttpLimits, HttpServer};

/// Longer than what both sockets buffer.
const LONG: usize = 32 << 20;
/// Exceeds these tests' windows, but not `streams::SHORT`.
const SHORT: usize = 4 << 10;

#[derive(Clone, Default)]
struct Held(Arc<AtomicUsize>);

struct Text {
    bytes: Vec<u8>,
    held: Held,
}

impl Held {
    fn text(&self, length: usize) -> Bytes {
        self.0.fetch_add(1, Ordering::SeqCst);
        Bytes::from_owner(Text {
            bytes: vec![b'x'; length],
            held: self.clone(),
        })
    }

    fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }

    async fn released(&self) {
        let released = async {
            while self.count() > 0 {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        let within = timeout(SOON, released).await;
        assert!(within.is_ok(), "{} texts are held for ever", self.count());
    }
}

impl AsRef<[u8]> for Text {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Text {
    fn drop(&mut self) {
        self.held.0.fetch_sub(1, Ordering::SeqCst);
    }
}

fn serve(held: &Held) -> (std::net::SocketAddr, HttpServer) {
    let (long, short, endless) = (held.clone(), held.clone(), held.clone());
    let router = Router::new()
        .route("/long", get(async move || Body::from(long.text(LONG))))
        .route("/short", get(async move || Body::from(short.text(SHORT))))
        .route(
            "/endless",
            get(async move || {
                let pieces = stream::repeat_with(move || Ok(endless.text(256 << 10)));
                Body::from_stream(pieces.map(|piece: Result<_, std::io::Error>| piece))
            }),
        );
    let bound = BoundHttp::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let limits = HttpLimits {
        header_timeout: SOON,
        idle_timeout: SOON,
        ..limits()
    };
    (bound.address(), bound.serve(router, &limits))
}

async fn until_held(held: &Held) {
    let some = async {
        while held.count() == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(SOON, some).await.unwrap();
}

#[tokio::test]
async fn an_answer_that_nobody_reads_is_given_up() {
    for path in ["/long", "/endless"] {
        let held = Held::default();
        let (address, _server) = serve(&held);
        let mut client = TcpStream::connect(address).await.unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\n\r\n");
        client.write_all(request.as_bytes()).await.unwrap();
        until_held(&held).await;
        held.released().await;
        let mut rest = Vec::new();
        let _ = timeout(SOON, client.read_to_end(&mut rest)).await.unwrap();
        assert!(rest.len() < LONG, "{path}: {}", rest.len());
    }
}

#[tokio::test]
async fn a_slow_client_that_reads_is_not_cut() {
    let held = Held::default();
    let (address, _server) = serve(&held);
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(64 << 10).unwrap();
    let mut client = socket.connect(address).await.unwrap();
    client
        .write_all(b"GET /long HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
        .await
        .unwrap();
    let (mut read, mut buffer) = (0, vec![0; 4 << 20]);
    loop {
        tokio::time::sleep(Duration::from_millis(50)).await;
        let mut piece = 0;
        while piece < buffer.len() {
            let more = client.read(&mut buffer[piece..]).await.unwrap();
            piece += more;
            if more == 0 {
                break;
            }
        }
        read += piece;
        if piece < buffer.len() {
            break;
        }
    }
    assert!(read > LONG, "{read}");
}

async fn h2_client(
    address: std::net::SocketAddr,
) -> (
    h2::client::SendRequest<Bytes>,
    tokio::task::JoinHandle<Result<(), h2::Error>>,
) {
    let socket = TcpStream::connect(address).await.unwrap();
    let mut builder = h2::client::Builder::new();
    let (client, connection) = builder
        .initial_window_size(0)
        .handshake(socket)
        .await
        .unwrap();
    (client, tokio::spawn(connection))
}

async fn ask(
    client: &mut h2::client::SendRequest<Bytes>,
    path: &str,
) -> http::Response<h2::RecvStream> {
    let request = http::Request::get(format!("http://x{path}")).body(());
    poll_fn(|cx| client.poll_ready(cx)).await.unwrap();
    let (answer, _) = client.send_request(request.unwrap(), true).unwrap();
    timeout(SOON, answer).await.unwrap().unwrap()
}

#[tokio::test]
async fn a_stream_without_a_window_is_given_up_and_its_connection_goes_on() {
    for path in ["/long", "/endless"] {
        let held = Held::default();
        let (address, _server) = serve(&held);
        let (mut client, _connection) = h2_client(address).await;
        let stalled = ask(&mut client, path).await;
        held.released().await;
        let mut body = stalled.into_body();
        let end = timeout(SOON, body.data()).await.unwrap();
        let reset = end.unwrap().unwrap_err();
        assert!(reset.is_reset(), "{path}: {reset}");
        let mut body = ask(&mut client, "/short").await.into_body();
        body.flow_control().release_capacity(0).unwrap();
        drop(body);
    }
}

#[tokio::test]
async fn a_short_answer_without_a_window_is_given_up() {
    let held = Held::default();
    let (address, _server) = serve(&held);
    let (mut client, connection) = h2_client(address).await;
    let stalled = ask(&mut client, "/short").await;
    held.released().await;
    drop(stalled);
    // In the protocol, the stream has ended, so only the connection can be closed.
    drop(client);
    let _ = timeout(SOON, connection).await.unwrap();
}
