//! One Shoal process of a cluster.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::Context;
use serde_json::Value;

use crate::process;
use crate::servers::get::get;
use crate::servers::spawned::{ADMIN, announced, start};

/// What Shoal prints before the URL of its endpoint.
const SERVING: &str = "shoal: serving MCP on ";
/// What Shoal prints before the address at which other processes reach it.
const CLUSTER: &str = "shoal: cluster on ";

/// What a process does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// Serves clients.
    Edge,
    /// Holds legacy sessions.
    Session,
    /// Does both.
    Combined,
    /// Runs tools.
    Worker,
}

impl Role {
    /// As on Shoal's command line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Edge => "edge",
            Self::Session => "session",
            Self::Combined => "edge,session",
            Self::Worker => "worker",
        }
    }
}

/// A process that ends with the value.
pub(crate) struct Member {
    /// `edge 1`.
    pub(crate) name: String,
    /// What it does.
    pub(crate) role: Role,
    /// The endpoint, where it is an edge; else empty.
    pub(crate) url: String,
    /// Host and port for operators.
    pub(crate) admin: String,
    /// Where others join it; empty for a worker.
    pub(super) joined_at: String,
    child: Child,
}

impl Member {
    /// Starts `command` and reads where it is reached. What it logs goes to a file in `logs`, if there is one.
    ///
    /// # Errors
    ///
    /// Where it ends before it served.
    pub(super) fn start(
        role: Role,
        number: usize,
        mut command: Command,
        core: Option<usize>,
        logs: Option<&Path>,
    ) -> anyhow::Result<Self> {
        let what = command
            .get_args()
            .map(OsStr::to_string_lossy)
            .collect::<Vec<_>>()
            .join(" ");
        let log = match logs {
            Some(directory) => {
                let path = directory.join(format!("{}-{number}.log", role.name()));
                let file = std::fs::File::create(&path);
                Stdio::from(file.with_context(|| format!("could not write {}", path.display()))?)
            }
            None => Stdio::null(),
        };
        command.stdout(Stdio::piped()).stderr(log);
        let mut member = Self {
            name: format!("{} {number}", role.name()),
            role,
            url: String::new(),
            admin: String::new(),
            joined_at: String::new(),
            child: start(command, core)?,
        };
        let said = announced(&mut member.child, ADMIN)
            .with_context(|| format!("{what} ended before it served"))?;
        let after = |prefix: &str| {
            let line = said.iter().find_map(|line| line.strip_prefix(prefix));
            line.unwrap_or_default().to_owned()
        };
        (member.url, member.joined_at, member.admin) =
            (after(SERVING), after(CLUSTER), after(ADMIN));
        Ok(member)
    }

    /// The process id.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Resident memory now, in KiB.
    ///
    /// # Errors
    ///
    /// Where it has ended.
    pub(crate) fn rss_kib(&self) -> anyhow::Result<u64> {
        Ok(process::measure(&[self.pid()])?.rss_kib)
    }

    /// What it says of itself (`/status`). Blocks.
    ///
    /// # Errors
    ///
    /// Where it does not answer.
    pub(crate) fn status(&self) -> anyhow::Result<Value> {
        let text = get(&self.admin, "/status")?;
        serde_json::from_str(&text).with_context(|| format!("{} gives no JSON", self.name))
    }

    /// The sum of a metric's series whose labels contain all of `labels`, as Prometheus sees it; 0 where there is
    /// none. Blocks.
    ///
    /// # Errors
    ///
    /// Where it does not answer.
    pub(crate) fn metric(&self, name: &str, labels: &[&str]) -> anyhow::Result<f64> {
        Ok(sum(&get(&self.admin, "/metrics")?, name, labels))
    }

    /// Kills it (SIGKILL) and waits for its end.
    ///
    /// # Errors
    ///
    /// Where it could not be killed.
    pub(crate) fn kill(&mut self) -> anyhow::Result<()> {
        let killed = self.child.kill().and_then(|()| self.child.wait());
        killed.with_context(|| format!("could not kill {}", self.name))?;
        Ok(())
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        // It may have ended by itself; either way it must not outlive the measurement or stay a zombie.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Adds up the series of `name` in a Prometheus text.
fn sum(text: &str, name: &str, labels: &[&str]) -> f64 {
    let series = text.lines().filter_map(|line| {
        let rest = line.strip_prefix(name)?;
        let (of, value) = rest.rsplit_once(' ')?;
        let whole_name = of.is_empty() || of.starts_with('{');
        let wanted = whole_name && labels.iter().all(|label| of.contains(label));
        wanted.then(|| value.parse().unwrap_or(0.0))
    });
    series.sum()
}

#[cfg(test)]
mod tests {
    use super::sum;

    #[test]
    fn series_are_added_up_by_name_and_labels() {
        let text = "# TYPE a gauge\na{k=\"x\"} 1\na{k=\"y\"} 2\na_count{k=\"x\"} 4\nb 8\n";
        assert_eq!(sum(text, "a", &[]), 3.0);
        assert_eq!(sum(text, "a", &["k=\"y\""]), 2.0);
        assert_eq!((sum(text, "b", &[]), sum(text, "c", &[])), (8.0, 0.0));
    }
}
