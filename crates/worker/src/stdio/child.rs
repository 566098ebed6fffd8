use std::io;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::runtime::Handle;

use super::config::StdioConfig;
use super::family::{Group, Mark};

pub(super) struct Spawned {
    pub(super) family: Family,
    pub(super) stdin: ChildStdin,
    pub(super) stdout: ChildStdout,
    pub(super) stderr: ChildStderr,
}

pub(super) struct Family {
    child: Child,
    group: Group,
}

/// The own process group lets Shoal end descendants: `npx` runs the server in a grandchild.
pub(super) fn spawn(config: &StdioConfig) -> io::Result<Spawned> {
    let mut command = Command::new(&config.command);
    command
        .args(&config.args)
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    let inherited =
        std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(|n| config.inherits(n)));
    command.envs(inherited);
    command.envs((config.env.iter()).map(|(name, value)| (name, value.expose())));
    if let Some(cwd) = &config.cwd {
        command.current_dir(cwd);
    }
    let mark = Mark::new();
    command.env(mark.name(), mark.value());
    #[cfg(unix)]
    command.process_group(0);
    let mut child = command.spawn()?;
    let group = Group::new(child.id(), mark);
    let missing = || io::Error::other("a standard stream is missing");
    Ok(Spawned {
        stdin: child.stdin.take().ok_or_else(missing)?,
        stdout: child.stdout.take().ok_or_else(missing)?,
        stderr: child.stderr.take().ok_or_else(missing)?,
        family: Family { child, group },
    })
}

impl Family {
    pub(super) fn pid(&self) -> u32 {
        self.group.leader().unwrap_or_default()
    }

    /// Waits for the process's end, then kills its descendants. Cancellation safe.
    pub(super) async fn ended(&mut self) -> io::Result<ExitStatus> {
        let status = self.child.wait().await;
        self.kill_group().await;
        status
    }

    /// Ends a process whose stdin is closed: waits, sends `SIGTERM`, waits, and kills it.
    pub(super) async fn end(mut self, grace: Duration) {
        if tokio::time::timeout(grace, self.ended()).await.is_ok() {
            return;
        }
        if let Some(members) = self.group.take() {
            let asked = aside(move || {
                members.terminate();
                members
            });
            // If the runtime shuts down, the task was dropped, which killed the members.
            if let Some(members) = asked.await {
                self.group.put_back(members);
            }
        }
        if tokio::time::timeout(grace, self.ended()).await.is_ok() {
            return;
        }
        self.kill_group().await;
        // Kills the process itself, for systems without process groups, and reaps it.
        let _ = self.child.kill().await;
    }

    async fn kill_group(&mut self) {
        if let Some(last) = self.group.take() {
            aside(move || drop(last)).await;
        }
    }
}

impl Drop for Family {
    fn drop(&mut self) {
        if let (Some(last), Ok(runtime)) = (self.group.take(), Handle::try_current()) {
            drop(runtime.spawn_blocking(move || drop(last)));
        }
    }
}

/// Runs a scan on a blocking thread, which finishes even if the caller stops waiting.
async fn aside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    tokio::task::spawn_blocking(work).await.ok()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::family::WALKS;
    use super::{Family, StdioConfig, spawn};

    fn stubborn() -> Family {
        let mut config = StdioConfig::new("sh");
        config.args = vec![
            "-c".into(),
            "trap '' TERM; while :; do sleep 1; done".into(),
        ];
        spawn(&config).unwrap().family
    }

    #[tokio::test]
    async fn no_thread_of_the_runtime_goes_through_all_processes() {
        let ended = stubborn();
        ended.end(Duration::from_millis(20)).await;
        drop(stubborn());
        assert_eq!(WALKS.get(), 0);
    }
}
