use std::time::SystemTime;

use serde::{Serialize, Serializer};
use shoal_telemetry::metrics::DiscoveryRefusal;

use crate::plan::Plan;
use crate::watch::SourceReport;

/// The report in `/status` of a controller.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Report {
    /// Whether the controller has read all objects once.
    pub listed: bool,
    /// Whether this controller leads. Only the leader publishes the pools.
    pub leads: bool,
    /// The controller that leads, if known.
    pub leader: Option<String>,
    /// The watched kinds and namespaces, each with its state.
    pub sources: Vec<SourceReport>,
    /// The planned pools.
    pub pools: Vec<PoolReport>,
    /// The refused objects.
    pub refused: Vec<RefusalReport>,
    /// Number of objects that have no URL in their status yet.
    pub waiting: usize,
    /// Why the leader's last turn could not publish the pools, if it failed.
    pub trouble: Option<String>,
    /// Why the last attempt to take or renew the Lease failed, if it did.
    pub election: Option<String>,
    /// When this controller last published the pools or found them unchanged, in seconds since 1970.
    pub last_success: Option<u64>,
}

/// A pool that the controller planned.
#[derive(Clone, Debug, Serialize)]
pub struct PoolReport {
    /// The pool's name.
    pub name: String,
    /// The object from which the pool was made: kind, namespace and name.
    pub object: String,
    /// The URL of the pool's server.
    pub url: String,
}

/// An object that the controller refused to make a pool of.
#[derive(Clone, Debug, Serialize)]
pub struct RefusalReport {
    /// The object's kind, namespace and name.
    pub object: String,
    /// The reason, as a code for programs.
    #[serde(serialize_with = "as_text")]
    pub reason: DiscoveryRefusal,
    /// The reason in words.
    pub message: String,
}

impl Report {
    pub(crate) fn see(&mut self, plan: &Plan<'_>) {
        let pools = plan.pools.iter().map(|it| PoolReport {
            name: it.pool.name.clone(),
            object: it.object.path(),
            url: it.pool.url.to_string(),
        });
        self.pools = pools.collect();
        let refused = plan.refused.iter().map(|it| RefusalReport {
            object: it.object.path(),
            reason: it.refusal.reason,
            message: it.refusal.message.clone(),
        });
        self.refused = refused.collect();
        self.waiting = plan.waiting;
    }

    /// Records the result of a leader's turn: its error, or success.
    pub(crate) fn published(&mut self, trouble: Option<String>) {
        if trouble.is_none() {
            let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
            self.last_success = since.ok().map(|since| since.as_secs());
        }
        self.trouble = trouble;
    }
}

fn as_text<S: Serializer>(reason: &DiscoveryRefusal, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(reason.as_str())
}
