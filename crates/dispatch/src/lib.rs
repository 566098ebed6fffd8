//! Catalog, pools, balancing, and the bridge between the protocol's eras.
//!
//! [`Dispatch`] stands between whoever has a request and the workers:
//!
//! | step | where |
//! |---|---|
//! | what there is, from all pools | `catalog` |
//! | checks, and the pool for a call | `route` |
//! | the worker for a call | `pools` |
//! | what happens when a worker is lost | `line` |
//! | callers and backends of different eras | `bridge` |
//! | the result's form | `shape` |

mod bridge;
mod catalog;
mod config;
mod dispatch;
mod durability;
mod line;
mod pools;
mod route;
mod shape;
mod shared;
mod status;
mod steering;
mod subscriptions;
mod watch;

pub use catalog::{Conflict, Degraded, ItemKind};
pub use config::{CacheScope, Config, DurabilityPolicy, PoolConfig, ServerInfo};
pub use dispatch::Dispatch;
pub use status::{PoolStatus, Status, WorkerStatus};
