/// Severities of `notifications/message`, least severe first, with the names of RFC 5424.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum LogLevel {
    /// Detailed debugging information.
    Debug,
    /// Progress of an operation.
    Info,
    /// Normal but significant.
    Notice,
    /// Something may be wrong.
    Warning,
    /// An operation failed.
    Error,
    /// A component failed.
    Critical,
    /// Act at once.
    Alert,
    /// The system is unusable.
    Emergency,
}

impl std::str::FromStr for LogLevel {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        serde_json::from_value(serde_json::Value::String(text.to_owned()))
            .map_err(|_| format!("{text:?} is not a log level: use debug, info, notice, warning, error, critical, alert or emergency"))
    }
}
