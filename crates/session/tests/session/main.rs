//! Sessions over a scripted dispatcher.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a failed step is the report"
)]

mod actors;
mod away;
mod bursts;
mod calls;
mod dropped;
mod evidence;
mod hold;
mod inspect;
mod keeping;
mod legacy_tasks;
mod lifecycle;
mod lists;
mod lost_writes;
mod ownership;
mod planning;
mod returning;
mod starting;
mod stored;
mod support;
mod tasks;
mod trimmed;
