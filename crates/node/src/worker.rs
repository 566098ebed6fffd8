//! A worker in a program that does more than that: without a command line, sockets, signals or logging of its own.

use std::sync::Arc;

use crate::admin::Observed as _;
use crate::certificates::Certificates;
use crate::config::{Environment, Loaded, Role};
use crate::exit::Failure;
use crate::node::{Node, node_id};
use crate::program::Program;
use crate::reload::{ConfigReader, Reloads};
use crate::shutdown::end_parts;
use crate::signals::{HangUps, Signals};
use crate::starting::Starting;

/// A process's pools, at work for the nodes of a cluster. Dropped, it leaves them without a word.
pub struct ClusterWorker {
    node: Node,
    reloads: Reloads,
}

impl ClusterWorker {
    /// Starts the pools of the program's settings, and keeps them linked to the nodes that these name. The environment
    /// (`SHOAL_…`) and the file that it names override the settings.
    ///
    /// # Errors
    /// Settings that cannot be used, or are not those of a worker alone; a handler that cannot be started.
    pub async fn start(program: Program) -> Result<Self, Failure> {
        let check = program.check();
        let accept = move |loaded: &mut Loaded| {
            if loaded.settings.node.roles != [Role::Worker] {
                return Err(Failure::usage(
                    "this process is a worker and nothing else: leave node.roles out",
                ));
            }
            check(&loaded.settings)
        };
        let environment = Environment::of_process();
        let mut reader =
            ConfigReader::new(&program.settings, None, &environment, Vec::new(), accept);
        let loaded = reader.load()?;
        let settings = loaded.settings.clone();
        let certificates = Certificates::open(&settings).map_err(Failure::usage)?;
        certificates.renew(&settings);
        let tls = certificates.links;
        let id = node_id(&settings);
        let starting = Starting::default();
        let node = Node::build(settings, id, None, tls, &starting, program.handler).await?;
        let configuration = Arc::clone(&node.configuration);
        let reloads = Reloads::new(reader, loaded, node.pools.clone(), configuration);
        Ok(Self { node, reloads })
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

    /// Works until a signal asks for the end; a second one exits at once. SIGHUP has the file that the environment names read
    /// again.
    ///
    /// # Errors
    /// When the operating system does not hand over its signals.
    pub async fn run_until_signal(self) -> Result<(), Failure> {
        let mut signals = Signals::take().map_err(anyhow::Error::from)?;
        let hang_ups = HangUps::take().map_err(anyhow::Error::from)?;
        let Self { node, reloads } = self;
        let reloading = reloads.run(hang_ups);
        let signal = signals.next().await;
        tracing::info!(signal, "shutting down; a second signal exits at once");
        drop(reloading);
        signals.next_one_exits();
        node.watch.leave();
        end_parts(node).await;
        Ok(())
    }
}
