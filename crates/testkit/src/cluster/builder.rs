use std::collections::HashMap;
use std::ffi::OsString;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use futures::future::try_join_all;

use super::plan::Plan;
use super::{Certificates, Cluster, Issued, Member, Role, Tools};
use crate::clock::WrongClock;
use crate::dialers::Dialers;
use crate::directory::Directory;
use crate::process::SOON;
use crate::programs;
use crate::redis::Redis;
use crate::round_robin::{Edge, RoundRobin};

/// Builds a cluster, by default with one member of each role and the demo tools.
#[derive(Clone, Debug)]
pub struct Builder {
    edges: usize,
    sessions: usize,
    combined: usize,
    workers: usize,
    one_process: bool,
    pub(super) tools: Tools,
    pub(super) fault_proxies: bool,
    tls: bool,
    pub(super) clock: Option<WrongClock>,
    listen: Option<SocketAddr>,
    program: Option<PathBuf>,
    pub(super) starter: Vec<OsString>,
    redis_options: Vec<String>,
    logs: Option<PathBuf>,
    pub(super) store: Option<String>,
    pub(super) settings: Vec<(String, String)>,
    pub(super) worker_settings: Vec<(String, String)>,
}

impl Default for Builder {
    fn default() -> Self {
        Self {
            edges: 1,
            sessions: 1,
            combined: 0,
            workers: 1,
            one_process: false,
            tools: Tools::Demo,
            fault_proxies: false,
            tls: false,
            clock: None,
            listen: Some((Ipv4Addr::LOCALHOST, 0).into()),
            program: None,
            starter: Vec::new(),
            redis_options: Vec::new(),
            logs: None,
            store: None,
            settings: Vec::new(),
            worker_settings: Vec::new(),
        }
        .setting(
            "state_keys.keys",
            r#"[{ value = "the same for all of a test" }]"#,
        )
        // All pools are known when every member is ready, so a node need not wait for more.
        .setting("cluster.learning", "0ms")
        // The round robin does not notice a drain at once.
        .setting("shutdown.balancer_delay", "500ms")
    }
}

impl Builder {
    /// Sets the number of edges.
    #[must_use]
    pub fn edges(mut self, count: usize) -> Self {
        self.edges = count;
        self
    }

    /// Sets the number of session nodes.
    #[must_use]
    pub fn sessions(mut self, count: usize) -> Self {
        self.sessions = count;
        self
    }

    /// Replaces edges and session nodes by `count` processes that are both.
    #[must_use]
    pub fn combined(mut self, count: usize) -> Self {
        (self.edges, self.sessions, self.combined) = (0, 0, count);
        self
    }

    /// Sets the number of workers.
    #[must_use]
    pub fn workers(mut self, count: usize) -> Self {
        self.workers = count;
        self
    }

    /// Runs every role in one process with an embedded store.
    #[must_use]
    pub fn one_process(mut self) -> Self {
        self.one_process = true;
        self
    }

    /// Sets the tools of the workers.
    #[must_use]
    pub fn tools(mut self, tools: Tools) -> Self {
        self.tools = tools;
        self
    }

    /// Sets the length of leases.
    #[must_use]
    pub fn lease(self, time: Duration) -> Self {
        self.setting("node.lease", &format!("{}ms", time.as_millis()))
    }

