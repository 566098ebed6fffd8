mod half_closed;
mod refusals;
mod secured;
mod shapes;
mod stalled;

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::routing::get;
use futures::StreamExt as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::timeout;

use super::{BoundHttp, HttpLimits, HttpServer};

const SOON: Duration = Duration::from_secs(10);
const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nhost: x\r\n\r\n";
const SLOW: &[u8] = b"GET /slow HTTP/1.1\r\nhost: x\r\n\r\n";

fn limits() -> HttpLimits {
    HttpLimits {
        connections: 8,
        requests_per_connection: 8,
        headers: 10,
        header_bytes: 8192,
        header_timeout: Duration::from_millis(200),
        idle_timeout: SOON,
        write_timeout: Duration::from_millis(200),
    }
}

fn serve(limits: &HttpLimits) -> (std::net::SocketAddr, HttpServer) {
    let (address, server, _) = serve_gated(limits);
    (address, server)
}

fn serve_gated(limits: &HttpLimits) -> (std::net::SocketAddr, HttpServer, Gate) {
    let gate = Gate::new();
    let (slow, streaming) = (gate.clone(), gate.clone());
    let router = Router::new()
        .route("/", get(async || "hello"))
        .route("/slow", get(move || slow.clone().pass()))
        .route(
            "/stream",
            get(move || async move { stream(streaming.clone()) }),
        );
    let bound = BoundHttp::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    (bound.address(), bound.serve(router, limits), gate)
}

#[derive(Clone)]
struct Gate {
    arrived: Arc<watch::Sender<usize>>,
    waiting: Arc<watch::Sender<usize>>,
    open: Arc<watch::Sender<bool>>,
}

impl Gate {
    fn new() -> Self {
        Self {
            arrived: Arc::new(watch::Sender::new(0)),
            waiting: Arc::new(watch::Sender::new(0)),
            open: Arc::new(watch::Sender::new(false)),
        }
    }

    async fn pass(self) -> &'static str {
        let _waiting = Waiting::at(&self);
        self.arrived.send_modify(|arrived| *arrived += 1);
        let mut open = self.open.subscribe();
        open.wait_for(|open| *open).await.unwrap();
        "slow"
    }

    async fn has(&self, count: usize) {
        let mut arrived = self.arrived.subscribe();
        let wait = arrived.wait_for(|arrived| *arrived >= count);
        timeout(SOON, wait).await.unwrap().unwrap();
    }

    async fn left(&self) {
        let mut waiting = self.waiting.subscribe();
        let wait = waiting.wait_for(|waiting| *waiting == 0);
        timeout(SOON, wait).await.unwrap().unwrap();
    }

    fn open(&self) {
        self.open.send_replace(true);
    }

    fn close(&self) {
        self.open.send_replace(false);
    }
}

struct Waiting(Arc<watch::Sender<usize>>);

impl Waiting {
    fn at(gate: &Gate) -> Self {
        gate.waiting.send_modify(|waiting| *waiting += 1);
        Self(Arc::clone(&gate.waiting))
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.send_modify(|waiting| *waiting -= 1);
    }
}

fn stream(gate: Gate) -> Body {
    let rest = async { Ok::<_, Infallible>(gate.pass().await) };
    let begun = futures::stream::iter([Ok("begun ")]);
    Body::from_stream(begun.chain(futures::stream::once(rest)))
}

async fn answer(stream: &mut TcpStream) -> String {
    let mut bytes = vec![0; 4096];
    let read = timeout(SOON, stream.read(&mut bytes)).await.unwrap();
    bytes.truncate(read.unwrap_or(0));
    String::from_utf8(bytes).unwrap()
}

async fn all(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    let ended = timeout(SOON, stream.read_to_end(&mut bytes)).await;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    ended
        .unwrap_or_else(|_| panic!("not ended: {text:?}"))
        .unwrap();
    text
}

#[tokio::test]
async fn whoever_sends_no_headers_is_cut_off() {
    let (address, _server) = serve(&limits());
    for sent in [
        &b""[..],
        b"P",
        b"PRI * HTTP/2.0\r\n",
        b"GET / HT",
        b"GET / HTTP/1.1\r\nhost: x\r\n",
    ] {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(sent).await.unwrap();
        let said = answer(&mut stream).await;
        assert!(said.is_empty() || said.contains("408"), "{sent:?}: {said}");
    }
}

#[tokio::test]
async fn a_connection_may_idle_for_longer_than_a_head_may_take() {
    let (address, _server) = serve(&limits());
    let mut stream = TcpStream::connect(address).await.unwrap();
    for _ in 0..2 {
        stream.write_all(REQUEST).await.unwrap();
        assert!(answer(&mut stream).await.ends_with("hello"));
        tokio::time::sleep(2 * limits().header_timeout).await;
    }
    stream.write_all(b"GET / HTTP/1.1\r\nhost:").await.unwrap();
    let said = answer(&mut stream).await;
    assert!(said.is_empty() || said.contains("408"), "{said}");
}

#[tokio::test]
async fn a_connection_that_idles_for_too_long_is_closed() {
    let brief = HttpLimits {
        idle_timeout: limits().header_timeout,
        ..limits()
    };
    let (address, _server) = serve(&brief);
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(REQUEST).await.unwrap();
    assert!(all(&mut stream).await.ends_with("hello"));
}

