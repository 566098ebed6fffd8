//! A worker in a program that does more than that: without a command line, sockets, signals or logging of its own.

use crate::admin::Observed as _;
use crate::config::{self, Environment, Role};
use crate::exit::Failure;
use crate::node::{Node, node_id};
use crate::program::Program;
use crate::shutdown::end_parts;
use crate::signals::Signals;
use crate::starting::Starting;

/// A process's pools, at work for the nodes of a cluster. Dropped, it leaves them without a word.
pub struct ClusterWorker {
    node: Node,
}

impl ClusterWorker {
    /// Starts the pools of the program's settings, and keeps them linked to the nodes that these name. The environment
    /// (`SHOAL_…`) and the file that it names override the settings.
    ///
    /// # Errors
    /// Settings that cannot be used, or are not those of a worker alone; a handler that cannot be started.
    pub async fn start(program: Program) -> Result<Self, Failure> {
        let settings =
            config::load(&program.settings, None, &Environment::of_process(), &[])?.settings;
        if settings.node.roles != [Role::Worker] {
            return Err(Failure::usage(
                "this process is a worker and nothing else: leave node.roles out",
            ));
        }
        program.check(&settings)?;
        let tls = crate::cluster::open_tls(&settings).map_err(Failure::usage)?;
        let id = node_id(&settings);
        let starting = Starting::default();
        let node = Node::build(settings, id, None, tls, &starting, program.handler).await?;
        Ok(Self { node })
    }

    /// What keeps the worker from taking calls of the cluster; nothing once it is linked to the nodes.
    #[must_use]
    pub fn waits_for(&self) -> Vec<String> {
        self.node.watch.readiness().reasons().to_vec()
    }

    /// Takes no more calls, and ends when those that run have ended, or `shutdown.calls` is over.
    pub async fn shutdown(self) {
        self.node.watch.leave();
        end_parts(self.node).await;
    }

    /// Works until a signal asks for the end; a second one exits at once.
    ///
    /// # Errors
    /// When the operating system does not hand over its signals.
    pub async fn run_until_signal(self) -> Result<(), Failure> {
        let mut signals = Signals::take().map_err(anyhow::Error::from)?;
        let signal = signals.next().await;
        tracing::info!(signal, "shutting down; a second signal exits at once");
        signals.next_one_exits();
        self.shutdown().await;
        Ok(())
    }
}
