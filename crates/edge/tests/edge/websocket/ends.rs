use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt as _;
use shoal_ports::{AuthError, StreamItem, TokenFault};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

use super::client::{Client, INITIALIZE, SOON, server};
use super::upgrading::start_with;
use super::{PING, TOLD, told};
use crate::gateway::{LIVE, event, id};
use crate::grants::Watching;

#[tokio::test]
async fn a_call_that_comes_too_late_to_end_is_refused_on_an_open_connection() {
    let server = server(|_| {}).await;
    let mut client = Client::connect(&server, &["mcp"]).await;
    client.ask(INITIALIZE).await;
    server.load.stop_calls();
    let call = r#"{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"echo"}}"#;
    let refused = client.ask(call).await;
    assert_eq!(
        (&refused["id"], &refused["error"]["code"]),
        (&9.into(), &50_301.into())
    );
    assert!(server.gateway.delivered.lock().is_empty());
}

#[tokio::test]
async fn a_drained_client_with_ids_is_sent_away_at_once() {
    let server = server(|config| config.streams.retry = Duration::ZERO.into()).await;
    let mut client = Client::opened(&server, &["mcp.resume"]).await;
    let mut idle = Client::connect(&server, &["mcp"]).await;
    let stream = server.gateway.stream().await;
    server.drain.cancel();
    assert_eq!(client.closed().await.0, CloseCode::Away);
    assert_eq!(idle.closed().await.0, CloseCode::Away);
    stream.closed().await;
    assert!(server.gateway.closed.borrow().is_empty());
}

#[tokio::test]
async fn a_client_whose_token_is_over_is_told_so() {
    for why in [AuthError::Invalid, AuthError::Token(TokenFault::Expired)] {
        let tokens = Arc::new(Watching::default());
        let server = start_with(tokens.clone(), |config| config.endpoint.websocket = true).await;
        let mut client = Client::opened(&server, &["mcp", "mcp.auth.secret"]).await;
        tokens.end(why);
        let (code, reason) = timeout(SOON, client.closed()).await.unwrap();
        assert_eq!(code, CloseCode::Policy);
        assert!(reason.contains("token"), "{reason}");
    }
}

#[tokio::test]
async fn what_is_granted_later_counts_for_the_next_message() {
    let tokens = Arc::new(Watching::default());
    let server = start_with(tokens.clone(), |config| config.endpoint.websocket = true).await;
    let mut client = Client::opened(&server, &["mcp", "mcp.auth.secret"]).await;
    let call = r#"{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":"echo"}}"#;
    let calls = || server.gateway.delivered.lock().len();
    client.send(call).await;
    assert_eq!(client.ask(PING).await["id"], 7);
    assert_eq!(calls(), 2);
    tokens.renew(&[]);
    let refused = async {
        loop {
            client.send(call).await;
            let answer = client.ask(PING).await;
            if answer["id"] == 8 {
                return answer;
            }
        }
    };
    let refused = timeout(SOON, refused).await.unwrap();
    let message = refused["error"]["message"].as_str().unwrap();
    assert!(message.contains("lacks a scope"), "{refused}");
}

#[tokio::test]
async fn what_a_client_said_before_it_heard_that_it_is_sent_away_arrives() {
    let server = server(|config| config.streams.retry = Duration::ZERO.into()).await;
    let mut client = Client::opened(&server, &["mcp.resume"]).await;
    let stream = server.gateway.stream().await;
    server.drain.cancel();
    let peek = async { client.socket.get_mut().peek(&mut [0]).await.unwrap() };
    timeout(SOON, peek).await.unwrap();
    stream.closed().await;
    client.send(PING).await;
    client.send(PING).await;
    assert_eq!(client.closed().await.0, CloseCode::Away);
    let hung_up = async { while let Some(Ok(_)) = client.socket.next().await {} };
    timeout(SOON, hung_up).await.unwrap();
    let delivered = server.gateway.delivered.lock();
    let to: Vec<&str> = delivered.iter().map(|(to, _)| to.as_str()).collect();
    assert_eq!(to, [LIVE, LIVE]);
}

