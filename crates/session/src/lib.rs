//! Legacy sessions: a pure state machine for each, an actor while there is something durable to do to it, and the gateway
//! that finds, wakes, bounds and ends them.
//!
//! Start with [`Sessions`], the gateway. What a session *decides* stands in `state`, free of I/O, and is applied under
//! a small lock (`live`). A call that follows runs in a task of its own or its caller's (`call`); what changes the session
//! itself, or ends it, its `actor` does.

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
mod stored;
mod streams;
mod task_lists;
mod task_news;
mod totals;

pub use config::SessionConfig;
pub use sessions::{HandedOver, Sessions, SessionsStatus};
