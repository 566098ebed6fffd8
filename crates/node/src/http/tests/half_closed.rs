use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use super::{REQUEST, SLOW, all, answer, limits, serve, serve_gated};

async fn ended(address: std::net::SocketAddr, request: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(request).await.unwrap();
    stream.shutdown().await.unwrap();
    stream
}

#[tokio::test]
async fn a_client_that_only_stops_sending_is_answered() {
    let (address, _server) = serve(&limits());
    let said = all(&mut ended(address, REQUEST).await).await;
    assert!(
        said.starts_with("HTTP/1.1 200") && said.ends_with("hello"),
        "{said}"
    );
    let said = all(&mut ended(address, &[REQUEST, REQUEST].concat()).await).await;
    assert_eq!(said.matches("hello").count(), 2, "{said}");
}

#[tokio::test]
async fn a_client_that_waits_gets_an_interim_response_first() {
    let (address, _server, gate) = serve_gated(&limits());
    let mut slow = ended(address, SLOW).await;
    gate.has(1).await;
    assert_eq!(answer(&mut slow).await, "HTTP/1.1 100 Continue\r\n\r\n");
    gate.open();
    assert!(all(&mut slow).await.ends_with("slow"));
    // HTTP/1.0 has no interim responses, so the client counts as gone.
    gate.close();
    let old = b"GET /slow HTTP/1.0\r\nhost: x\r\n\r\n";
    assert_eq!(all(&mut ended(address, old).await).await, "");
    gate.left().await;
}

#[tokio::test]
async fn the_request_of_a_client_that_is_gone_is_dropped() {
    let (address, _server, gate) = serve_gated(&limits());
    let mut gone = TcpStream::connect(address).await.unwrap();
    gone.write_all(SLOW).await.unwrap();
    gate.has(1).await;
    drop(gone);
    gate.left().await;
}

#[tokio::test]
async fn a_stream_that_its_client_leaves_ends() {
    let (address, _server, gate) = serve_gated(&limits());
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = b"GET /stream HTTP/1.1\r\nhost: x\r\n\r\n";
    stream.write_all(request).await.unwrap();
    assert!(answer(&mut stream).await.contains("begun"));
    gate.has(1).await;
    stream.shutdown().await.unwrap();
    gate.left().await;
}
