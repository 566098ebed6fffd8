use std::time::Duration;

use http::{HeaderName, HeaderValue, Uri};

use shoal_ports::Period;

use super::{Telemetry, Traces};

/// An invalid value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{setting}: {problem}")]
pub struct Invalid {
    /// The setting's path below `telemetry`, such as `traces.ratio`.
    pub setting: &'static str,
    /// The problem, and what would be valid.
    pub problem: String,
}

/// Maximum of `telemetry.timeout`, the time of an export.
const LONGEST_TIMEOUT: Duration = Duration::from_secs(300);

fn invalid(setting: &'static str, problem: impl Into<String>) -> Invalid {
    Invalid {
        setting,
        problem: problem.into(),
    }
}

impl Telemetry {
    /// Checks all values and their combination.
    ///
    /// # Errors
    ///
    /// The first invalid value.
    pub fn check(&self) -> Result<(), Invalid> {
        if !self.enabled {
            return Ok(());
        }
        if self.service_name.trim().is_empty() {
            return Err(invalid("service_name", "is empty: give the service a name"));
        }
        let unfit = |key: &&String| key.is_empty() || key.chars().any(char::is_whitespace);
        if let Some(key) = self.resource.keys().find(unfit) {
            return Err(invalid(
                "resource",
                format!("{key:?} is not an attribute key: use a dotted name without spaces"),
            ));
        }
        if let Some(endpoint) = &self.endpoint {
            self.check_collector(endpoint)?;
        } else {
            let wants_one = [
                ("metrics.otlp", self.metrics.otlp),
                ("logs.otlp", self.logs.otlp),
            ];
            if let Some((setting, _)) = wants_one.into_iter().find(|(_, on)| *on) {
                return Err(invalid(
                    setting,
                    "needs a collector: set telemetry.endpoint, or switch this off",
                ));
            }
        }
        self.traces.check()?;
        positive("metrics.interval", self.metrics.interval)?;
        if self.metrics.series == 0 || self.metrics.series > 1_000_000 {
            return Err(invalid(
                "metrics.series",
                format!("is {}: use 1 to 1000000", self.metrics.series),
            ));
        }
        if self.logs.repeats > 0 {
            positive("logs.repeats_per", self.logs.repeats_per)?;
        }
        Ok(())
    }
}

fn positive(setting: &'static str, value: Period) -> Result<(), Invalid> {
    if value.get().is_zero() {
        return Err(invalid(setting, "is 0: use a time above 0"));
    }
    Ok(())
}

impl Telemetry {
    fn check_collector(&self, endpoint: &str) -> Result<(), Invalid> {
        let wrong = |why: &str| {
            invalid(
                "endpoint",
                format!(
                    "{endpoint:?} {why}: use an address such as http://127.0.0.1:4317 or https://collector:4317"
                ),
            )
        };
        let uri: Uri = endpoint.parse().map_err(|_| wrong("is not an address"))?;
        if !matches!(uri.scheme_str(), Some("http" | "https")) {
            return Err(wrong("does not begin with http:// or https://"));
        }
        if uri.host().is_none_or(str::is_empty) {
            return Err(wrong("has no host"));
        }
        if uri.authority().is_some_and(|it| it.as_str().contains('@')) {
            return Err(invalid(
                "endpoint",
                "carries a user name or a password: use telemetry.headers for those",
            ));
        }
        if uri.query().is_some() {
            return Err(wrong("has a query"));
        }
        for (name, value) in &self.headers {
            let known = name.parse::<HeaderName>();
            if known.is_err() || name.chars().any(|c| c.is_ascii_uppercase()) {
                return Err(invalid(
                    "headers",
                    format!(
                        "{name:?} is not a header name: use lower-case letters, digits and dashes"
                    ),
                ));
            }
            if name.ends_with("-bin") || !value.expose().is_ascii() {
                return Err(invalid(
                    "headers",
                    format!(
                        "the value of {name:?} is not plain text, which OTLP headers have to be"
                    ),
                ));
            }
            if HeaderValue::from_str(value.expose()).is_err() {
                return Err(invalid(
                    "headers",
                    format!("the value of {name:?} has a control character such as a line break"),
                ));
            }
        }
        positive("timeout", self.timeout)?;
        if self.timeout.get() > LONGEST_TIMEOUT {
            return Err(invalid(
                "timeout",
                format!(
                    "is above {LONGEST_TIMEOUT:?}: an export that takes so long will not succeed"
                ),
            ));
        }
        Ok(())
    }
}

impl Traces {
    fn check(&self) -> Result<(), Invalid> {
        let single = self.tools.iter().map(|it| {
            let of = format!("of {:?} ", it.tool);
            ("traces.tools", of, it.ratio)
        });
        for (setting, of, ratio) in
            std::iter::once(("traces.ratio", String::new(), self.ratio)).chain(single)
        {
            if !(0.0..=1.0).contains(&ratio) {
                return Err(invalid(
                    setting,
                    format!("the share {of}is {ratio}: use a number from 0 (none) to 1 (all)"),
                ));
            }
        }
        if self.tools.iter().any(|it| it.tool.is_empty()) {
            return Err(invalid(
                "traces.tools",
                "a pattern is empty: use a tool's name, or * for any",
            ));
        }
        if self.queue == 0 {
            return Err(invalid("traces.queue", "is 0: use at least 1 span"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
