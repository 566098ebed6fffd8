//! The dispatcher over fake workers, one file per behaviour.
#![expect(clippy::unwrap_used, reason = "a failed test is the report")]

mod affinity;
mod approval;
mod balancing;
mod binding;
mod catalog;
mod checks;
mod circuits;
mod configuring;
mod costly_schemas;
mod fake_worker;
mod in_flight;
mod incumbents;
mod learning;
mod legacy_bridge;
mod lingering;
mod lists;
mod mending;
mod modern_bridge;
mod now;
mod parking;
mod parking_elsewhere;
mod planning;
mod policy;
mod repeating;
mod results;
mod resuming;
mod resuming_rounds;
mod retries;
mod rollouts;
mod rules;
mod script;
mod session_state;
mod setting;
mod subscriptions;
mod task_time;
