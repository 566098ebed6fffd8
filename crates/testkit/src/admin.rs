//! A client for the admin port of a process.

mod held;

use std::time::Duration;

use anyhow::{Context as _, bail};
use serde_json::Value;
use tokio::time::{Instant, sleep};

const PATIENCE: Duration = Duration::from_secs(2);

const EVERY: Duration = Duration::from_millis(20);

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
        let asked = self.http.get(format!("{}/readyz", self.base)).send().await;
        asked.is_ok_and(|answer| answer.status() == http::StatusCode::OK)
    }

    /// Polls `/readyz` until it answers 200.
    ///
    /// # Errors
    ///
    /// The body of `/readyz`, if the process is not ready in time.
    pub async fn wait_until_ready(&self, within: Duration) -> anyhow::Result<()> {
        let deadline = Instant::now() + within;
        while !self.is_ready().await {
            if Instant::now() > deadline {
                bail!("not ready: {}", self.text("readyz").await);
            }
            sleep(EVERY).await;
        }
        Ok(())
    }

    /// Returns `/status`.
    pub async fn status(&self) -> anyhow::Result<Value> {
        let answer = self
            .http
            .get(format!("{}/status", self.base))
            .send()
            .await?;
        Ok(answer.json().await?)
    }

    /// Returns `/metrics`.
    pub async fn metrics(&self) -> anyhow::Result<String> {
        let asked = self.http.get(format!("{}/metrics", self.base)).send();
        Ok(asked.await?.error_for_status()?.text().await?)
    }

    /// Sums the series of a metric that contain this attribute.
    pub async fn metric(&self, name: &str, attribute: &str) -> anyhow::Result<f64> {
        Ok(sum(&self.metrics().await?, name, attribute))
    }

    async fn text(&self, path: &str) -> String {
        match self.http.get(format!("{}/{path}", self.base)).send().await {
            Ok(answer) => answer.text().await.unwrap_or_default(),
            Err(error) => error.to_string(),
        }
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
