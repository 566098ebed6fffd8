use std::time::Duration;

use futures::{SinkExt as _, StreamExt as _};
use serde_json::Value;
use shoal_edge::EdgeConfig;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::http::{HeaderName, HeaderValue, Response, StatusCode};
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{WebSocketStream, client_async};

use super::upgrading;
use crate::server::Server;

pub(crate) const SOON: Duration = Duration::from_secs(20);

pub(crate) const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":
    {"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}"#;

pub(crate) async fn server(set: impl FnOnce(&mut EdgeConfig)) -> Server {
    upgrading::start(|config| {
        config.endpoint.websocket = true;
        set(config);
    })
    .await
}

pub(crate) struct Client {
    pub(crate) socket: WebSocketStream<TcpStream>,
    pub(crate) protocol: String,
}

impl Client {
    pub(crate) async fn connect(server: &Server, protocols: &[&str]) -> Self {
        Self::connect_with(server, protocols, &[]).await.unwrap()
    }

    pub(crate) async fn opened(server: &Server, protocols: &[&str]) -> Self {
        let mut client = Self::connect(server, protocols).await;
        assert_eq!(client.ask(INITIALIZE).await["id"], 0);
        client
    }

    pub(crate) async fn connect_with(
        server: &Server,
        protocols: &[&str],
        headers: &[(&str, &str)],
    ) -> Result<Self, (StatusCode, String)> {
        let url = format!("ws://localhost:{}/mcp", server.address.port());
        let mut request = url.into_client_request().unwrap();
        let to = request.headers_mut();
        if !protocols.is_empty() {
            to.insert("sec-websocket-protocol", text(&protocols.join(", ")));
        }
        for (name, value) in headers {
            to.insert(name.parse::<HeaderName>().unwrap(), text(value));
        }
        let stream = TcpStream::connect(server.address).await.unwrap();
        match client_async(request, stream).await {
            Ok((socket, response)) => Ok(Self {
                socket,
                protocol: chosen(&response),
            }),
            Err(Error::Http(refused)) => {
                let body = refused.body().clone().unwrap_or_default();
                Err((refused.status(), String::from_utf8(body).unwrap()))
            }
            Err(error) => panic!("{error}"),
        }
    }

    pub(crate) async fn send(&mut self, message: &str) {
        self.socket.send(Message::text(message)).await.unwrap();
    }

    pub(crate) async fn ask(&mut self, message: &str) -> Value {
        self.send(message).await;
        self.message().await
    }

    pub(crate) async fn message(&mut self) -> Value {
        loop {
            match self.next().await {
                Some(Ok(Message::Text(text))) => return serde_json::from_str(&text).unwrap(),
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                other => panic!("no message: {other:?}"),
            }
        }
    }

    pub(crate) async fn closed(&mut self) -> (CloseCode, String) {
        loop {
            match self.next().await {
                Some(Ok(Message::Close(Some(frame)))) => {
                    return (frame.code, frame.reason.to_string());
                }
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                other => panic!("not closed with a reason: {other:?}"),
            }
        }
    }

    pub(crate) async fn close(mut self) {
        self.socket.close(None).await.unwrap();
        while let Some(Ok(_)) = self.next().await {}
    }

    async fn next(&mut self) -> Option<Result<Message, Error>> {
        timeout(SOON, self.socket.next()).await.unwrap()
    }
}

fn chosen<T>(response: &Response<T>) -> String {
    let chosen = &response.headers()["sec-websocket-protocol"];
    chosen.to_str().unwrap().to_owned()
}

fn text(value: &str) -> HeaderValue {
    HeaderValue::from_str(value).unwrap()
}
