use std::fs::File;
use std::path::Path;
use std::time::Duration;

use anyhow::Context;

use super::Options;
use super::case::{BEHIND_GATEWAYS, Case, Server, Work};
use crate::connection::Goodbye;
use crate::drive::{self, Call, Plan};
use crate::load::call::{Echo, POLL_INTERVAL_MS};
use crate::load::mix::Kind;
use crate::mcp::client::Client;
use crate::peers::{Peer, Variant};
use crate::report::RunReport;
use crate::servers::Running;
use crate::servers::cluster::{Cluster, Shape};
use crate::servers::spawned::{Environment, Spawned};
use crate::target::Target;

/// Minimum calls of a session, so that slow servers have figures too.
const LEAST_CALLS_OF_A_SESSION: u64 = 10;

const PEER_TIMEOUT: Duration = Duration::from_secs(300);

pub(super) enum Turn {
    Measured(Box<RunReport>),
    LeftOut(String),
}

/// A failing peer is left out.
pub(super) async fn turn(
    case: &Case,
    options: &Options,
    progress: impl Fn(&str),
) -> anyhow::Result<Turn> {
    if options.turns.shoal.is_none()
        && matches!(
            case.server,
            Server::Shoal | Server::Cluster | Server::Combined
        )
    {
        return Ok(Turn::LeftOut("no shoal binary".to_owned()));
    }
    let measuring = measure(case, options, progress);
    let Server::Peer(peer, _) = case.server else {
        return measuring.await;
    };
    let limit = options.turns.warmup + options.turns.time() + PEER_TIMEOUT;
    let why = match tokio::time::timeout(limit, measuring).await {
        Ok(Ok(turn)) => return Ok(turn),
        Ok(Err(error)) => format!("{error:#}"),
        Err(_) => format!("it was not done within {} s", limit.as_secs()),
    };
    let log = peer.log(&options.peers.directory);
    Ok(Turn::LeftOut(format!(
        "{why}; its log is {}",
        log.display()
    )))
}

async fn measure(case: &Case, options: &Options, progress: impl Fn(&str)) -> anyhow::Result<Turn> {
    let server = start(case, options)?;
    if !has_tool(server.url(), case).await? {
        return Ok(Turn::LeftOut(format!(
            "the server has no tool {}",
            case.tool
        )));
    }
    let plan = Plan {
        least_calls: LEAST_CALLS_OF_A_SESSION * options.turns.sessions as u64,
        call: Call {
            kind: match case.work {
                Work::Echo => Kind::Payload(32),
                Work::Job(job) => Kind::Progress(job),
                Work::Task => Kind::Task,
            },
            echo: Echo::by(case.tool),
        },
        ..options.turns.plan(&server, case.mode)
    };
    let report = drive::run(&plan, progress).await?;
    Ok(Turn::Measured(Box::new(report)))
}

fn start(case: &Case, options: &Options) -> anyhow::Result<Running> {
    let core = options.cores.map(|cores| cores.server);
    let shoal = || options.turns.shoal.as_deref().context("no shoal binary");
    let peers = options.peers.directory.as_path();
    let environment = environment(case);
    Ok(match case.server {
        Server::Own(arguments) => Running::One(Spawned::own(arguments, core)?),
        Server::Shoal => Running::One(Spawned::shoal(shoal()?, core, &environment)?),
        Server::Cluster => Running::Many(Cluster::start(shoal()?, core, &environment)?),
        Server::Combined => {
            let shape = Shape::combined(&environment);
            Running::Many(Cluster::start_as(shoal()?, core, &shape)?)
        }
        Server::Peer(peer, variant) if variant.is_gateway => {
            let behind = Spawned::own(BEHIND_GATEWAYS, core)?;
            let gateway = start_peer(peer, variant, peers, Some(&behind.url), core)?;
            Running::Both(gateway, behind)
        }
        Server::Peer(peer, variant) => Running::One(start_peer(peer, variant, peers, None, core)?),
    })
}

fn start_peer(
    peer: &Peer,
    variant: &Variant,
    peers: &Path,
    behind: Option<&str>,
    core: Option<usize>,
) -> anyhow::Result<Spawned> {
    let log = peer.log(peers);
    let file = File::create(&log).with_context(|| format!("could not write {}", log.display()))?;
    let mut command = peer.command(variant, peers, behind);
    command.stderr(file);
    Spawned::announcing(command, core).context("it did not start")
}

fn environment(case: &Case) -> Environment {
    // The other servers have no telemetry.
    let mut environment = vec![("SHOAL_TELEMETRY__ENABLED", "false".to_owned())];
    if case.work == Work::Task {
        environment.extend([
            ("SHOAL_TASKS__AFTER", "1ms".to_owned()),
            (
                "SHOAL_TASKS__POLL_INTERVAL",
                format!("{POLL_INTERVAL_MS}ms"),
            ),
            // With these times, a task is unloaded and forgotten within a run. Tasks that live for
            // an hour would exceed the limit of sessions.
            ("SHOAL_SESSION__SWEEP_EVERY", "1s".to_owned()),
            ("SHOAL_SESSION__PASSIVATE_AFTER", "1s".to_owned()),
            ("SHOAL_TASKS__TTL", "5s".to_owned()),
        ]);
    }
    environment
}

async fn has_tool(url: &str, case: &Case) -> anyhow::Result<bool> {
    let target = Target::resolve(url).await?;
    let mut client = Client::open(&target, case.mode, Goodbye::Finish).await?;
    let tools = client.tools().await?;
    // A server without sessions may refuse the end of one.
    client.end().await.ok();
    Ok(tools.iter().any(|tool| tool == case.tool))
}
