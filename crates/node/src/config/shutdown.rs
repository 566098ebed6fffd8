use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shoal_ports::settings;

use super::Period;

settings! {
    /// Time limits of the steps of a shutdown.
    #[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
    #[serde(default, deny_unknown_fields, expecting = "a table")]
    pub struct Shutdown {
        /// How long Shoal still serves after `/readyz` fails, so that load balancers notice.
        pub balancer_delay: Period = Period::ZERO,
        /// Time to tell clients with open streams when to reconnect.
        pub streams: Period = Period::seconds(2),
        /// How long idle connections stay open, if processes share sessions. Set it above your clients' idle timeout,
        /// or requests are lost.
        pub connections: Period = Period::seconds(6),
        /// How long running calls may continue.
        pub calls: Period = Period::seconds(15),
        /// Time to store and release sessions.
        pub sessions: Period = Period::seconds(4),
        /// Time for workers and their servers to end.
        pub workers: Period = Period::seconds(5),
        /// Time for the last export of telemetry.
        pub telemetry: Period = Period::seconds(2),
        /// How often the log lists the remaining work.
        pub report_every: Period = Period::seconds(2),
    }
}
