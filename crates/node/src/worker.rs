//! A worker inside another program, without its own command line, sockets, signals or logging.

use std::sync::Arc;

use crate::admin::Observed as _;
use crate::certificates::Certificates;
use crate::config::{Environment, Loaded, Role};
use crate::exit::Failure;
use crate::node::Node;
use crate::node_id::node_id;
use crate::program::Program;
use crate::reload::{ConfigReader, Reloads};
use crate::shutdown::end_parts;
use crate::signals::{HangUps, Signals};
use crate::starting::Starting;

/// A process's pools, linked to a cluster's nodes. Dropping it closes the links without a drain.
pub struct ClusterWorker {
    node: Node,
    reloads: Reloads,
}

impl ClusterWorker {
    /// Starts the configured pools, and links them to the cluster's nodes. The environment (`SHOAL_…`) and the file
    /// that it names override the program's settings.
    ///
    /// # Errors
    /// If the settings are invalid or name another role than worker, or the handler cannot be started.
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

    /// Returns why the worker cannot take calls yet. Empty once it can.
    #[must_use]
    pub fn waits_for(&self) -> Vec<String> {
        self.node.watch.readiness().reasons().to_vec()
    }

    /// Refuses new calls. Waits until running calls have ended or `shutdown.calls` is over.
    pub async fn shutdown(self) {
        self.node.watch.leave();
        end_parts(self.node).await;
    }

    /// Serves until SIGTERM or SIGINT. A second signal exits at once. SIGHUP reloads the configuration file.
    ///
    /// # Errors
    /// If the operating system refuses to register the signals.
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
