//! Serves a handler by rmcp's own HTTP transport: `serve demo|conformance ADDRESS`.

use std::{env, sync::Arc};

use anyhow::{Context, bail};
use axum::Router;
use rmcp::{
    ServerHandler,
    transport::streamable_http_server::{
        StreamableHttpServerConfig, StreamableHttpService, session::local::LocalSessionManager,
    },
};
use shoal_demo::{ConformanceServer, DemoServer};
use tokio::net::TcpListener;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let mut args = env::args().skip(1);
    let (Some(handler), Some(address)) = (args.next(), args.next()) else {
        bail!("usage: serve demo|conformance ADDRESS");
    };
    let app = match handler.as_str() {
        "demo" => app(DemoServer::new()),
        "conformance" => app(ConformanceServer::new()),
        other => bail!("no handler is called {other}"),
    };
    let listener = TcpListener::bind(&address)
        .await
        .context("cannot listen on the address")?;
    axum::serve(listener, app).await.context("cannot serve")
}

fn app<H: ServerHandler + Clone>(handler: H) -> Router {
    let service = StreamableHttpService::new(
        move || Ok(handler.clone()),
        Arc::new(LocalSessionManager::default()),
        StreamableHttpServerConfig::default(),
    );
    Router::new().nest_service("/mcp", service)
}
