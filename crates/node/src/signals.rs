//! The signals that end the process: the first asks for an orderly end, the second insists.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::exit;

/// `SIGTERM` and `SIGINT`, taken over from their default, which is to end the process at once.
pub(crate) struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    /// Takes the signals over.
    ///
    /// # Errors
    /// When the operating system refuses.
    pub(crate) fn take() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    /// Waits for the next signal and names it. Cancellation safe.
    pub(crate) async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }

    /// From now on the next signal ends the process at once, with exit code 130.
    pub(crate) fn next_one_exits(mut self) {
        tokio::spawn(async move {
            let signal = self.next().await;
            tracing::warn!(signal, "asked a second time: exiting at once");
            std::process::exit(exit::INTERRUPTED.into());
        });
    }
}
