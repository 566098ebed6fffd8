pub(crate) mod collector;
pub(crate) mod floor;
pub(crate) mod peer;
pub(crate) mod redis;

use std::ffi::OsString;
use std::io::Read as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::Context;
use axum::Router;
use axum::serve::ListenerExt;
use shoal_testkit::admin::Admin;
use shoal_testkit::cluster::{Builder, Cluster, Role};
use shoal_testkit::process::{Launch, Process};
use shoal_testkit::programs;
use shoal_testkit::redis::Redis;
use tokio::net::TcpListener;

use crate::target::Target;

const PATH: &str = "/mcp";

const LISTENING: &str = "listening on ";

/// As docs/redis.md recommends, and without persistence.
const REDIS: [&str; 6] = [
    "--appendonly",
    "no",
    "--hash-max-listpack-value",
    "1024",
    "--hash-max-listpack-entries",
    "32",
];

/// A server that this program has started.
pub(crate) struct Running {
    pub(crate) url: String,
    pub(crate) pids: Vec<u32>,
    pub(crate) redis: Option<SocketAddr>,
    shoal: Option<Cluster>,
    _others: Vec<Process>,
}

impl Running {
    pub(crate) async fn shoal(builder: Builder) -> anyhow::Result<Self> {
        let cluster = builder.start().await?;
        Ok(Self {
            url: cluster.url().to_owned(),
            pids: cluster.pids(),
            redis: cluster.redis().map(Redis::address),
            shoal: Some(cluster),
            _others: Vec::new(),
        })
    }

    /// Starts a server of this program, which ends with this process, even if this process is killed.
    pub(crate) async fn own(arguments: &[&str], core: Option<usize>) -> anyhow::Result<Self> {
        let program = std::env::current_exe().context("could not find this program")?;
        let launch = Launch::new(&arguments.join(" "), program, "/dev/null")
            .arguments(arguments)
            .arguments(["--listen", "127.0.0.1:0", "--while-input"]);
        Self::launched(launch, core).await
    }

    pub(crate) async fn launched(launch: Launch, core: Option<usize>) -> anyhow::Result<Self> {
        let process = Process::start(&launch.under(&on_core(core)))?;
        Ok(Self {
            url: process.announced(LISTENING).await?,
            pids: vec![process.pid()],
            redis: None,
            shoal: None,
            _others: vec![process],
        })
    }

    /// Keeps the server behind a gateway.
    pub(crate) fn before(mut self, behind: Self) -> Self {
        self.pids.extend(behind.pids);
        self._others.extend(behind._others);
        self
    }

    pub(crate) fn cluster(&self) -> Option<&Cluster> {
        self.shoal.as_ref()
    }

    /// Returns the admin port, if the server is a single process of Shoal.
    pub(crate) fn admin(&self) -> Option<&Admin> {
        let member = self.shoal.as_ref()?.members().first()?;
        (member.role() == Role::Whole).then(|| member.admin())
    }
}

fn on_core(core: Option<usize>) -> Vec<OsString> {
    let words = core.map(|core| ["taskset".into(), "-c".into(), core.to_string().into()]);
    words.into_iter().flatten().collect()
}

/// Returns the builder of a cluster with one process of each role.
pub(crate) fn cluster(shoal: &Path, core: Option<usize>) -> Builder {
    Cluster::builder()
        .program(shoal)
        .without_balancer()
        .under(on_core(core))
        .redis_options(&REDIS)
}

/// Returns the builder of a single process with all roles.
pub(crate) fn one_process(shoal: &Path, core: Option<usize>) -> Builder {
    cluster(shoal, core).one_process()
}

/// Resolves the URLs of all edges.
pub(crate) async fn targets(cluster: &Cluster) -> anyhow::Result<Vec<Target>> {
    let edges = cluster.edges();
    let urls = edges.iter().filter_map(|edge| edge.mcp_url());
    Target::resolve_all(&urls.map(str::to_owned).collect::<Vec<_>>()).await
}

/// Returns the named binary, else the one next to this program.
pub(crate) fn shoal_binary(named: Option<&Path>) -> anyhow::Result<PathBuf> {
    match named {
        Some(path) => Ok(path.to_owned()),
        None => programs::shoal().context("name the shoal binary with --shoal"),
    }
}

#[allow(
    clippy::print_stdout,
    reason = "whoever started the server reads its address from here"
)]
async fn serve(router: Router, listen: SocketAddr) -> anyhow::Result<()> {
    let listener = TcpListener::bind(listen)
        .await
        .with_context(|| format!("could not listen on {listen}"))?;
    println!("{LISTENING}http://{}{PATH}", listener.local_addr()?);
    // Otherwise an answer in several writes waits for the client's delayed acknowledgement.
    let listener = listener.tap_io(|socket| {
        let _ = socket.set_nodelay(true);
    });
    axum::serve(listener, router)
        .await
        .context("could not serve")
}

/// With `input`, also ends with standard input, as when the starting program dies.
pub(crate) async fn serve_while(
    input: bool,
    serving: impl Future<Output = anyhow::Result<()>>,
) -> anyhow::Result<()> {
    if !input {
        return serving.await;
    }
    let (ended, end) = tokio::sync::oneshot::channel::<()>();
    // A read cannot be cancelled, so it has its own thread.
    std::thread::spawn(move || {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        drop(ended);
    });
    tokio::select! {
        served = serving => served,
        _ = end => Ok(()),
    }
}
