//! The promises of a cluster of real processes, with one loss per test.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a failed step is the report"
)]

mod client;
mod clocks;
mod console;
mod discovered;
mod distrust;
mod drain;
mod edge;
mod evidence;
mod forgotten;
mod hang_up;
mod hint;
mod hold;
mod incumbents;
mod learning;
mod legacy_tasks;
mod lists;
mod planning;
mod questions;
mod quotas;
mod redis;
mod resets;
mod scale_to_zero;
mod session;
mod session_state;
mod slow_redis;
mod start;
mod tasks;
mod tls;
mod trace;
mod unnamed_pools;
mod upstream;
mod versions;
mod websocket;
mod worker;

use std::time::Duration;

use shoal_testkit::cluster::{Builder, Cluster, Tools};

const LEASE: Duration = Duration::from_secs(2);

fn small() -> Builder {
    Cluster::builder()
        .edges(2)
        .sessions(2)
        .workers(1)
        .lease(LEASE)
        .tools(Tools::Chaos)
}

/// Builds a cluster in which calls that must not run twice are journaled before they start.
fn journaling() -> Builder {
    small().setting("streams.hold", "0s")
}

async fn start(builder: Builder) -> Cluster {
    builder.start().await.unwrap()
}
