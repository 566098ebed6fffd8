use std::ffi::OsStr;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::Context;
use serde_json::Value;

use crate::process;
use crate::servers::get::get;
use crate::servers::spawned::{ADMIN, announced, start};

const SERVING: &str = "shoal: serving MCP on ";
const CLUSTER: &str = "shoal: cluster on ";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Edge,
    Session,
    Combined,
    Worker,
}

impl Role {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Edge => "edge",
            Self::Session => "session",
            Self::Combined => "edge,session",
            Self::Worker => "worker",
        }
    }
}

pub(crate) struct Member {
    /// For example `edge 1`.
    pub(crate) name: String,
    pub(crate) role: Role,
    /// Empty unless the process is an edge.
    pub(crate) url: String,
    pub(crate) admin: String,
    /// The address at which others join this process. Empty for a worker.
    pub(super) joined_at: String,
    child: Child,
}

impl Member {
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

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn rss_kib(&self) -> anyhow::Result<u64> {
        Ok(process::measure(&[self.pid()])?.rss_kib)
    }

    pub(crate) fn status(&self) -> anyhow::Result<Value> {
        let text = get(&self.admin, "/status")?;
        serde_json::from_str(&text).with_context(|| format!("{} gives no JSON", self.name))
    }

    /// Sums the series that have all of `labels`. 0 if there are none. Blocks.
    pub(crate) fn metric(&self, name: &str, labels: &[&str]) -> anyhow::Result<f64> {
        Ok(sum(&get(&self.admin, "/metrics")?, name, labels))
    }

    pub(crate) fn kill(&mut self) -> anyhow::Result<()> {
        let killed = self.child.kill().and_then(|()| self.child.wait());
        killed.with_context(|| format!("could not kill {}", self.name))?;
        Ok(())
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        // The process must not stay a zombie.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

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
