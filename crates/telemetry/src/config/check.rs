//! Says what is wrong with a configuration, before anything is started with it.

use std::collections::HashSet;
use std::time::Duration;

use http::{HeaderName, HeaderValue, Uri};

use super::{Otlp, Sampling, Telemetry};

/// A value that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{setting}: {problem}")]
pub struct Invalid {
    /// Which one, by its path below `telemetry`, such as `otlp.endpoint`.
    pub setting: &'static str,
    /// What is wrong, and what would be right.
    pub problem: String,
}

/// What one export may take at most: beyond it, shutting down would wait for it as well.
const LONGEST_TIMEOUT: Duration = Duration::from_secs(300);

fn invalid(setting: &'static str, problem: impl Into<String>) -> Invalid {
    Invalid {
        setting,
        problem: problem.into(),
    }
}

impl Telemetry {
    /// Checks every value, and that they go together.
    ///
    /// # Errors
    /// The first that cannot be used.
    pub fn check(&self) -> Result<(), Invalid> {
        if self.service_name.trim().is_empty() {
            return Err(invalid("service_name", "is empty: give the service a name"));
        }
        let mut seen = HashSet::new();
        for (key, _) in &self.resource {
            if key.is_empty() || key.chars().any(char::is_whitespace) {
                return Err(invalid(
                    "resource",
                    format!("{key:?} is no attribute key: use a dotted name without spaces"),
                ));
            }
            if !seen.insert(key) {
                return Err(invalid("resource", format!("{key:?} is there twice")));
            }
        }
        if let Some(otlp) = &self.otlp {
            otlp.check()?;
        }
        let wants_otlp = [
            ("traces.enabled", self.traces.enabled),
            ("metrics.otlp", self.metrics.otlp),
            ("logs.otlp", self.logs.otlp),
        ];
        if let Some((setting, _)) = wants_otlp
            .into_iter()
            .find(|(_, on)| *on && self.otlp.is_none())
        {
            return Err(invalid(
                setting,
                "needs a collector: set otlp.endpoint, or switch this off",
            ));
        }
        self.traces.sampling.check()?;
        let traces = &self.traces;
        if traces.queue == 0 {
            return Err(invalid("traces.queue", "is 0: at least 1 span has to wait"));
        }
        if traces.batch == 0 || traces.batch > traces.queue {
            return Err(invalid(
                "traces.batch",
                format!("is {}: use 1 to the queue's {}", traces.batch, traces.queue),
            ));
        }
        positive("traces.delay", traces.delay)?;
        positive("metrics.interval", self.metrics.interval)?;
        if self.metrics.series == 0 || self.metrics.series > 1_000_000 {
            return Err(invalid(
                "metrics.series",
                format!("is {}: use 1 to 1000000", self.metrics.series),
            ));
        }
        if self.logs.queue == 0 {
            return Err(invalid("logs.queue", "is 0: at least 1 line has to wait"));
        }
        if let Some(repeats) = self.logs.repeats {
            if repeats.limit == 0 {
                return Err(invalid(
                    "logs.repeats.limit",
                    "is 0, which would log nothing: use 1 or more, or switch the limit off",
                ));
            }
            positive("logs.repeats.interval", repeats.interval)?;
        }
        Ok(())
    }
}

fn positive(setting: &'static str, value: Duration) -> Result<(), Invalid> {
    if value.is_zero() {
        return Err(invalid(setting, "is 0: use a time above 0"));
    }
    Ok(())
}

impl Otlp {
    fn check(&self) -> Result<(), Invalid> {
        let endpoint = &self.endpoint;
        let wrong = |why: &str| {
            invalid(
                "otlp.endpoint",
                format!(
                    "{endpoint:?} {why}: use an address such as http://127.0.0.1:4317 or https://collector:4317"
                ),
            )
        };
        let uri: Uri = endpoint.parse().map_err(|_| wrong("is no address"))?;
        if !matches!(uri.scheme_str(), Some("http" | "https")) {
            return Err(wrong("does not begin with http:// or https://"));
        }
        if uri.host().is_none_or(str::is_empty) {
            return Err(wrong("has no host"));
        }
        if uri.authority().is_some_and(|it| it.as_str().contains('@')) {
            return Err(invalid(
                "otlp.endpoint",
                "carries a user name or a password: use otlp.headers for those",
            ));
        }
        if uri.query().is_some() {
            return Err(wrong("has a query"));
        }
        for (name, value) in &self.headers {
            let known = name.parse::<HeaderName>();
            if known.is_err() || name.chars().any(|c| c.is_ascii_uppercase()) {
                return Err(invalid(
                    "otlp.headers",
                    format!(
                        "{name:?} is no header name: use lower-case letters, digits and dashes"
                    ),
                ));
            }
            if name.ends_with("-bin") || !value.expose().is_ascii() {
                return Err(invalid(
                    "otlp.headers",
                    format!(
                        "the value of {name:?} is not plain text, which OTLP headers have to be"
                    ),
                ));
            }
            if HeaderValue::from_str(value.expose()).is_err() {
                return Err(invalid(
                    "otlp.headers",
                    format!("the value of {name:?} has a control character such as a line break"),
                ));
            }
        }
        positive("otlp.timeout", self.timeout)?;
        if self.timeout > LONGEST_TIMEOUT {
            return Err(invalid(
                "otlp.timeout",
                format!(
                    "is above {LONGEST_TIMEOUT:?}: an export that takes so long will not succeed"
                ),
            ));
        }
        Ok(())
    }
}

impl Sampling {
    fn check(&self) -> Result<(), Invalid> {
        let shares = std::iter::once(("traces.sampling.ratio", "", self.ratio)).chain(
            self.tools
                .iter()
                .map(|(name, ratio)| ("traces.sampling.tools", name.as_str(), *ratio)),
        );
        for (setting, name, ratio) in shares {
            if !(0.0..=1.0).contains(&ratio) {
                let of = if name.is_empty() {
                    String::new()
                } else {
                    format!("of {name:?} ")
                };
                return Err(invalid(
                    setting,
                    format!("the share {of}is {ratio}: use 0 (none) to 1 (all)"),
                ));
            }
        }
        if self.tools.iter().any(|(name, _)| name.is_empty()) {
            return Err(invalid(
                "traces.sampling.tools",
                "a pattern is empty: use a tool's name, or * for any",
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