#[tokio::test]
async fn too_many_headers_are_refused() {
    let (address, _server) = serve(&limits());
    let mut stream = TcpStream::connect(address).await.unwrap();
    let headers = (0..20).fold(String::new(), |all, at| all + &format!("a{at}: b\r\n"));
    let request = format!("GET / HTTP/1.1\r\nhost: x\r\n{headers}\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let said = answer(&mut stream).await;
    assert!(said.starts_with("HTTP/1.1 431"), "{said}");
}

#[tokio::test]
async fn connections_beyond_the_limit_wait() {
    let one = HttpLimits {
        connections: 1,
        header_timeout: SOON,
        idle_timeout: SOON,
        ..limits()
    };
    let (address, _server, gate) = serve_gated(&one);
    let mut first = TcpStream::connect(address).await.unwrap();
    first.write_all(REQUEST).await.unwrap();
    assert!(answer(&mut first).await.ends_with("hello"));
    let mut second = TcpStream::connect(address).await.unwrap();
    second.write_all(SLOW).await.unwrap();
    for _ in 0..5 {
        first.write_all(REQUEST).await.unwrap();
        assert!(answer(&mut first).await.ends_with("hello"));
    }
    assert_eq!(*gate.arrived.borrow(), 0, "served beside the first");
    drop(first);
    gate.open();
    assert!(answer(&mut second).await.ends_with("slow"));
}

#[tokio::test]
async fn closing_lets_requests_finish_and_closes_idle_connections() {
    let patient = HttpLimits {
        header_timeout: SOON,
        idle_timeout: SOON,
        ..limits()
    };
    let (address, server, gate) = serve_gated(&patient);
    let mut idle = TcpStream::connect(address).await.unwrap();
    idle.write_all(REQUEST).await.unwrap();
    assert!(answer(&mut idle).await.ends_with("hello"));
    let mut busy = TcpStream::connect(address).await.unwrap();
    busy.write_all(SLOW).await.unwrap();
    gate.has(1).await;
    let closing = tokio::spawn(server.close(SOON));
    assert_eq!(answer(&mut idle).await, "");
    gate.open();
    assert!(answer(&mut busy).await.ends_with("slow"));
    assert_eq!(closing.await.unwrap(), 0);
    assert!(TcpStream::connect(address).await.is_err());
}

#[tokio::test]
async fn connections_that_wait_to_be_accepted_are_answered_at_the_end() {
    let one = HttpLimits {
        connections: 1,
        header_timeout: SOON,
        idle_timeout: SOON,
        ..limits()
    };
    let (address, server, gate) = serve_gated(&one);
    let mut busy = TcpStream::connect(address).await.unwrap();
    busy.write_all(SLOW).await.unwrap();
    gate.has(1).await;
    let mut waiting = TcpStream::connect(address).await.unwrap();
    waiting.write_all(REQUEST).await.unwrap();
    let mut silent = TcpStream::connect(address).await.unwrap();
    let closing = tokio::spawn(server.close(SOON));
    let said = answer(&mut waiting).await;
    assert!(said.contains("connection: close"), "{said}");
    assert!(said.ends_with("hello"), "{said}");
    assert_eq!(answer(&mut silent).await, "");
    gate.open();
    assert!(answer(&mut busy).await.ends_with("slow"));
    assert_eq!(closing.await.unwrap(), 0);
}

#[tokio::test]
async fn draining_ends_connections_with_an_answer_and_leaves_those_that_idle() {
    let patient = HttpLimits {
        header_timeout: SOON,
        idle_timeout: SOON,
        ..limits()
    };
    let (address, server, gate) = serve_gated(&patient);
    let mut idle = TcpStream::connect(address).await.unwrap();
    idle.write_all(REQUEST).await.unwrap();
    let before = answer(&mut idle).await;
    assert!(!before.contains("connection: close"), "{before}");
    let mut busy = TcpStream::connect(address).await.unwrap();
    busy.write_all(SLOW).await.unwrap();
    let mut streaming = TcpStream::connect(address).await.unwrap();
    let request = b"GET /stream HTTP/1.1\r\nhost: x\r\n\r\n";
    streaming.write_all(request).await.unwrap();
    let begun = answer(&mut streaming).await;
    assert!(!begun.contains("connection: close"), "{begun}");
    gate.has(2).await;
    server.drain();
    gate.open();
    assert!(answer(&mut busy).await.ends_with("slow"));
    assert_eq!(answer(&mut busy).await, "", "ends with its answer");
    let mut rest = String::new();
    while !rest.ends_with("0\r\n\r\n") {
        rest = answer(&mut streaming).await;
        assert!(!rest.is_empty(), "its end has been told");
    }
    assert_eq!(server.let_idle_go(Duration::from_millis(1)).await, 2);

    let mut late = TcpStream::connect(address).await.unwrap();
    for stream in [&mut idle, &mut streaming, &mut late] {
        stream.write_all(REQUEST).await.unwrap();
        let said = answer(stream).await;
        assert!(said.contains("connection: close"), "{said}");
        assert!(said.ends_with("hello"), "{said}");
        assert_eq!(answer(stream).await, "");
    }
    assert_eq!(server.let_idle_go(SOON).await, 0);
    assert_eq!(server.close(SOON).await, 0);
}

#[tokio::test]
async fn closing_does_not_wait_for_ever() {
    let patient = HttpLimits {
        header_timeout: SOON,
        idle_timeout: SOON,
        ..limits()
    };
    let (address, server, gate) = serve_gated(&patient);
    let mut stuck = TcpStream::connect(address).await.unwrap();
    stuck.write_all(SLOW).await.unwrap();
    gate.has(1).await;
    let closed = timeout(SOON, server.close(Duration::from_millis(50))).await;
    assert_eq!(closed.unwrap(), 1);
}
