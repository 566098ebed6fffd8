use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Context;
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{
    TraceService, TraceServiceServer,
};
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use tokio::net::{TcpListener, TcpSocket};
use tokio::runtime::{Builder, Runtime};
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status};

use crate::affinity;

const ANY_PORT: (Ipv4Addr, u16) = (Ipv4Addr::LOCALHOST, 0);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Conduct {
    Answers,
    /// Refuses connections, like a dead process.
    Refuses,
    Hangs,
}

pub(crate) struct Collector {
    /// The value for `telemetry.endpoint`.
    pub(crate) endpoint: String,
    spans: Arc<AtomicU64>,
    _running: Running,
}

enum Running {
    /// Holds the port without listening.
    Refusing {
        _port: TcpSocket,
    },
    /// The system accepts connections, and nobody reads them.
    Hanging {
        _port: std::net::TcpListener,
    },
    Answering(Option<Runtime>),
}

impl Collector {
    /// Answers in a thread of this process, so that its CPU time does not count as the server's.
    pub(crate) fn start(conduct: Conduct, core: Option<usize>) -> anyhow::Result<Self> {
        let spans = Arc::<AtomicU64>::default();
        let (address, running) = match conduct {
            Conduct::Refuses => {
                let port = TcpSocket::new_v4()?;
                port.bind(ANY_PORT.into())?;
                (port.local_addr()?, Running::Refusing { _port: port })
            }
            Conduct::Hangs => {
                let port = std::net::TcpListener::bind(ANY_PORT)?;
                (port.local_addr()?, Running::Hanging { _port: port })
            }
            Conduct::Answers => answering(core, Count(Arc::clone(&spans)))?,
        };
        Ok(Self {
            endpoint: format!("http://{address}"),
            spans,
            _running: running,
        })
    }

    pub(crate) fn spans(&self) -> u64 {
        self.spans.load(Ordering::Relaxed)
    }
}

fn answering(core: Option<usize>, count: Count) -> anyhow::Result<(SocketAddr, Running)> {
    let port = std::net::TcpListener::bind(ANY_PORT)?;
    port.set_nonblocking(true)?;
    let address = port.local_addr()?;
    let runtime = Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .on_thread_start(move || {
            // Without its own core, the collector disturbs the measurement only slightly.
            let _ = core.map(affinity::pin);
        })
        .build()
        .context("could not start the collector's runtime")?;
    let entered = runtime.enter();
    let incoming = TcpIncoming::from(TcpListener::from_std(port)?).with_nodelay(Some(true));
    drop(entered);
    let server = Server::builder().add_service(TraceServiceServer::new(count));
    runtime.spawn(server.serve_with_incoming(incoming));
    Ok((address, Running::Answering(Some(runtime))))
}

impl Drop for Running {
    fn drop(&mut self) {
        // A runtime must not block another one.
        if let Self::Answering(runtime) = self
            && let Some(runtime) = runtime.take()
        {
            runtime.shutdown_background();
        }
    }
}

struct Count(Arc<AtomicU64>);

#[tonic::async_trait]
impl TraceService for Count {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        let processes = &request.get_ref().resource_spans;
        let scopes = processes.iter().flat_map(|process| &process.scope_spans);
        let spans: usize = scopes.map(|scope| scope.spans.len()).sum();
        self.0.fetch_add(spans as u64, Ordering::Relaxed);
        Ok(Response::new(ExportTraceServiceResponse::default()))
    }
}

#[cfg(test)]
mod tests;
