//! Limits of the cluster that a few connections reach.

use anyhow::Context as _;
use http::HeaderValue;

use crate::mcp::{bearer, token_entry};
use crate::servers::spawned::Environment;

/// A principal's share is at most half of a node's limit.
const SETTINGS: &[(&str, &str)] = &[
    ("SHOAL_SERVER__WEBSOCKET", "true"),
    ("SHOAL_LIMITS__CONNECTIONS", "1024"),
    ("SHOAL_LIMITS__REQUESTS", "256"),
    ("SHOAL_LIMITS__REQUESTS_PER_PRINCIPAL", "40"),
    ("SHOAL_LIMITS__BODIES_IN_FLIGHT_BYTES", "33554432"),
    (
        "SHOAL_LIMITS__BODIES_IN_FLIGHT_BYTES_PER_PRINCIPAL",
        "8388608",
    ),
    ("SHOAL_LIMITS__ANSWERS_WAITING_BYTES", "33554432"),
    (
        "SHOAL_LIMITS__ANSWERS_WAITING_BYTES_PER_PRINCIPAL",
        "8388608",
    ),
    ("SHOAL_LIMITS__STREAMS", "128"),
    ("SHOAL_LIMITS__STREAMS_PER_PRINCIPAL", "32"),
    ("SHOAL_LIMITS__SESSIONS_PER_NODE", "1000"),
    ("SHOAL_LIMITS__SESSIONS_PER_PRINCIPAL", "200"),
    ("SHOAL_LIMITS__STORED_BYTES", "67108864"),
    ("SHOAL_LIMITS__STORED_BYTES_PER_PRINCIPAL", "8388608"),
    ("SHOAL_LIMITS__SUBSCRIPTIONS_PER_SESSION", "100"),
    ("SHOAL_CALLS__WAITING", "400"),
    ("SHOAL_CALLS__WAITING_PER_PRINCIPAL", "50"),
    ("SHOAL_POOLS__DEMO__BACKEND", "demo"),
    ("SHOAL_POOLS__DEMO__CONCURRENCY", "32"),
    ("SHOAL_POOLS__DEMO__CONCURRENCY_PER_PRINCIPAL", "16"),
    ("SHOAL_POOLS__DEMO__QUEUE", "16"),
    ("SHOAL_POOLS__DEMO__ASKING", "64"),
    ("SHOAL_POOLS__DEMO__ASKING_PER_PRINCIPAL", "16"),
];

pub(super) struct Tokens {
    good: String,
    hostile: String,
}

impl Tokens {
    pub(super) fn draw() -> Self {
        let [good, hostile] = [(); 2].map(|()| format!("{:032x}", rand::random::<u128>()));
        Self { good, hostile }
    }

    pub(super) fn good(&self) -> HeaderValue {
        bearer(&self.good)
    }

    pub(super) fn hostile(&self) -> HeaderValue {
        bearer(&self.hostile)
    }

    /// Each entry of `changed` (`SETTING=VALUE`) replaces a setting.
    pub(super) fn environment(&self, changed: &[String]) -> anyhow::Result<Environment> {
        let settings = SETTINGS.iter();
        let mut all: Environment = settings
            .map(|&(name, value)| (name, value.to_owned()))
            .collect();
        let entries = [
            token_entry("good", &self.good),
            token_entry("hostile", &self.hostile),
        ];
        all.push(("SHOAL_AUTH__MODE", "tokens".to_owned()));
        all.push(("SHOAL_AUTH__TOKENS", format!("[{}]", entries.join(","))));
        for setting in changed {
            let (name, value) = setting
                .split_once('=')
                .with_context(|| format!("{setting} is not SETTING=VALUE"))?;
            let name = format!("SHOAL_{}", name.to_uppercase().replace('.', "__"));
            // The last value wins. The program needs the names to its end.
            all.push((name.leak(), value.to_owned()));
        }
        Ok(all)
    }
}
