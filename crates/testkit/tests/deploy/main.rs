//! What `deploy/` brings for operators: alerts and dashboards that name what there is, and show something.
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
