//! Legacy sessions. [`Sessions`] is the gateway to them.
//!
//! Each session has a pure state machine (`state`), applied under a small lock (`live`). A call
//! runs in its own task or its caller's (`call`). An `actor` makes the durable changes.

mod actor;
mod announce;
mod call;
mod clock;
mod config;
#[cfg(fuzzing)]
pub mod fuzz;
mod here;
mod live;
mod measure;
mod record;
mod sessions;
mod state;
mod state_lock;
mod store_failure;
mod stored;
mod streams;
mod subscribers;
mod task_adoption;
mod task_lists;
mod totals;

pub use config::SessionConfig;
pub use sessions::{HandedOver, Sessions, SessionsStatus};
