use std::future::Future;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio_util::either::Either;
use tokio_util::sync::CancellationToken;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;

use crate::{ConsoleService, GatewayLinks, LinkConfig, WorkerLinks, tls};

/// HTTP/2 windows, in bytes. Credit limits each call.
const STREAM_WINDOW: u32 = 4 << 20;
const CONNECTION_WINDOW: u32 = 8 << 20;
const LAST_WORDS: Duration = Duration::from_millis(500);

/// A node's services for workers and other nodes.
pub struct ClusterServer {
    /// Links of workers, if the node dispatches calls.
    pub workers: Option<WorkerLinks>,
    /// Links of edges and other session nodes, if the node accepts sessions.
    pub gateway: Option<GatewayLinks>,
    /// Answers to other nodes' consoles, if the node gives any.
    pub console: Option<ConsoleService>,
    /// Limits and times of the connections.
    pub config: LinkConfig,
}

/// Why the listener failed.
#[derive(Debug, thiserror::Error)]
#[error("the cluster listener failed: {0}")]
pub struct ServeError(String);

impl ClusterServer {
    /// Serves until `shutdown` completes, then ends every link with a notice.
    pub async fn serve(
        self,
        listener: TcpListener,
        shutdown: impl Future<Output = ()> + Send,
    ) -> Result<(), ServeError> {
        let Self {
            workers,
            gateway,
            console,
            config,
        } = self;
        let stopped = CancellationToken::new();
        let router = Server::builder()
            .http2_keepalive_interval(Some(config.ping_after()))
            .http2_keepalive_timeout(Some(config.ping_after()))
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .add_optional_service(workers.as_ref().map(WorkerLinks::service))
            .add_optional_service(gateway.as_ref().map(GatewayLinks::service))
            .add_optional_service(console.map(ConsoleService::into_service));
        let over = stopped.clone().cancelled_owned();
        let serving = match config.tls {
            Some(tls) => {
                let incoming = tls::incoming(listener, tls, config.handshake_timeout);
                Either::Left(router.serve_with_incoming_shutdown(incoming, over))
            }
            None => {
                let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
                Either::Right(router.serve_with_incoming_shutdown(incoming, over))
            }
        };
        let ending = async {
            shutdown.await;
            if let Some(workers) = &workers {
                workers.close();
            }
            if let Some(gateway) = &gateway {
                gateway.close();
            }
            stopped.cancel();
            tokio::time::sleep(LAST_WORDS).await;
        };
        tokio::select! {
            served = serving => served.map_err(|error| ServeError(error.to_string())),
            () = ending => Ok(()),
        }
    }
}
