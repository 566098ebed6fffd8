//! Legacy sessions: a pure state machine for each, a thin actor around it, and the gateway that finds,
//! wakes, bounds and ends them.
//!
//! Start with [`Sessions`], the gateway. What a session *decides* stands in `state`, free of I/O; what
//! follows from a decision (dispatching, appending, saving) happens in the tasks of `call` and
//! `sessions`, never in the actor's mailbox.

mod actor;
mod announce;
mod call;
mod cell;
mod clock;
mod config;
mod here;
mod live;
mod measure;
mod record;
mod sessions;
mod state;
mod stored;
mod streams;

pub use config::SessionConfig;
pub use sessions::{HandedOver, Sessions, SessionsStatus};
