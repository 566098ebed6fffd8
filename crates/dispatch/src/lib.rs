//! Catalog, pools, balancing, and the bridge between the protocol's eras.
//!
//! [`Dispatch`] runs requests on workers:
//!
//! | step | module |
//! |---|---|
//! | the merged catalog of all pools | `catalog` |
//! | the items that a caller may use | `access` |
//! | a person's approval | `approval` |
//! | an edge's choice of a worker | `draw` |
//! | the plan of a call before it starts | `plan`, `placing` |
//! | lists that differ by caller | `own` |
//! | checks, and the pool for a call | `route` |
//! | slow checks | `slow_checks` |
//! | the worker for a call: load, affinity, circuits | `pools` |
//! | starting and resuming a call | `start` |
//! | whether an unknown item may exist | `picture` |
//! | calls that run in this process without waiting | `now` |
//! | recovery from a lost worker | `worker_call` |
//! | callers and backends of different eras | `bridge` |
//! | the result's form | `shape` |

mod access;
mod approval;
mod asker;
mod audit;
mod awaiting;
mod bridge;
mod catalog;
mod coerce;
mod config;
mod deadline;
mod dispatch;
mod dispatcher;
mod draw;
#[cfg(fuzzing)]
pub mod fuzz;
mod gauges;
mod handle;
mod in_flight;
mod known_names;
mod now;
mod own;
mod picture;
mod placing;
mod plan;
mod pools;
mod remembered;
mod rounds;
mod route;
mod settling;
mod shape;
mod shared;
mod shares;
mod slow_checks;
mod start;
mod status;
mod subscriptions;
mod watch;
mod worker_call;

pub use catalog::{
    Conflict, Degraded, ItemKind, MethodRules, PromptRules, ResourceRules, ToolHints, ToolRules,
};
pub use config::{Affinity, ArgumentPolicy, Config, DurabilityPolicy, PoolConfig, ScaleToZero};
pub use dispatch::Dispatch;
pub use pools::CircuitState;
pub use remembered::Memorable;
pub use status::{PoolStatus, Status, WorkerStatus};
