use std::convert::Infallible;
use std::future::poll_fn;
use std::sync::Arc;

use axum::body::Body;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use reqwest::StatusCode;
use shoal_auth::NoAuthentication;
use shoal_edge::{EdgeConfig, EdgeService, Upgrade};
use shoal_ports::Authenticator;
use tokio::io::AsyncReadExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use crate::server::Server;

pub(super) async fn start(set: impl FnOnce(&mut EdgeConfig)) -> Server {
    start_with(Arc::new(NoAuthentication), set).await
}

pub(super) async fn start_with(
    authenticator: Arc<dyn Authenticator>,
    set: impl FnOnce(&mut EdgeConfig),
) -> Server {
    let serve = |listener, service| tokio::spawn(serve(listener, service));
    Server::serving(authenticator, set, serve).await
}

async fn serve(listener: TcpListener, service: EdgeService) {
    let mut connections = JoinSet::new();
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        connections.spawn(connection(stream, service.clone()));
    }
}

async fn connection(stream: TcpStream, service: EdgeService) {
    let upgrade = Mutex::new(None::<Upgrade>);
    let answer = service_fn(|request: hyper::Request<Incoming>| {
        Box::pin(async {
            let mut response = service.answer(request.map(Body::new)).await;
            if response.status() == StatusCode::SWITCHING_PROTOCOLS {
                *upgrade.lock() = response.extensions_mut().remove();
            }
            Ok::<_, Infallible>(response)
        })
    });
    let mut connection = http1::Builder::new().serve_connection(TokioIo::new(stream), answer);
    if poll_fn(|cx| connection.poll_without_shutdown(cx))
        .await
        .is_err()
    {
        return;
    }
    let parts = connection.into_parts();
    let (stream, read) = (parts.io.into_inner(), parts.read_buf);
    if let Some(upgrade) = upgrade.into_inner() {
        let (reader, writer) = tokio::io::split(stream);
        let reader = std::io::Cursor::new(read).chain(reader);
        upgrade.run(tokio::io::join(reader, writer)).await;
    }
}
