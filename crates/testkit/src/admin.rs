//! A client for the admin port of a process.

mod held;

use std::time::Duration;

use anyhow::{Context as _, bail};
use http::StatusCode;
use serde_json::Value;

use crate::wait::until;

const PATIENCE: Duration = Duration::from_secs(2);

/// A process's admin port.
#[derive(Clone, Debug)]
pub struct Admin {
    base: String,
    http: reqwest::Client,
}

impl Admin {
    /// Creates a client for the port at this base URL.
    pub fn at(base: &str) -> anyhow::Result<Self> {
        let http = crate::http::client()
            .timeout(PATIENCE)
            .build()
            .context("cannot build an HTTP client")?;
        Ok(Self {
            base: base.trim_end_matches('/').to_owned(),
            http,
        })
    }

    /// Returns `host:port`.
    #[must_use]
    pub fn address(&self) -> &str {
        self.base.trim_start_matches("http://")
    }

    /// Whether `/readyz` answers 200.
    pub async fn is_ready(&self) -> bool {
        let asked = self.get("readyz").await;
        asked.is_ok_and(|answer| answer.status() == StatusCode::OK)
    }

    /// Polls `/readyz` until it answers 200.
    ///
    /// # Errors
    ///
    /// The body of `/readyz`, if the process is not ready in time.
    pub async fn wait_until_ready(&self, within: Duration) -> anyhow::Result<()> {
        until(within, async || {
            let answer = self.get("readyz").await?;
            if answer.status() != StatusCode::OK {
                bail!("not ready: {}", answer.text().await?);
            }
            Ok(())
        })
        .await
    }

    /// Returns `/status`.
    pub async fn status(&self) -> anyhow::Result<Value> {
        Ok(self.get("status").await?.json().await?)
    }

    /// Returns `/metrics`.
    pub async fn metrics(&self) -> anyhow::Result<String> {
        let answer = self.get("metrics").await?;
        Ok(answer.error_for_status()?.text().await?)
    }

    /// Sums the series of a metric that contain this attribute.
    pub async fn metric(&self, name: &str, attribute: &str) -> anyhow::Result<f64> {
        Ok(sum(&self.metrics().await?, name, attribute))
    }

    async fn get(&self, path: &str) -> reqwest::Result<reqwest::Response> {
        self.http.get(format!("{}/{path}", self.base)).send().await
    }
}

/// Sums the series of a metric in the text of `/metrics` that contain this attribute.
#[must_use]
pub fn sum(metrics: &str, name: &str, attribute: &str) -> f64 {
    let values = metrics.lines().filter_map(|line| {
        let rest = line.strip_prefix(name)?;
        let (labels, value) = rest.rsplit_once(' ')?;
        let is_it = (labels.is_empty() || labels.starts_with('{')) && labels.contains(attribute);
        is_it.then(|| value.parse::<f64>().ok())?
    });
    values.sum()
}

#[cfg(test)]
mod tests {
    use super::sum;

    #[test]
    fn series_are_added_up_by_name_and_attribute() {
        let text = "# TYPE a gauge\na{k=\"x\"} 1\na{k=\"y\"} 2\na_count{k=\"x\"} 4\nb 8\n";
        assert_eq!(sum(text, "a", ""), 3.0);
        assert_eq!(sum(text, "a", "k=\"y\""), 2.0);
        assert_eq!((sum(text, "b", ""), sum(text, "c", "")), (8.0, 0.0));
    }
}
