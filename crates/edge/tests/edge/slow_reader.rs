//! Clients that stop reading cannot fill the memory.

use std::time::Duration;

use bytes::Bytes;
use shoal_ports::StreamItem;
use tokio::io::AsyncWriteExt;

use crate::gateway::{LIVE, id};
use crate::server::Server;

#[tokio::test]
async fn the_channel_stays_full_while_nobody_reads() {
    let server = Server::start().await;
    let mut socket = tokio::net::TcpStream::connect(server.address)
        .await
        .unwrap();
    let request = format!(
        "GET /mcp HTTP/1.1\r\nhost: localhost\r\naccept: text/event-stream\r\nmcp-session-id: {LIVE}\r\n\r\n"
    );
    socket.write_all(request.as_bytes()).await.unwrap();
    let stream = server.gateway.stream().await;
    let data = Bytes::from(vec![b'1'; 256 << 10]);
    let mut taken = 0;
    loop {
        let item = StreamItem::Event {
            id: id(taken),
            data: data.clone(),
        };
        let sent = tokio::time::timeout(Duration::from_millis(300), stream.send(item)).await;
        if sent.is_err() {
            break;
        }
        taken += 1;
        // Unread data is at most what both socket buffers, the HTTP writer's queue and the channel
        // can hold.
        assert!(
            taken < 128,
            "{taken} events were taken from a client that does not read"
        );
    }
    drop(socket);
    stream.closed().await;
}