    /// Adds a setting for every member, such as `streams.retry`.
    #[must_use]
    pub fn setting(mut self, name: &str, value: &str) -> Self {
        self.settings.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Adds settings for every member.
    #[must_use]
    pub fn settings<N: Into<String>, V: Into<String>>(
        mut self,
        settings: impl IntoIterator<Item = (N, V)>,
    ) -> Self {
        let settings = settings.into_iter();
        self.settings
            .extend(settings.map(|(name, value)| (name.into(), value.into())));
        self
    }

    /// Adds a setting for workers, which overrides that of every member.
    #[must_use]
    pub fn worker_setting(mut self, name: &str, value: &str) -> Self {
        self.worker_settings
            .push((name.to_owned(), value.to_owned()));
        self
    }

    /// Puts proxies between the members, and between members and Redis, for [`Cluster::between`]
    /// and [`Cluster::to_redis`].
    #[must_use]
    pub fn fault_proxies(mut self) -> Self {
        self.fault_proxies = true;
        self
    }

    /// Enables mutual TLS between members.
    #[must_use]
    pub fn tls(mut self) -> Self {
        self.tls = true;
        self
    }

    /// Gives members wrong clocks, with different [`SKEWS`](crate::clock::SKEWS).
    #[must_use]
    pub fn wrong_clocks(mut self, clock: WrongClock) -> Self {
        self.clock = Some(clock);
        self
    }

    /// Sets the balancer's address. The default is a free port.
    #[must_use]
    pub fn listen(mut self, address: SocketAddr) -> Self {
        self.listen = Some(address);
        self
    }

    /// Starts no balancer. [`Cluster::url`] is then that of the first edge.
    #[must_use]
    pub fn without_balancer(mut self) -> Self {
        self.listen = None;
        self
    }

    /// Sets the URL of an external store, which fault proxies do not cover.
    #[must_use]
    pub fn store(mut self, url: &str) -> Self {
        self.store = Some(url.to_owned());
        self
    }

    /// Sets the `shoal` binary. The default is [`programs::shoal`].
    #[must_use]
    pub fn program(mut self, path: impl Into<PathBuf>) -> Self {
        self.program = Some(path.into());
        self
    }

    /// Starts all processes by another program, such as `taskset -c 0`.
    #[must_use]
    pub fn under(mut self, words: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        self.starter.extend(words.into_iter().map(Into::into));
        self
    }

    /// Adds options of the cluster's own Redis, which override the usual ones.
    #[must_use]
    pub fn redis_options(mut self, options: &[&str]) -> Self {
        self.redis_options
            .extend(options.iter().map(|&option| option.to_owned()));
        self
    }

    /// Sets the directory of logs and data, which is then kept. The default is a temporary one.
    #[must_use]
    pub fn logs(mut self, directory: Option<PathBuf>) -> Self {
        self.logs = directory;
        self
    }

    /// Starts all members, and waits until every edge and session node knows the others and the workers. Otherwise
    /// the first ones would get all early sessions and calls.
    ///
    /// # Errors
    ///
    /// If a member does not get ready. The error contains its log.
    pub async fn start(mut self) -> anyhow::Result<Cluster> {
        let directory = match &self.logs {
            Some(path) => Directory::at(path)?,
            None => Directory::create("cluster")?,
        };
        let program = self.program.take().map_or_else(programs::shoal, Ok)?;
        let redis = if self.one_process || self.store.is_some() {
            None
        } else {
            let options: Vec<&str> = self.redis_options.iter().map(String::as_str).collect();
            let redis = Redis::start_in(directory.clone(), "redis", &options, &self.starter);
            Some(redis.await.context("cannot start Redis")?)
        };
        let certificates = self.tls.then(|| Certificates::create(&directory));
        let certificates = certificates.transpose()?;
        let of_members = certificates.as_ref().map(Certificates::of_members);
        let tls = of_members.iter().flat_map(Issued::settings);
        self.settings.extend(tls);
        let plan = Plan {
            builder: self,
            program,
            directory,
            redis: redis.as_ref().map(Redis::address),
            dialers: Dialers::default(),
        };
        let builder = &plan.builder;
        let members = builder.start_members(&plan).await?;
        let ready = members.iter().map(|member| member.wait_until_ready(SOON));
        try_join_all(ready).await?;
        let dialled = members
            .iter()
            .filter(|member| member.dialled_at().is_some());
        let (nodes, workers) = (builder.sessions + builder.combined, builder.workers);
        let known = dialled.map(|member| member.wait_until_it_knows(nodes, workers, SOON));
        try_join_all(known).await?;
        let (round_robin, url) = builder.balance(&members).await?;
        let mut started = HashMap::new();
        for member in &members {
            *started.entry(member.role()).or_default() += 1;
        }
        Ok(Cluster {
            members,
            round_robin,
            url,
            redis,
            certificates,
            plan,
            started,
        })
    }

    async fn start_members(&self, plan: &Plan) -> anyhow::Result<Vec<Member>> {
        if self.one_process {
            return Ok(vec![plan.start(Role::Whole, 1, &[]).await?]);
        }
        let nodes = [
            (Role::Session, self.sessions),
            (Role::Combined, self.combined),
            (Role::Edge, self.edges),
        ];
        let nodes = nodes
            .into_iter()
            .flat_map(|(role, count)| (1..=count).map(move |number| plan.start(role, number, &[])));
        let mut members = try_join_all(nodes).await?;
        let join: Vec<SocketAddr> = members.iter().filter_map(Member::dialled_at).collect();
        let workers = (1..=self.workers).map(|number| plan.start(Role::Worker, number, &join));
        members.extend(try_join_all(workers).await?);
        Ok(members)
    }

    async fn balance(&self, members: &[Member]) -> anyhow::Result<(Option<RoundRobin>, String)> {
        let url = members.iter().find_map(Member::mcp_url);
        let url = url.context("a cluster needs an edge")?;
        let Some(listen) = self.listen else {
            return Ok((None, url.to_owned()));
        };
        let edges: Vec<Edge> = members.iter().filter_map(Member::as_edge).collect();
        let round_robin = RoundRobin::start(listen, edges).await?;
        let url = behind(round_robin.address(), url)?;
        Ok((Some(round_robin), url))
    }
}

/// Returns the URL of an edge's endpoint behind a balancer.
pub(crate) fn behind(balancer: SocketAddr, edge: &str) -> anyhow::Result<String> {
    let path = reqwest::Url::parse(edge)?;
    Ok(format!("http://{balancer}{}", path.path()))
}
