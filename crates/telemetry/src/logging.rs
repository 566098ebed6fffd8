//! Sets up structured logs on standard error.
//!
//! Standard output is never written to: in `shoal stdio` it carries the protocol.

use std::io::IsTerminal as _;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt;

/// What is logged when nobody says otherwise: rmcp reports every request at `info`.
pub const DEFAULT_FILTER: &str = "info,rmcp=warn";

/// How a log line looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Format {
    /// One line for people, coloured on a terminal.
    #[default]
    Pretty,
    /// One JSON object a line, for collectors.
    Json,
}

/// What to log, and how.
#[derive(Clone, Debug)]
pub struct Logging {
    /// How a line looks.
    pub format: Format,
    /// Which events: comma-separated `level` or `target=level`, in the syntax of `tracing-subscriber`.
    pub filter: String,
}

impl Default for Logging {
    fn default() -> Self {
        Self {
            format: Format::default(),
            filter: DEFAULT_FILTER.to_owned(),
        }
    }
}

/// Why logging could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The filter cannot be read.
    #[error(
        "the log filter {filter:?} cannot be read at {part:?}: use a level (error, warn, info, debug, \
         trace, off), or several parts such as \"info,shoal_edge=debug\""
    )]
    Filter {
        /// The filter.
        filter: String,
        /// The part that is no level and no `target=level`.
        part: String,
    },
    /// Somebody was first.
    #[error("logging is set up already")]
    Twice,
}

/// Checks a filter without using it.
///
/// # Errors
/// [`Error::Filter`].
pub fn check(filter: &str) -> Result<(), Error> {
    parse(filter).map(|_| ())
}

/// Logs to standard error from now on, for the whole process.
///
/// # Errors
/// [`Error::Filter`], or [`Error::Twice`] when the process logs already.
pub fn init(logging: &Logging) -> Result<(), Error> {
    let filter = parse(&logging.filter)?;
    let lines = fmt().with_env_filter(filter).with_writer(std::io::stderr);
    let done = match logging.format {
        Format::Pretty => lines.with_ansi(std::io::stderr().is_terminal()).try_init(),
        Format::Json => lines.json().flatten_event(true).try_init(),
    };
    done.map_err(|_| Error::Twice)
}

fn parse(filter: &str) -> Result<EnvFilter, Error> {
    let error = |part: &str| Error::Filter {
        filter: filter.to_owned(),
        part: part.to_owned(),
    };
    // To `EnvFilter` a word alone that is no level is a target at `trace`: "verbose" would be silence.
    let lost = filter
        .split(',')
        .map(str::trim)
        .filter(|part| !part.is_empty() && !part.contains(['=', '[']))
        .find(|word| word.parse::<LevelFilter>().is_err());
    match lost {
        Some(word) => Err(error(word)),
        None => EnvFilter::builder()
            .parse(filter)
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
