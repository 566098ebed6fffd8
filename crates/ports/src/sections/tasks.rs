use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Period, settings};

settings! {
    /// Tasks of modern clients: the extension `io.modelcontextprotocol/tasks`.
    #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(default, deny_unknown_fields, expecting = "a table")]
    #[schemars(rename = "Tasks")]
    pub struct TaskSettings {
        /// Offers tasks. If false, a modern call ends when its client disconnects.
        pub enabled: bool = true,
        /// How long a call runs before it becomes a task.
        pub after: Period = Period::millis(500),
        /// Minimum time to keep a task after its call, and after each request for it.
        pub ttl: Period = Period::seconds(60 * 60),
        /// How often clients should poll a task.
        pub poll_interval: Period = Period::seconds(1),
        /// Maximum bytes of a task's result. A larger result fails the task with 50300, although the call has run.
        pub result_bytes: usize = 4 * 1024 * 1024,
    }
}
