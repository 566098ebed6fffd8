//! `[[quotas]]`: limits on requests.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::gcra::LONGEST_FILL;
use super::{CellRate, Rate};

/// Maximum number of quotas, because every request checks all of them.
const MOST: usize = 32;
const LONGEST_NAME: usize = 64;
const MOST_TOOLS: usize = 256;
const LONGEST_PATTERN: usize = 256;

/// A quota ([more](quotas.md)).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a table with name and per")]
pub struct QuotaConfig {
    /// Name in refusals, logs and metrics: at most 64 characters of a-z, 0-9, - and _.
    pub name: String,
    /// Callers that share the quota.
    pub per: QuotaPer,
    /// Tools whose calls count; if empty, all requests.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<String>,
    /// Allowed requests per time, at all edges together: `"10/s"`, `"600/min"`, `"1000/h"`, `"5000/day"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// Maximum requests at once after a pause; by default the number in `rate`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst: Option<u32>,
    /// Maximum requests in progress at each edge.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrent: Option<usize>,
}

/// The callers that share a quota.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum QuotaPer {
    /// Each principal has its own.
    Principal,
    /// Each address (IPv6: each /64) has its own, counted before authentication.
    Address,
    /// All callers share it.
    All,
}

impl QuotaConfig {
    /// Returns the size and refill interval of each subject's bucket. `None` without a rate.
    pub fn cells(&self) -> Option<CellRate> {
        let rate = self.rate?;
        Some(CellRate::new(rate, self.burst.unwrap_or(rate.count())))
    }

    /// Checks all quotas.
    ///
    /// # Errors
    /// The first fault that was found.
    pub fn check_all(all: &[Self]) -> Result<(), String> {
        if all.len() > MOST {
            return Err(format!("there may be {MOST} quotas at most"));
        }
        for (at, quota) in all.iter().enumerate() {
            let name = &quota.name;
            let wrong = quota.wrong();
            if let Some(wrong) = wrong {
                return Err(format!("the quota {name:?}: {wrong}"));
            }
            if all[..at].iter().any(|other| other.name == *name) {
                return Err(format!("two quotas are called {name:?}"));
            }
        }
        Ok(())
    }

    fn wrong(&self) -> Option<String> {
        let fits = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-_".contains(&b);
        if self.name.is_empty() || self.name.len() > LONGEST_NAME || !self.name.bytes().all(fits) {
            return Some(format!(
                "a name has 1 to {LONGEST_NAME} of a-z, 0-9, - and _"
            ));
        }
        if self.rate.is_none() && self.concurrent.is_none() {
            return Some("say `rate`, `concurrent` or both".to_owned());
        }
        if self.burst.is_some() && self.rate.is_none() {
            return Some("`burst` needs a `rate`".to_owned());
        }
        if self.burst == Some(0) {
            return Some("`burst` must be at least 1".to_owned());
        }
        if self.concurrent == Some(0) {
            return Some("`concurrent` must be at least 1".to_owned());
        }
        if self.per == QuotaPer::Address && !self.tools.is_empty() {
            return Some(
                "addresses are counted before the message is read, so it cannot name `tools`"
                    .to_owned(),
            );
        }
        let long = |pattern: &String| pattern.is_empty() || pattern.len() > LONGEST_PATTERN;
        if self.tools.len() > MOST_TOOLS || self.tools.iter().any(long) {
            return Some(format!(
                "`tools` holds up to {MOST_TOOLS} patterns of 1 to {LONGEST_PATTERN} bytes"
            ));
        }
        let fill = self.cells().map_or(0, CellRate::fill);
        (u128::from(fill) > LONGEST_FILL.as_nanos()).then(|| {
            "the whole `burst` would take more than 30 days to come back at this `rate`".to_owned()
        })
    }
}
