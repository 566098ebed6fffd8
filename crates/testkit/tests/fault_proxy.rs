//! The fault proxy between a client and an echo server.

#![expect(clippy::unwrap_used, reason = "a failed test is the report")]

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use shoal_testkit::fault_proxy::{Direction, Fault, FaultProxy};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy, split};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

const SOON: Duration = Duration::from_secs(20);

const A_WHILE: Duration = Duration::from_millis(200);

async fn echo() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let (mut from, mut to) = split(stream);
                let _ = copy(&mut from, &mut to).await;
                let _ = to.shutdown().await;
            });
        }
    });
    address
}

async fn says(stream: &mut TcpStream, text: &str) {
    stream.write_all(text.as_bytes()).await.unwrap();
}

async fn hears(stream: &mut TcpStream, text: &str) {
    let mut heard = vec![0; text.len()];
    let read = timeout(SOON, stream.read_exact(&mut heard)).await;
    read.expect("nothing came").unwrap();
    assert_eq!(String::from_utf8(heard).unwrap(), text);
}

async fn hears_nothing(stream: &mut TcpStream) {
    let mut byte = [0];
    let read = timeout(A_WHILE, stream.read(&mut byte)).await;
    assert!(read.is_err(), "{read:?}");
}

async fn is_reset(stream: &mut TcpStream) {
    let mut byte = [0];
    let read = timeout(SOON, stream.read(&mut byte)).await.unwrap();
    assert_eq!(read.unwrap_err().kind(), ErrorKind::ConnectionReset);
}

#[tokio::test]
async fn it_carries_both_ways_to_the_end() {
    let proxy = FaultProxy::start(echo().await).await.unwrap();
    let mut stream = TcpStream::connect(proxy.address()).await.unwrap();
    says(&mut stream, "hello").await;
    hears(&mut stream, "hello").await;
    stream.shutdown().await.unwrap();
    let mut rest = Vec::new();
    let end = timeout(SOON, stream.read_to_end(&mut rest)).await;
    assert_eq!(end.unwrap().unwrap(), 0);
}

#[tokio::test]
async fn a_cut_resets_and_heals() {
    let proxy = FaultProxy::start(echo().await).await.unwrap();
    let mut before = TcpStream::connect(proxy.address()).await.unwrap();
    says(&mut before, "a").await;
    hears(&mut before, "a").await;
    proxy.set(Fault::Cut);
    is_reset(&mut before).await;
    let mut during = TcpStream::connect(proxy.address()).await.unwrap();
    is_reset(&mut during).await;
    proxy.heal();
    let mut after = TcpStream::connect(proxy.address()).await.unwrap();
    says(&mut after, "b").await;
    hears(&mut after, "b").await;
}

#[tokio::test]
async fn a_black_hole_is_silent_and_loses_nothing() {
    let proxy = FaultProxy::start(echo().await).await.unwrap();
    let mut before = TcpStream::connect(proxy.address()).await.unwrap();
    says(&mut before, "a").await;
    hears(&mut before, "a").await;
    proxy.set(Fault::BlackHole);
    let mut during = TcpStream::connect(proxy.address()).await.unwrap();
    says(&mut before, "b").await;
    says(&mut during, "c").await;
    hears_nothing(&mut before).await;
    hears_nothing(&mut during).await;
    proxy.heal();
    hears(&mut before, "b").await;
    hears(&mut during, "c").await;
}

#[tokio::test]
async fn a_hole_in_one_direction_swallows_what_goes_there() {
    for direction in [Direction::Up, Direction::Down] {
        let proxy = FaultProxy::start(echo().await).await.unwrap();
        let mut stream = TcpStream::connect(proxy.address()).await.unwrap();
        says(&mut stream, "a").await;
        hears(&mut stream, "a").await;
        proxy.set(Fault::OneWayHole(direction));
        says(&mut stream, "b").await;
        hears_nothing(&mut stream).await;
        proxy.heal();
        hears(&mut stream, "b").await;
    }
}

#[tokio::test]
async fn a_throttle_loses_nothing() {
    let proxy = FaultProxy::start(echo().await).await.unwrap();
    proxy.set(Fault::Throttle(2000));
    let mut stream = TcpStream::connect(proxy.address()).await.unwrap();
    let text = "0123456789".repeat(20);
    says(&mut stream, &text).await;
    hears(&mut stream, &text).await;
    assert!(proxy.disturbed() >= 2);
}

#[tokio::test]
async fn a_delay_only_delays() {
    let proxy = FaultProxy::start(echo().await).await.unwrap();
    proxy.set(Fault::Delay(Duration::from_millis(20)));
    let mut stream = TcpStream::connect(proxy.address()).await.unwrap();
    for text in ["one", "two", "three"] {
        says(&mut stream, text).await;
        hears(&mut stream, text).await;
    }
}

#[tokio::test]
async fn a_fault_can_be_for_some_only() {
    let connections = AtomicUsize::new(0);
    let by_turn = move |_, _| connections.fetch_add(1, Ordering::Relaxed).to_string();
    let proxy = FaultProxy::classified(echo().await, Arc::new(by_turn))
        .await
        .unwrap();
    proxy.set_for("1", Fault::Cut);
    let mut first = TcpStream::connect(proxy.address()).await.unwrap();
    says(&mut first, "a").await;
    hears(&mut first, "a").await;
    let mut second = TcpStream::connect(proxy.address()).await.unwrap();
    is_reset(&mut second).await;
    says(&mut first, "b").await;
    hears(&mut first, "b").await;
}
