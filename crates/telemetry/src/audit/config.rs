use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shoal_ports::settings;

settings! {
    /// The [audit trail](audit.md).
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
    #[serde(default, deny_unknown_fields, expecting = "a table")]
    pub struct Audit {
        /// File for events, one JSON object per line.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub file: Option<PathBuf> = None,
        /// Sends events to `telemetry.endpoint` as log records. Needs `telemetry.logs.otlp = true`.
        pub otlp: bool = false,
        /// Recorded kinds of events.
        pub events: Vec<Kind> = Kind::ALL.to_vec(),
        /// Tools whose arguments Shoal records.
        pub arguments: Vec<String> = Vec::new(),
        /// Shoal leaves out the values of argument members whose names contain one of these words, at any depth, in
        /// upper or lower case.
        pub redact: Vec<String> = ["authorization", "credential", "key", "passw", "secret", "token"]
            .map(str::to_owned)
            .to_vec(),
        /// Maximum bytes of recorded arguments. Shoal cuts longer arguments.
        pub argument_bytes: usize = 4096,
        /// Maximum bytes of events that wait for the file. Shoal drops and counts further events.
        pub queue_bytes: usize = 4 << 20,
    }
}

/// Kind of event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "AuditEvent")]
pub enum Kind {
    /// Shoal authenticated or refused a caller.
    Authentication,
    /// The policy rules decided on a request.
    Policy,
    /// Shoal asked a user to approve a call of a tool.
    Approval,
    /// A quota refused a request.
    Quota,
    /// A call ended.
    Call,
    /// An operator acted on the admin port.
    Admin,
}

impl Kind {
    /// All kinds.
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
