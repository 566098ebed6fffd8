use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use rmcp::ServerHandler;
use shoal_node::config::{LONGEST_POOL_NAME, Preset, value};
use shoal_node::exit::Failure;
use shoal_node::program::{PoolHandler, Program, StartHandler};
use shoal_node::worker::ClusterWorker;
use shoal_worker::{Backend, RmcpBackend};

/// Describes a server before it starts. Operators override the builder's values by a configuration file, by variables
/// (`SHOAL_…`) and by flags.
#[must_use = "a server that is not started does nothing"]
pub struct Builder {
    start: StartHandler,
    name: Option<String>,
    version: Option<String>,
    pool: Option<String>,
    capacity: Option<usize>,
    nodes: Vec<String>,
    settings: Vec<Preset>,
}

impl Builder {
    pub(crate) fn new<H, S, F, E>(start: S) -> Self
    where
        H: ServerHandler,
        S: FnOnce() -> F + Send + 'static,
        F: Future<Output = Result<H, E>> + Send + 'static,
        E: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let start = move || {
            let made = start();
            async move {
                let handler = made
                    .await
                    .map_err(|error| anyhow::Error::from_boxed(error.into()))?;
                Ok(RmcpBackend::start(handler).await as Arc<dyn Backend>)
            }
            .boxed()
        };
        Self {
            start: Box::new(start),
            name: None,
            version: None,
            pool: None,
            capacity: None,
            nodes: Vec::new(),
            settings: Vec::new(),
        }
    }

    /// Sets the name of the program and, with a random suffix, of its process in the cluster. The default is the
    /// executable's name.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Sets the version that `--version` prints beside Shoal's, usually `env!("CARGO_PKG_VERSION")`.
    pub fn version(mut self, version: impl Into<String>) -> Self {
        self.version = Some(version.into());
        self
    }

    /// Sets the pool: a-z, 0-9, `-` and single `_`. Its workers offer the same tools and share its calls. The default
    /// is the program's name.
    pub fn pool(mut self, pool: impl Into<String>) -> Self {
        self.pool = Some(pool.into());
        self
    }

    /// Sets how many calls a process runs at once (`pools.<pool>.concurrency`). Further calls wait in a queue. When the
    /// queue is full, Shoal refuses calls.
    pub fn capacity(mut self, calls: usize) -> Self {
        self.capacity = Some(calls);
        self
    }

    /// Sets how long running calls may continue after the shutdown begins (`shutdown.calls`).
    pub fn drain(self, limit: Duration) -> Self {
        let limit = format!("{}ms", limit.as_millis());
        self.set("shutdown.calls", &limit)
    }

    /// Adds an edge or session node, as `HOST:PORT`, that the worker joins. One node is enough, because it announces
    /// the others.
    pub fn join(mut self, node: impl Into<String>) -> Self {
        self.nodes.push(node.into());
        self
    }

    /// Sets any [setting](https://github.com/shoal-mcp/shoal/blob/main/docs/configuration.md) by its path. `text` is a
    /// TOML value; text that is invalid TOML becomes a string.
    pub fn set(mut self, path: &str, text: &str) -> Self {
        let path = path.split('.').map(str::to_owned).collect();
        self.settings.push((path, value(text)));
        self
    }

    /// Runs the command line. Return the result from `main`, as with [`shoal::serve`](crate::serve).
    pub fn serve(self) -> ExitCode {
        self.into_program().run()
    }

    /// Starts a worker inside a program that has its own command line, logging and signals. Must be called in a Tokio
    /// runtime. The worker looks for the nodes that it [joins](Self::join) throughout its life.
    ///
    /// # Errors
    ///
    /// Fails if a setting is invalid or the server cannot be created.
    pub async fn start(self) -> Result<ClusterWorker, Failure> {
        let program = self.set("node.roles", "['worker']").into_program();
        ClusterWorker::start(program).await
    }

    fn into_program(self) -> Program {
        let name = self.name.clone().unwrap_or_else(executable);
        let pool = self.pool.unwrap_or_else(|| pool_name(&name));
        let of_pool = |member: &str| ["pools", &pool, member].map(str::to_owned).to_vec();
        let mut settings: Vec<Preset> = vec![(of_pool("backend"), "handler".into())];
        if let Some(name) = self.name {
            settings.push((["node", "name"].map(str::to_owned).to_vec(), name.into()));
        }
        if let Some(capacity) = self.capacity {
            let capacity = i64::try_from(capacity).unwrap_or(i64::MAX);
            settings.push((of_pool("concurrency"), capacity.into()));
        }
        if !self.nodes.is_empty() {
            let path = ["cluster", "join"].map(str::to_owned).to_vec();
            settings.push((path, self.nodes.into()));
        }
        settings.extend(self.settings);
        Program {
            name,
            version: self.version,
            settings,
            handler: Some(PoolHandler {
                pool,
                start: self.start,
            }),
        }
    }
}

