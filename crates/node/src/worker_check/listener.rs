use std::process::Stdio;
use std::time::Duration;

use anyhow::Context as _;
use serde_json::Value;
use shoal_rpc::proto::types::v1::Limits;
use shoal_rpc::proto::worker::v1::worker_link_server::{WorkerLink, WorkerLinkServer};
use shoal_rpc::proto::worker::v1::{Catalog, NodeFrame, WorkerFrame};
use tokio::net::TcpListener;
use tokio::process::{Child, Command};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status, Streaming};

use super::check_failure::{CheckFailure, CheckResult};
use super::link::{IncomingLink, LONGEST_MESSAGE, ProbeLink, Setting};
use super::link_in_use::{LinkInUse, Spare};
use crate::cli::WorkerCheck;
use crate::exit::{Code, Failure};
use crate::print::Output;

const WAITING: usize = 64;
const LONG: u32 = 6;

pub(super) struct WorkerListener {
    pub(super) address: String,
    /// Limits each wait.
    pub(super) patience: Duration,
    links: mpsc::Receiver<IncomingLink>,
    /// The previous check's link.
    spare: Spare,
    pub(super) process: Option<Child>,
}

pub(super) struct Met {
    pub(super) worker: String,
    pub(super) pool: String,
    pub(super) tools: Vec<String>,
}

struct Service(mpsc::Sender<IncomingLink>);

#[tonic::async_trait]
impl WorkerLink for Service {
    type LinkStream = ReceiverStream<Result<NodeFrame, Status>>;

    async fn link(
        &self,
        request: Request<Streaming<WorkerFrame>>,
    ) -> Result<Response<Self::LinkStream>, Status> {
        let (say, frames) = mpsc::channel(WAITING);
        let heard = request.into_inner();
        let incoming = IncomingLink { say, heard };
        let gone = |_| Status::unavailable("the checks are over");
        self.0.send(incoming).await.map_err(gone)?;
        Ok(Response::new(ReceiverStream::new(frames)))
    }
}

impl WorkerListener {
    /// Starts the worker if its command is set.
    ///
    /// # Errors
    ///
    /// If the address cannot be used or the command cannot be started.
    pub(super) async fn start(command: &WorkerCheck) -> Result<Self, Failure> {
        let listening = Self::listen(&command.listen.to_string(), command.timeout).await;
        let mut listener = listening.context("cannot listen for the worker (--listen)")?;
        if command.output == Output::Text {
            let line = format!("shoal: waiting for a worker at {}\n", listener.address);
            crate::print::print(&line)?;
        }
        let Some((program, arguments)) = command.command.split_first() else {
            return Ok(listener);
        };
        let filled = arguments
            .iter()
            .map(|word| word.replace("{address}", &listener.address));
        let child = Command::new(program)
            .args(filled)
            .env("SHOAL_JOIN", &listener.address)
            .stdin(Stdio::null())
            // Standard output is reserved for the report.
            .stdout(Stdio::null())
            .kill_on_drop(true)
            .spawn();
        let no_program = |error| Failure::usage(format!("cannot run {program:?}: {error}"));
        listener.process = Some(child.map_err(no_program)?);
        Ok(listener)
    }

    pub(super) async fn listen(address: &str, patience: Duration) -> anyhow::Result<Self> {
        let socket = TcpListener::bind(address).await?;
        let address = socket.local_addr()?.to_string();
        let (found, links) = mpsc::channel(WAITING);
        let service = WorkerLinkServer::new(Service(found));
        let serving = Server::builder()
            .add_service(service.max_decoding_message_size(LONGEST_MESSAGE))
            .serve_with_incoming(TcpIncoming::from(socket));
        tokio::spawn(serving);
        Ok(Self {
            address,
            patience,
            links,
            spare: Spare::default(),
            process: None,
        })
    }

    /// Waits for the worker's first link, and learns its tools.
    ///
    /// # Errors
    ///
    /// If no worker joins, or its process ends first.
    pub(super) async fn meet(&mut self) -> Result<Met, Failure> {
        let meeting = timeout(self.patience * LONG, async {
            let mut link = self.link().await?;
            let announced = link.announced(|said| said.catalog.is_some()).await?;
            let catalog: Catalog = announced.catalog.unwrap_or_default();
            Ok(Met {
                worker: link.hello.worker.clone(),
                pool: announced.pool,
                tools: names(&catalog),
            })
        });
        match meeting.await {
            Ok(Ok(met)) => Ok(met),
            Ok(Err(CheckFailure::Skipped(reason))) => Err(Failure::new(Code::Failed, reason)),
            Ok(Err(CheckFailure::Failed { expected, seen })) => {
                let reason = format!("no worker joined: expected {expected}; seen: {seen}");
                Err(Failure::new(Code::Unreachable, reason))
            }
            Err(_) => Err(Failure::new(
                Code::Unreachable,
                format!("no worker joined at {} in time", self.address),
            )),
        }
    }

    /// Returns a link with the worker's newest version. Reuses the previous link if that still works, because a worker
    /// may pause for seconds after a short link before it dials again.
    pub(super) async fn link(&mut self) -> CheckResult<LinkInUse> {
        let spare = self.spare.lock().take();
        if let Some(mut link) = spare {
            link.kept.clear();
            if link.ping().await.is_ok() {
                return Ok(LinkInUse::new(link, Some(&self.spare)));
            }
        }
        let link = self.new_link(Setting::default()).await?;
        Ok(LinkInUse::new(link, Some(&self.spare)))
    }

    /// The previous link must have been dropped.
    pub(super) async fn link_with(&mut self, setting: Setting) -> CheckResult<LinkInUse> {
        self.hang_up();
        let link = self.new_link(setting).await?;
        Ok(LinkInUse::new(link, None))
    }

    pub(super) fn hang_up(&mut self) {
        self.spare.lock().take();
    }

    async fn new_link(&mut self, setting: Setting) -> CheckResult<ProbeLink> {
        let patience = self.patience * LONG;
        let incoming = tokio::select! {
            incoming = timeout(patience, self.links.recv()) => incoming.ok().flatten(),
            ended = ended(&mut self.process) => {
                return super::check_failure::failed("a worker that runs", ended);
            }
        };
        let Some(incoming) = incoming else {
            return super::check_failure::failed(
                "a link from the worker, which dials again when a link ends",
                format!("none came in {patience:?}"),
            );
        };
        ProbeLink::welcome(incoming, setting, &self.address, self.patience).await
    }

    pub(super) async fn limited(&mut self, limits: Limits) -> CheckResult<LinkInUse> {
        let setting = Setting {
            limits,
            ..Setting::default()
        };
        self.link_with(setting).await
    }

    pub(super) fn long(&self) -> Duration {
        self.patience * LONG
    }

    pub(super) async fn stop(&mut self) {
        if let Some(child) = &mut self.process {
            let _ = child.kill().await;
        }
    }
}

async fn ended(process: &mut Option<Child>) -> String {
    let Some(child) = process else {
        return std::future::pending().await;
    };
    match child.wait().await {
        Ok(status) => format!("it ended: {status}"),
        Err(error) => format!("it cannot be waited for: {error}"),
    }
}

fn names(catalog: &Catalog) -> Vec<String> {
    let tools = catalog.tools.iter();
    let tools = tools.filter_map(|tool| serde_json::from_slice::<Value>(tool).ok());
    let names = tools.filter_map(|tool| Some(tool["name"].as_str()?.to_owned()));
    names.collect()
}
