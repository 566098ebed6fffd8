use std::time::Duration;

use futures::SinkExt as _;
use tokio::io::AsyncWriteExt as _;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::frame::Frame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{CloseCode, Data, OpCode};

use super::PING;
use super::client::{Client, server};

#[tokio::test]
async fn a_message_may_come_in_pieces_with_pings_between_them() {
    let server = server(|_| {}).await;
    let mut client = Client::opened(&server, &["mcp"]).await;
    let (first, rest) = PING.split_at(10);
    let piece = |text: &str, opcode, last| {
        Message::Frame(Frame::message(text.to_owned(), OpCode::Data(opcode), last))
    };
    client
        .socket
        .send(piece(first, Data::Text, false))
        .await
        .unwrap();
    client.socket.send(Message::Ping("?".into())).await.unwrap();
    client
        .socket
        .send(piece(rest, Data::Continue, true))
        .await
        .unwrap();
    assert_eq!(client.message().await["id"], 7);
}

#[tokio::test]
async fn wrong_frames_are_told() {
    let server = server(|config| config.limits.body_bytes = 64 << 10).await;
    let binary = Message::binary(PING);
    let large = Message::text("x".repeat((64 << 10) + 1));
    let broken = Frame::message(vec![0xff, 0xfe], OpCode::Data(Data::Text), true);
    let lost = Frame::message("x", OpCode::Data(Data::Continue), true);
    for (sent, code, why) in [
        (binary, CloseCode::Unsupported, "text frames"),
        (large, CloseCode::Size, "65536 bytes"),
        (Message::Frame(broken), CloseCode::Invalid, "UTF-8"),
        (Message::Frame(lost), CloseCode::Protocol, ""),
    ] {
        let mut client = Client::opened(&server, &["mcp"]).await;
        client.socket.send(sent).await.unwrap();
        let (closed, reason) = client.closed().await;
        assert_eq!(closed, code, "{reason}");
        assert!(reason.contains(why), "{reason}");
    }
}

#[tokio::test]
async fn a_frame_without_a_mask_is_told() {
    let server = server(|_| {}).await;
    let mut client = Client::opened(&server, &["mcp"]).await;
    client
        .socket
        .get_mut()
        .write_all(b"\x81\x02{}")
        .await
        .unwrap();
    assert_eq!(client.closed().await.0, CloseCode::Protocol);
}

#[tokio::test]
async fn a_large_message_holds_room_until_it_is_handed_over() {
    let server = server(|config| config.limits.body_bytes = 256 << 10).await;
    let mut client = Client::opened(&server, &["mcp"]).await;
    let large = PING.replace(
        "ping\"",
        &format!("ping\",\"params\":{{\"x\":\"{}\"}}", "x".repeat(200 << 10)),
    );
    let (first, rest) = large.split_at(100 << 10);
    let piece = |text: &str, opcode, last| {
        Message::Frame(Frame::message(text.to_owned(), OpCode::Data(opcode), last))
    };
    client
        .socket
        .send(piece(first, Data::Text, false))
        .await
        .unwrap();
    while server.load.body_bytes() == 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(server.load.body_bytes(), 256 << 10, "all that it may have");
    client
        .socket
        .send(piece(rest, Data::Continue, true))
        .await
        .unwrap();
    assert_eq!(client.message().await["id"], 7);
    while server.load.body_bytes() > 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    for _ in 0..1000 {
        client.socket.feed(Message::text(PING)).await.unwrap();
    }
    client.socket.flush().await.unwrap();
    for _ in 0..1000 {
        assert_eq!(client.message().await["id"], 7);
        assert_eq!(server.load.body_bytes(), 0);
    }
}

#[tokio::test]
async fn a_large_message_that_does_not_end_is_given_up_and_one_without_room_sent_back() {
    let server = server(|config| {
        config.limits.body_bytes = 256 << 10;
        config.limits.bodies_in_flight_bytes = 256 << 10;
        config.endpoint.body_timeout = Duration::from_secs(2).into();
        config.body_wait = Duration::from_millis(200);
    })
    .await;
    let begun = Frame::message("x".repeat(100 << 10), OpCode::Data(Data::Text), false);
    let mut endless = Client::opened(&server, &["mcp"]).await;
    let mut crowded = Client::opened(&server, &["mcp"]).await;
    endless
        .socket
        .send(Message::Frame(begun.clone()))
        .await
        .unwrap();
    while server.load.body_bytes() == 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    crowded.socket.send(Message::Frame(begun)).await.unwrap();
    let (code, reason) = crowded.closed().await;
    assert_eq!(code, CloseCode::Again, "{reason}");
    let (code, reason) = endless.closed().await;
    assert_eq!(code, CloseCode::Policy, "{reason}");
    assert!(reason.contains("did not arrive within"), "{reason}");
    while server.load.body_bytes() > 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}