fn executable() -> String {
    let file = std::env::current_exe().ok();
    let stem = file.as_deref().and_then(Path::file_stem);
    stem.map_or_else(
        || "server".to_owned(),
        |stem| stem.to_string_lossy().into_owned(),
    )
}

fn pool_name(program: &str) -> String {
    let mut name = String::with_capacity(program.len());
    for c in program.to_ascii_lowercase().chars() {
        match c {
            'a'..='z' | '0'..='9' => name.push(c),
            // Omit the character: a name begins with a letter or digit, and has no two underscores in a row.
            _ if name.is_empty() || c != '-' && name.ends_with('_') => {}
            '-' => name.push('-'),
            _ => name.push('_'),
        }
    }
    name.truncate(LONGEST_POOL_NAME);
    match name.is_empty() {
        true => "server".to_owned(),
        false => name,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rmcp::ServerHandler;
    use shoal_node::config::{self, Backend, Environment, Settings};
    use shoal_node::program::Program;

    use super::{Builder, pool_name};

    struct Nothing;

    impl ServerHandler for Nothing {}

    fn settings(builder: Builder) -> (Program, Settings) {
        let program = builder.into_program();
        let none = Environment::default();
        let loaded = config::load(&program.settings, None, &none, &[]).unwrap();
        (program, loaded.settings)
    }

    #[test]
    fn what_is_said_of_a_server_becomes_its_settings() {
        let builder = crate::worker(Nothing)
            .name("acme")
            .pool("weather")
            .capacity(8)
            .drain(Duration::from_millis(1_500))
            .join("a:1")
            .join("b:2")
            .set("pools.weather.queue", "3")
            .set("pools.weather.queue_age", "4s");
        let (program, settings) = settings(builder);
        assert_eq!(settings.node.name.as_deref(), Some("acme"));
        assert_eq!(settings.node.roles.len(), 1);
        assert_eq!(settings.cluster.join, ["a:1", "b:2"]);
        assert_eq!(settings.shutdown.calls.get(), Duration::from_millis(1_500));
        let pool = &settings.pools["weather"];
        assert!(matches!(pool.backend, Backend::Handler));
        assert_eq!((pool.limits.concurrency, pool.limits.queue), (8, 3));
        assert_eq!(pool.limits.queue_age.get(), Duration::from_secs(4));
        assert_eq!(program.handler.unwrap().pool, "weather");
        assert_eq!(program.name, "acme");
    }

    #[test]
    fn what_is_not_said_is_as_without_an_author() {
        let (program, settings) = settings(crate::server(Nothing).name("Acme Tools__v2"));
        let pool = &settings.pools["acme_tools_v2"];
        let usual = config::Pool::default();
        assert_eq!(pool.limits.concurrency, usual.limits.concurrency);
        assert_eq!(program.handler.unwrap().pool, "acme_tools_v2");
        assert_eq!(pool_name("a.b-c"), "a_b-c");
        assert_eq!(pool_name("-_a_-"), "a_-");
        assert_eq!(pool_name("\u{e4}"), "server");
        assert_eq!(pool_name(&"a".repeat(70)), "a".repeat(63));
    }
}
