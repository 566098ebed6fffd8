//! The report for operators (`/status`).

use std::time::SystemTime;

use serde::{Serialize, Serializer};
use shoal_telemetry::metrics::DiscoveryRefusal;

use crate::plan::Plan;
use crate::watch::SourceReport;

/// `/status` of a controller.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Report {
    /// Whether all objects have been read once.
    pub listed: bool,
    /// Whether this controller writes.
    pub leads: bool,
    /// The controller that writes.
    pub leader: Option<String>,
    /// The kinds and namespaces that are read.
    pub sources: Vec<SourceReport>,
    /// The pools that there are.
    pub pools: Vec<PoolReport>,
    /// The objects that are no pool, and why.
    pub refused: Vec<RefusalReport>,
    /// How many objects have no URL yet.
    pub waiting: usize,
    /// Why the pools could not be written.
    pub trouble: Option<String>,
    /// Why this controller could not take part in the election at its last attempt.
    pub election: Option<String>,
    /// When the pools were last seen to be published by this controller, in seconds since the epoch.
    pub last_success: Option<u64>,
}

/// A pool.
#[derive(Clone, Debug, Serialize)]
pub struct PoolReport {
    /// Its name.
    pub name: String,
    /// The object that it was made of: kind, namespace and name.
    pub object: String,
    /// Where its server is.
    pub url: String,
}

/// An object that is no pool.
#[derive(Clone, Debug, Serialize)]
pub struct RefusalReport {
    /// Kind, namespace and name.
    pub object: String,
    /// For programs.
    #[serde(serialize_with = "as_text")]
    pub reason: DiscoveryRefusal,
    /// For people.
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

    /// The leader has published, or could not for a reason.
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
