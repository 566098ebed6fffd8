//! Structured logs on standard error, because standard output carries the protocol in `shoal stdio`. Only [`flush`]
//! waits until lines are written.
//!
//! Lines inside a recorded span ([`InSpan`](crate::trace::InSpan)) carry `trace_id` and `span_id`.

use std::io::IsTerminal as _;
use std::sync::Arc;

use opentelemetry_sdk::logs::SdkLoggerProvider;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use shoal_ports::settings;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer as _, Registry};

mod bridge;
mod ids;
mod repeats;
mod stderr;

use bridge::LogBridge;
use ids::WithIds;
use repeats::Gate;
pub(crate) use repeats::Repeats;
pub use stderr::{flush, tell};

/// The default filter, without rmcp's requests and ractor's spans.
pub const DEFAULT_FILTER: &str = "info,rmcp=warn,ractor=warn";

/// Format of a log line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "LogFormat")]
pub enum Format {
    /// For people, with colours on terminals.
    #[default]
    Pretty,
    /// One JSON object per line.
    Json,
}

settings! {
    /// Log on standard error.
    #[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
    #[serde(default, deny_unknown_fields, expecting = "a table")]
    pub struct Logging {
        /// Format of lines.
        pub format: Format = Format::default(),
        /// Least severe level to log (`error`, `warn`, `info`, `debug`, `trace`), or a list such as
        /// `info,shoal_edge=debug`.
        pub level: String = DEFAULT_FILTER.to_owned(),
    }
}

impl Logging {
    /// Whether a person reads the log at a terminal.
    pub fn is_read_at_a_terminal(&self) -> bool {
        self.format == Format::Pretty && std::io::stderr().is_terminal()
    }
}

/// Follows <https://no-color.org>.
fn colours_are_wanted() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|set| set.is_empty())
}

/// Why logging could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The filter is invalid.
    #[error(
        "the log filter {filter:?} cannot be read at {part:?}: use a level (error, warn, info, debug, \
         trace, off), or several parts such as \"info,shoal_edge=debug\""
    )]
    Filter {
        /// The filter.
        filter: String,
        /// The part that is neither a level nor `target=level`.
        part: String,
    },
    /// Standard error is not available.
    #[error("cannot log to standard error: {0}")]
    Output(std::io::Error),
    /// Logging was set up before.
    #[error("logging is set up already")]
    Twice,
}

/// Checks a filter.
///
/// # Errors
///
/// [`Error::Filter`].
pub fn check(filter: &str) -> Result<(), Error> {
    parse(filter).map(|_| ())
}

/// Starts logging to standard error. [`crate::init`] includes this.
///
/// # Errors
///
/// [`Error::Filter`], or [`Error::Twice`] if the process already logs.
pub fn init(logging: &Logging) -> Result<(), Error> {
    install(logging, None, None)
}

pub(crate) fn install(
    logging: &Logging,
    loggers: Option<&SdkLoggerProvider>,
    repeats: Option<Arc<Repeats>>,
) -> Result<(), Error> {
    let lines = fmt::layer().with_writer(stderr::Stderr::start().map_err(Error::Output)?);
    let lines = match logging.format {
        Format::Pretty => {
            let is_coloured = logging.is_read_at_a_terminal() && colours_are_wanted();
            lines
                .with_ansi(is_coloured)
                .map_event_format(|it| WithIds::new(it.with_ansi(is_coloured), logging.format))
                .boxed()
        }
        Format::Json => lines
            .json()
            .flatten_event(true)
            .map_event_format(|it| WithIds::new(it, logging.format))
            .boxed(),
    };
    Registry::default()
        .with(lines)
        .with(loggers.map(LogBridge::new))
        .with(repeats.map(Gate))
        .with(parse(&logging.level)?)
        .try_init()
        .map_err(|_| Error::Twice)
}

fn parse(filter: &str) -> Result<EnvFilter, Error> {
    let error = |part: &str| Error::Filter {
        filter: filter.to_owned(),
        part: part.to_owned(),
    };
    // Silences the SDK's own lines, because `export` logs failures of exports once a minute.
    let silence = "opentelemetry=off".parse().expect("a good directive");
    // `EnvFilter` takes an unknown level, such as "verbose", for a target. The filter would then silence all other
    // targets.
    let lost = filter
        .split(',')
        .map(str::trim)
        .filter(|part| !part.is_empty() && !part.contains(['=', '[']))
        .find(|word| word.parse::<LevelFilter>().is_err());
    match lost {
        Some(word) => Err(error(word)),
        None => EnvFilter::builder()
            .parse(filter)
            .map(|filter| filter.add_directive(silence))
            .map_err(|_| error(filter)),
    }
}

#[cfg(test)]
mod tests {
    use super::{DEFAULT_FILTER, check};

    #[test]
    fn filters_are_checked() {
        for filter in [DEFAULT_FILTER, "debug", "warn,shoal_edge::sse=trace", "OFF"] {
            assert!(check(filter).is_ok(), "{filter}");
        }
        for (filter, part) in [
            ("verbose", "verbose"),
            ("info,a=b=c", "a=b=c"),
            ("info, x", "x"),
        ] {
            let error = check(filter).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
    }
}
