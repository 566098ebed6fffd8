//! The report for operators (`/status`).

use std::time::SystemTime;

use serde::{Serialize, Serializer};
use shoal_telemetry::metrics::DiscoveryRefusal;

use crate::plan::Plan;
use crate::watch::SourceReport;

/// `/status` of a controller.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Report {
    /// Whether the controller has read all objects once.
    pub listed: bool,
    /// Whether this controller writes.
    pub leads: bool,
    /// The controller that writes.
    pub leader: Option<String>,
    /// The watched kinds and namespaces.
    pub sources: Vec<SourceReport>,
    /// The planned pools.
    pub pools: Vec<PoolReport>,
    /// The refused objects.
    pub refused: Vec<RefusalReport>,
    /// How many objects have no URL yet.
    pub waiting: usize,
    /// Why the pools could not be written.
    pub trouble: Option<String>,
    /// Why the last attempt in the election failed.
    pub election: Option<String>,
    /// When this controller last found the pools published, in seconds since the epoch.
    pub last_success: Option<u64>,
}

/// A pool.
#[derive(Clone, Debug, Serialize)]
pub struct PoolReport {
    /// Its name.
    pub name: String,
    /// The object of the pool: kind, namespace and name.
    pub object: String,
    /// The URL of its server.
    pub url: String,
}

/// A refused object.
#[derive(Clone, Debug, Serialize)]
pub struct RefusalReport {
    /// Kind, namespace and name.
    pub object: String,
    /// The reason for programs.
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

    /// Records a turn of the leader and its error, if any.
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