#[tokio::test]
async fn a_drained_client_without_ids_stays_until_it_has_everything() {
    let server = server(|config| config.streams.retry = Duration::ZERO.into()).await;
    let mut client = Client::opened(&server, &["mcp"]).await;
    let stream = server.gateway.stream().await;
    server.drain.cancel();
    for sequence in [1, 2] {
        stream.send(event(sequence, TOLD)).await.unwrap();
        assert_eq!(client.message().await, told(None));
    }
    assert_eq!(client.ask(PING).await["id"], 7);
    let open = server.load.single_streams().open();
    let (session, passed) = &open[0];
    assert_eq!((session.as_str(), *passed), (LIVE, id(2)));
    server.load.single_streams().end(session);
    assert_eq!(client.closed().await.0, CloseCode::Away);
    server.gateway.was_closed(LIVE).await;
}

#[tokio::test]
async fn the_end_of_the_stream_is_told() {
    let server = server(|_| {}).await;
    let retry = Duration::from_secs(1);
    for (last, code) in [
        (Some(StreamItem::Retry(retry)), CloseCode::Restart),
        (Some(StreamItem::Moved), CloseCode::Restart),
        (None, CloseCode::Normal),
    ] {
        let mut client = Client::opened(&server, &["mcp.resume"]).await;
        let stream = server.gateway.stream().await;
        if let Some(last) = last {
            stream.send(last).await.unwrap();
        }
        drop(stream);
        assert_eq!(client.closed().await.0, code);
    }
}

#[tokio::test]
async fn who_answers_pings_stays_and_who_does_not_is_given_up() {
    let server =
        server(|config| config.streams.keep_alive = Duration::from_millis(50).into()).await;
    let mut dead = Client::opened(&server, &["mcp"]).await;
    let mut alive = Client::opened(&server, &["mcp"]).await;
    let _streams = (server.gateway.stream().await, server.gateway.stream().await);
    // Reads data but sends no pongs.
    let mut raw = Vec::new();
    let reading = dead.socket.get_mut().read_to_end(&mut raw);
    let pings = async {
        loop {
            let _ = timeout(Duration::from_millis(10), alive.message()).await;
        }
    };
    tokio::select! {
        read = timeout(SOON, reading) => { let _ = read.unwrap(); }
        () = pings => {}
    }
    assert_eq!(alive.ask(PING).await["id"], 7);
}

#[tokio::test]
async fn a_client_that_does_not_read_makes_nothing_pile_up() {
    let server = server(|_| {}).await;
    let client = Client::opened(&server, &["mcp.resume"]).await;
    let stream = server.gateway.stream().await;
    let data = Bytes::from(format!(r#"{{"x":"{}"}}"#, "1".repeat(256 << 10)));
    let mut taken = 0;
    loop {
        let item = StreamItem::Event {
            id: id(taken),
            data: data.clone(),
        };
        if timeout(Duration::from_millis(300), stream.send(item))
            .await
            .is_err()
        {
            break;
        }
        taken += 1;
        // Unread data is at most what both socket buffers and the channel can hold, and one message
        // that is being written.
        assert!(
            taken < 128,
            "{taken} events were taken from a client that does not read"
        );
        assert!(
            server.load.answer_bytes() <= data.len() + 64,
            "more than one waits to be written"
        );
    }
    drop(client);
    stream.closed().await;
}

#[tokio::test]
async fn answers_to_pings_that_nobody_reads_do_not_pile_up() {
    const PINGS: usize = 1 << 18;
    const AT_ONCE: usize = 1 << 10;
    let server = server(|_| {}).await;
    let mut client = Client::opened(&server, &["mcp.resume"]).await;
    let _stream = server.gateway.stream().await;
    let mut ping = vec![0x89, 0x80 | 125];
    ping.resize(6 + 125, 0);
    let pings = ping.repeat(AT_ONCE);
    for _ in 0..PINGS / AT_ONCE {
        let writing = client.socket.get_mut().write_all(&pings);
        timeout(SOON, writing).await.unwrap().unwrap();
    }
    client.send(PING).await;
    let mut pongs = 0;
    loop {
        match timeout(SOON, client.socket.next()).await.unwrap() {
            Some(Ok(Message::Pong(_))) => pongs += 1,
            Some(Ok(Message::Text(_))) => break,
            other => panic!("no answer: {other:?}"),
        }
    }
    assert!(pongs < PINGS / 2, "{pongs} answers were kept");
}

#[tokio::test]
async fn who_opens_no_session_is_sent_away() {
    let server =
        server(|config| config.endpoint.body_timeout = Duration::from_millis(100).into()).await;
    let mut client = Client::connect(&server, &["mcp"]).await;
    let (code, reason) = client.closed().await;
    assert_eq!(code, CloseCode::Policy);
    assert!(reason.contains("initialize"), "{reason}");
}
