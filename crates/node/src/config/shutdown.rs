//! `[shutdown]`: how long each step of an orderly end may take.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shoal_ports::settings;

use super::Period;

settings! {
    /// How long each step of an orderly end may take. Their sum must stay below the time that the
    /// supervisor gives (`terminationGracePeriodSeconds`, 30 s by default in Kubernetes). A second signal
    /// ends the process at once.
    #[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
    #[serde(default, deny_unknown_fields, expecting = "a table")]
    pub struct Shutdown {
        /// How long to go on serving while `/readyz` already fails, so that every load balancer notices.
        pub balancer_delay: Period = Period::ZERO,
        /// How long the open streams may take to tell their clients when to come back.
        pub streams: Period = Period::seconds(2),
        /// How long idle connections are kept, if processes share sessions. A client that uses one is told to come
        /// back on another. Set it longer than clients keep idle connections (the HTTP clients of the SDKs: 4 s and 5
        /// s). Otherwise some are closed under a request.
        pub connections: Period = Period::seconds(6),
        /// How long running calls may take to finish.
        pub calls: Period = Period::seconds(15),
        /// How long the sessions may take to be written down and let go.
        pub sessions: Period = Period::seconds(4),
        /// How long workers may take to end what they run (a stdio server's process, for instance).
        pub workers: Period = Period::seconds(5),
        /// How long what waits for the telemetry collector may take to be sent, last of all.
        pub telemetry: Period = Period::seconds(2),
        /// How often the log names who is still busy.
        pub report_every: Period = Period::seconds(2),
    }
}
