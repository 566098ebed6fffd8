//! The dispatcher over fake workers, one file per behaviour.
#![expect(clippy::unwrap_used, reason = "a failed test is the report")]

mod balancing;
mod catalog;
mod checks;
mod fake_worker;
mod legacy_bridge;
mod lists;
mod modern_bridge;
mod parking;
mod results;
mod retries;
mod setting;
mod subscriptions;
