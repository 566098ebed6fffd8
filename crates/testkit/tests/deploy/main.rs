//! The alerts and dashboards of `deploy/` must name existing metrics and show data.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a failed step is the report"
)]

mod catalogue;
mod collector;
mod expression;
mod files;
mod live;
mod operations;
mod prometheus;
mod traffic;
