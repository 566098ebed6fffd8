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
        /// Offers tasks. If false, calls end with the connection of their client.
        pub enabled: bool = TaskSettings::default().enabled,
        /// How long a call runs before it becomes a task.
        pub after: Period = TaskSettings::default().after.into(),
        /// Minimum time to keep a task after its call, and after each request for the task.
        pub ttl: Period = SessionConfig::default().task_ttl.into(),
        /// How often clients should poll a task.
        pub poll_interval: Period = SessionConfig::default().task_poll_interval.into(),
        /// Maximum bytes of a task's result. Beyond it, the task fails with 50300, although the call has run.
        pub result_bytes: usize = SessionConfig::default().task_result_bytes,
    }
}
