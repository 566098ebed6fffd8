use std::sync::{Arc, Mutex, PoisonError};

use anyhow::ensure;
use nix::sys::signal::Signal;

use super::{Launch, Process};

/// A program that can be started again after its end.
#[derive(Debug)]
pub struct Restartable(Mutex<Arc<Process>>);

impl Restartable {
    pub(crate) fn start(launch: &Launch) -> anyhow::Result<Self> {
        Ok(Self(Mutex::new(Arc::new(Process::start(launch)?))))
    }

    /// Returns the process of the last start.
    #[must_use]
    pub fn process(&self) -> Arc<Process> {
        Arc::clone(&self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn run_again(&self, launch: &Launch) -> anyhow::Result<Arc<Process>> {
        ensure!(!self.is_running(), "{} is running", launch.name);
        let process = Arc::new(Process::start(launch)?);
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&process);
        Ok(process)
    }

    /// Returns the process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.process().pid()
    }

    /// Whether the process exists, even if it is stopped.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.process().is_running()
    }

    /// Stops the process (SIGSTOP). Connections stay open.
    pub async fn pause(&self) -> anyhow::Result<()> {
        self.process().signal(Signal::SIGSTOP)
    }

    /// Continues the process (SIGCONT).
    pub async fn resume(&self) -> anyhow::Result<()> {
        self.process().signal(Signal::SIGCONT)
    }

    /// Kills the process (SIGKILL).
    pub async fn kill(&self) -> anyhow::Result<()> {
        self.process().kill().await
    }
}
