//! The balancer of connections in front of servers that answer with their names.

#![expect(clippy::unwrap_used, reason = "a failed test is the report")]

use std::time::Duration;

use shoal_testkit::round_robin::Edge;
use shoal_testkit::service::{Probing, Service};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{sleep, timeout};

const SOON: Duration = Duration::from_secs(20);

async fn endpoint(letter: u8) -> Edge {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                while let Ok(1) = stream.read(&mut [0]).await {
                    stream.write_all(&[letter]).await.unwrap();
                }
            });
        }
    });
    Edge {
        name: char::from(letter).to_string(),
        address,
        admin: None,
    }
}

async fn ask(stream: &mut TcpStream) -> Option<u8> {
    stream.write_all(b"?").await.ok()?;
    let mut letter = [0];
    let read = timeout(SOON, stream.read_exact(&mut letter)).await.unwrap();
    read.ok().map(|_| letter[0])
}

#[tokio::test]
async fn connections_stay_where_they_are_and_new_ones_go_to_who_is_left() {
    let probing = Probing {
        period: Duration::from_millis(10),
        propagation: Duration::from_millis(10),
        ..Probing::default()
    };
    let service = Service::start(probing).await.unwrap();
    let mut nowhere = TcpStream::connect(service.address()).await.unwrap();
    assert_eq!(ask(&mut nowhere).await, None);
    assert_eq!(service.refused(), 1);

    service.add(endpoint(b'a').await);
    service.add(endpoint(b'b').await);
    timeout(SOON, async {
        while service.ready() < 2 {
            sleep(Duration::from_millis(5)).await;
        }
    })
    .await
    .unwrap();
    let mut one = TcpStream::connect(service.address()).await.unwrap();
    let mut other = TcpStream::connect(service.address()).await.unwrap();
    let both = (ask(&mut one).await, ask(&mut other).await);
    assert!(both == (Some(b'a'), Some(b'b')) || both == (Some(b'b'), Some(b'a')));

    service.terminate("a");
    timeout(SOON, async {
        while service.ready() > 1 {
            sleep(Duration::from_millis(5)).await;
        }
    })
    .await
    .unwrap();
    assert_eq!((ask(&mut one).await, ask(&mut other).await), both);
    for _ in 0..3 {
        let mut new = TcpStream::connect(service.address()).await.unwrap();
        assert_eq!(ask(&mut new).await, Some(b'b'));
    }
}
