use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;

use anyhow::Context;
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{
    TraceService, TraceServiceServer,
};
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use tokio::net::{TcpListener, TcpSocket};
use tokio::runtime::Builder;
use tokio::sync::oneshot;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status};

use crate::affinity;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Conduct {
    Answers,
    /// Refuses connections, like a dead process.
    Refuses,
    Hangs,
}

/// The collector's thread belongs to this process, so that its CPU time does not count as the
/// server's.
pub(crate) struct Collector {
    /// The value for `telemetry.endpoint`.
    pub(crate) endpoint: String,
    spans: Arc<AtomicU64>,
    running: Running,
}

enum Running {
    /// Holds the port without listening.
    Refusing { _taken: TcpSocket },
    Thread {
        stop: Option<oneshot::Sender<()>>,
        thread: Option<JoinHandle<()>>,
    },
}

impl Collector {
    pub(crate) fn start(conduct: Conduct, core: Option<usize>) -> anyhow::Result<Self> {
        let spans = Arc::<AtomicU64>::default();
        let (address, running) = match conduct {
            Conduct::Refuses => refusing()?,
            Conduct::Answers | Conduct::Hangs => listening(conduct, core, Arc::clone(&spans))?,
        };
        Ok(Self {
            endpoint: format!("http://{address}"),
            spans,
            running,
        })
    }

    pub(crate) fn spans(&self) -> u64 {
        self.spans.load(Ordering::Relaxed)
    }
}

fn refusing() -> anyhow::Result<(SocketAddr, Running)> {
    let socket = TcpSocket::new_v4()?;
    socket.bind((Ipv4Addr::LOCALHOST, 0).into())?;
    Ok((socket.local_addr()?, Running::Refusing { _taken: socket }))
}

fn listening(
    conduct: Conduct,
    core: Option<usize>,
    spans: Arc<AtomicU64>,
) -> anyhow::Result<(SocketAddr, Running)> {
    let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    listener.set_nonblocking(true)?;
    let address = listener.local_addr()?;
    let runtime = Builder::new_current_thread()
        .enable_all()
        .build()
        .context("could not start the collector's runtime")?;
    let listener = {
        let _entered = runtime.enter();
        TcpListener::from_std(listener)?
    };
    let (stop, stopped) = oneshot::channel::<()>();
    let thread = std::thread::Builder::new().name("collector".to_owned());
    let thread = thread.spawn(move || {
        if let Some(core) = core {
            // Without its own core, the collector disturbs the measurement only slightly.
            let _ = affinity::pin(core);
        }
        runtime.block_on(async {
            tokio::select! {
                _ = stopped => {}
                () = serve(conduct, listener, spans) => {}
            }
        });
    })?;
    let running = Running::Thread {
        stop: Some(stop),
        thread: Some(thread),
    };
    Ok((address, running))
}

async fn serve(conduct: Conduct, listener: TcpListener, spans: Arc<AtomicU64>) {
    if conduct == Conduct::Answers {
        let service = TraceServiceServer::new(Count(spans));
        let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
        let serving = Server::builder().add_service(service);
        let _ = serving.serve_with_incoming(incoming).await;
        return;
    }
    let mut held = Vec::new();
    while let Ok((connection, _)) = listener.accept().await {
        held.push(connection);
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        if let Running::Thread { stop, thread } = &mut self.running {
            drop(stop.take());
            if let Some(thread) = thread.take() {
                // A panic has already been reported.
                let _ = thread.join();
            }
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
