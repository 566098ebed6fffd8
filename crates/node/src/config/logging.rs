//! `[logging]`: what is logged to standard error, and how.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shoal_telemetry::logging::{DEFAULT_FILTER, Format, Logging as LogSetup};

/// What is logged to standard error, and how.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, expecting = "a table")]
pub struct Logging {
    /// How a log line looks.
    pub format: LogFormat,
    /// Which events are logged: a level (`error`, `warn`, `info`, `debug`, `trace`), or a
    /// comma-separated list of levels and `module=level`, such as `info,shoal_edge=debug`.
    pub level: String,
}

/// How a log line looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// One line for people, coloured on a terminal.
    Pretty,
    /// One JSON object a line, for collectors.
    Json,
}

impl Default for Logging {
    fn default() -> Self {
        Self {
            format: LogFormat::Pretty,
            level: DEFAULT_FILTER.to_owned(),
        }
    }
}

impl Logging {
    /// What `shoal-telemetry` is set up with.
    pub fn to_setup(&self) -> LogSetup {
        LogSetup {
            format: match self.format {
                LogFormat::Pretty => Format::Pretty,
                LogFormat::Json => Format::Json,
            },
            filter: self.level.clone(),
        }
    }
}
