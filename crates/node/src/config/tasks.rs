use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shoal_edge::TaskSettings;
use shoal_ports::settings;
use shoal_session::SessionConfig;

use super::Period;

settings! {
    /// Tasks of modern clients: the extension `io.modelcontextprotocol/tasks`.
    #[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
    #[serde(default, deny_unknown_fields, expecting = "a table")]
    pub struct Tasks {
        /// Offers tasks. If false, calls end with the connection of their client.
        pub enabled: bool = TaskSettings::default().enabled,
        /// How long a call runs before it becomes a task.
        pub after: Period = TaskSettings::default().after.into(),
        /// Minimum time to keep a task after its call, and after each request for it.
        pub ttl: Period = SessionConfig::default().task_ttl.into(),
        /// How often clients should poll a task.
        pub poll_interval: Period = SessionConfig::default().task_poll_interval.into(),
        /// Maximum bytes of a task's result. A larger one fails the task with 50300, although the call has run.
        pub result_bytes: usize = SessionConfig::default().task_result_bytes,
    }
}
