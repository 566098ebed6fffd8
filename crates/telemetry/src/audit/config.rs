//! The section `[audit]` of the configuration.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shoal_ports::settings;

settings! {
    /// The audit trail: who was let in, who was allowed what, and what became of each call ([audit](audit.md)). It is off
    /// without `file` and `otlp`.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
    #[serde(default, deny_unknown_fields, expecting = "a table")]
    pub struct Audit {
        /// The file that events are added to, one JSON object a line.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub file: Option<PathBuf> = None,
        /// Whether events go to the collector of `telemetry.endpoint` as OpenTelemetry log records; `telemetry.logs.otlp` must
        /// be on.
        pub otlp: bool = false,
        /// Which kinds of events are recorded.
        pub events: Vec<Kind> = Kind::ALL.to_vec(),
        /// The tools whose arguments are recorded, such as `["read_*"]`. `*` stands for any characters.
        pub arguments: Vec<String> = Vec::new(),
        /// Members of arguments whose values are left out, at any depth: those whose names contain one of these words, in upper
        /// or lower case.
        pub redact: Vec<String> = ["authorization", "credential", "key", "passw", "secret", "token"]
            .map(str::to_owned)
            .to_vec(),
        /// The longest arguments that are recorded, in bytes; of longer ones the beginning is.
        pub argument_bytes: usize = 4096,
        /// How many bytes of events may wait for the file. Events that find no room are dropped and counted.
        pub queue_bytes: usize = 4 << 20,
    }
}

/// What an event tells of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "AuditEvent")]
pub enum Kind {
    /// Somebody was asked who is calling.
    Authentication,
    /// The policy rules were asked about a request.
    Policy,
    /// A person was asked whether a tool may be called.
    Approval,
    /// A request was refused by a quota.
    Quota,
    /// A call has ended.
    Call,
    /// An operator did something at the admin port.
    Admin,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Self; 6] = [
        Self::Authentication,
        Self::Policy,
        Self::Approval,
        Self::Quota,
        Self::Call,
        Self::Admin,
    ];

    /// Returns the event's name by OpenTelemetry's conventions.
    #[must_use]
    pub const fn event_name(self) -> &'static str {
        match self {
            Self::Authentication => "shoal.audit.authentication",
            Self::Policy => "shoal.audit.policy",
            Self::Approval => "shoal.audit.approval",
            Self::Quota => "shoal.audit.quota",
            Self::Call => "shoal.audit.call",
            Self::Admin => "shoal.audit.admin",
        }
    }
}

impl Audit {
    /// Checks the settings.
    ///
    /// # Errors
    ///
    /// The name of the first invalid setting, and the problem.
    pub fn check(&self) -> Result<(), (&'static str, &'static str)> {
        // A line must fit into the queue, with its arguments escaped as JSON in JSON.
        match (self.argument_bytes, self.queue_bytes) {
            (65_537.., _) => Err(("argument_bytes", "must be at most 65536")),
            (_, ..1_048_576) => Err(("queue_bytes", "must be at least 1048576 (1 MiB)")),
            _ => Ok(()),
        }
    }
}
