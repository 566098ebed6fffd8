//! Catalog, pools, balancing, and the bridge between the protocol's eras.
//!
//! [`Dispatch`] stands between whoever has a request and the workers:
//!
//! | step | where |
//! |---|---|
//! | what there is, from all pools | `catalog` |
//! | what of that a caller may use | `access` |
//! | what a person must agree to first | `approval` |
//! | what is settled of a call before it starts | `plan`, `placing` |
//! | lists that differ by caller | `own` |
//! | checks, and the pool for a call | `route` |
//! | checks that take long | `checking` |
//! | the worker for a call: load, affinity, circuits | `pools` |
//! | starting a call, and going on with it under another owner | `start` |
//! | whether what is unknown may exist all the same | `picture` |
//! | calls that end where they are begun | `now` |
//! | what happens when a worker is lost | `worker_call` |
//! | callers and backends of different eras | `bridge` |
//! | the result's form | `shape` |

mod access;
mod approval;
mod audit;
mod awaiting;
mod bridge;
mod catalog;
mod checking;
mod coerce;
mod config;
mod deadline;
mod dispatch;
mod dispatcher;
#[cfg(fuzzing)]
pub mod fuzz;
mod gauges;
mod handle;
mod in_flight;
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
mod start;
mod status;
mod subscriptions;
mod watch;
mod worker_call;

pub use catalog::{
    Conflict, Degraded, ItemKind, MethodRules, PromptRules, ResourceRules, ToolHints, ToolRules,
};
pub use config::{
    Affinity, ArgumentPolicy, CacheScope, Config, DurabilityPolicy, PoolConfig, ScaleToZero,
    ServerInfo,
};
pub use dispatch::Dispatch;
pub use pools::CircuitState;
pub use remembered::Memorable;
pub use status::{PoolStatus, Status, WorkerStatus};
