use std::sync::Arc;

use shoal_auth::{StaticTokens, TokenHash};
use shoal_ports::Principal;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::http::StatusCode;

use super::client::{Client, INITIALIZE, server};
use super::upgrading;
use crate::server::Server;

async fn refused(server: &Server, protocols: &[&str], headers: &[(&str, &str)]) -> (u16, String) {
    let refused = Client::connect_with(server, protocols, headers).await;
    let (status, text) = refused.err().expect("it is refused");
    let text: serde_json::Value = serde_json::from_str(&text).unwrap();
    let message = text["error"]["message"].as_str().unwrap().to_owned();
    (status.as_u16(), message)
}

#[tokio::test]
async fn it_is_off_unless_it_is_turned_on() {
    let server = upgrading::start(|_| {}).await;
    let (status, why) = refused(&server, &["mcp"], &[]).await;
    assert_eq!(status, 400);
    assert!(why.contains("server.websocket = true"), "{why}");
    assert_eq!(server.listen().send().await.unwrap().status(), 200);
}

#[tokio::test]
async fn what_a_client_offers_must_fit_together() {
    let server = server(|_| {}).await;
    for (protocols, headers, why) in [
        (&[][..], &[][..], "offer the subprotocol mcp"),
        (&["graphql"], &[], "offer the subprotocol mcp"),
        (&["mcp", "mcp.session.live"], &[], "must offer mcp.resume"),
        (&["mcp.resume", "mcp.after.1-2-3"], &[], "name the session"),
        (
            &["mcp.resume", "mcp.session.live"],
            &[("mcp-session-id", "live")],
            "name the session once",
        ),
        (
            &["mcp.resume", "mcp.session.live", "mcp.session.other"],
            &[],
            "name the session once",
        ),
        (
            &["mcp.resume", "mcp.session.live", "mcp.after.1-2-3"],
            &[("last-event-id", "1-2-3")],
            "name the last event once",
        ),
        (
            &[
                "mcp.resume",
                "mcp.session.live",
                "mcp.after.1-2-3",
                "mcp.after.1-2-4",
            ],
            &[],
            "name the last event once",
        ),
        (
            &["mcp.resume", "mcp.session.live", "mcp.after.x"],
            &[],
            "not an event id",
        ),
        (
            &["mcp.resume", "mcp.session.history-gone", "mcp.after.1-2-3"],
            &[],
            "the history after",
        ),
        (&["mcp"], &[("connection", "close")], "WebSocket:"),
        (
            &["mcp", "mcp.auth.one", "mcp.auth.other"],
            &[],
            "give the token once",
        ),
        (
            &["mcp", "mcp.auth.one"],
            &[("authorization", "Bearer one")],
            "give the token once",
        ),
        (&["mcp"], &[("sec-websocket-key", "x")], "16 bytes"),
        (
            &["mcp"],
            &[("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZR==")],
            "16 bytes",
        ),
        (
            &["mcp"],
            &[("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZSE=")],
            "16 bytes",
        ),
        (&["mcp"], &[("content-length", "1")], "no body"),
        (&["mcp"], &[("transfer-encoding", "chunked")], "no body"),
    ] {
        let (status, said) = refused(&server, protocols, headers).await;
        assert_eq!(status, 400, "{protocols:?}: {said}");
        assert!(said.contains(why), "{protocols:?}: {said}");
    }
    let gone = refused(&server, &["mcp.resume", "mcp.session.gone"], &[]).await;
    assert_eq!(gone.0, 404, "{}", gone.1);
    assert_eq!(server.load.open_streams(), 0);
}

#[tokio::test]
async fn another_version_is_told_which_there_is() {
    let server = server(|_| {}).await;
    let mut socket = TcpStream::connect(server.address).await.unwrap();
    let request = "GET /mcp HTTP/1.1\r\nhost: localhost\r\nconnection: Upgrade\r\nupgrade: WebSocket\r\n\
        sec-websocket-version: 8\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
        sec-websocket-protocol: mcp\r\n\r\n";
    socket.write_all(request.as_bytes()).await.unwrap();
    socket.shutdown().await.unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 426 "), "{answer}");
    assert!(answer.contains("sec-websocket-version: 13\r\n"), "{answer}");
}

#[tokio::test]
async fn pages_of_other_origins_may_not_connect() {
    let server = server(|config| {
        config
            .endpoint
            .allowed_origins
            .push("https://app.example.com".into())
    })
    .await;
    let from = |origin| [("origin", origin)];
    let (status, why) = refused(&server, &["mcp"], &from("https://evil.example.com")).await;
    assert_eq!(status, 403);
    assert!(why.contains("evil.example.com"), "{why}");
    for origin in ["https://app.example.com", "http://localhost:3000"] {
        let welcome = Client::connect_with(&server, &["mcp"], &from(origin)).await;
        assert!(welcome.is_ok(), "{origin}");
    }
}

#[tokio::test]
async fn a_token_comes_in_a_header_or_among_the_subprotocols() {
    let tokens = StaticTokens::new([(TokenHash::of("secret"), Principal::new("alice"))]);
    let server =
        upgrading::start_with(Arc::new(tokens), |config| config.endpoint.websocket = true).await;
    let missing = Client::connect_with(&server, &["mcp"], &[]).await;
    assert_eq!(missing.err().unwrap().0, StatusCode::UNAUTHORIZED);
    let wrong = Client::connect_with(&server, &["mcp", "mcp.auth.guess"], &[]).await;
    assert_eq!(wrong.err().unwrap().0, StatusCode::UNAUTHORIZED);
    let header = [("authorization", "Bearer secret")];
    let by_header = Client::connect_with(&server, &["mcp"], &header).await;
    let by_name = Client::connect_with(&server, &["mcp", "mcp.auth.secret"], &[]).await;
    for client in [by_header, by_name] {
        let mut client = client.unwrap();
        assert_eq!(client.protocol, "mcp", "the token is not repeated");
        assert_eq!(client.ask(INITIALIZE).await["id"], 0);
    }
}
