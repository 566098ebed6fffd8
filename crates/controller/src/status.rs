//! The controller's report for operators (`/status`).

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
    /// Whether this controller leads, so that it writes.
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
    /// Why the pools could not be written, if the last turn failed.
    pub trouble: Option<String>,
    /// Why the last attempt in the election failed.
    pub election: Option<String>,
    /// When this controller last found the pools published, in seconds since 1970.
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

/// An object that was refused as a pool.
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
