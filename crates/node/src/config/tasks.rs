//! `[tasks]`: calls of modern clients that become tasks.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shoal_edge::TaskSettings;
use shoal_ports::settings;
use shoal_session::SessionConfig;

use super::Period;

settings! {
    /// Calls of modern clients (2026-07-28) that become tasks: the extension `io.modelcontextprotocol/tasks`. A task counts as
    /// a session in `limits`: in their number, and in what they store.
    #[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
    #[serde(default, deny_unknown_fields, expecting = "a table")]
    pub struct Tasks {
        /// Whether there are tasks. Without them, a call ends with its client's connection.
        pub enabled: bool = TaskSettings::default().enabled,
        /// How long a tool's call may take before it becomes a task, if its client declares the extension. Before that it is a
        /// plain call, and nothing of it is stored.
        pub after: Period = TaskSettings::default().after.into(),
        /// How long a task is kept at least after its call has ended. Each request about it begins this time anew.
        pub ttl: Period = SessionConfig::default().task_ttl.into(),
        /// How often clients are told to ask for a task.
        pub poll_interval: Period = SessionConfig::default().task_poll_interval.into(),
        /// Bytes of the largest result that a task keeps. A call with a larger one has run, and its task fails with 50300.
        pub result_bytes: usize = SessionConfig::default().task_result_bytes,
    }
}
