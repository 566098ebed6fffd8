//! The signals that end the process: the first asks for an orderly end, the second insists. And the one that does not.

use std::io;
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::exit::Code;

/// How long whoever asks a second time waits for the last lines of the log.
const LAST_LINES: Duration = Duration::from_millis(200);

/// `SIGTERM` and `SIGINT`, taken over from their default, which is to end the process at once.
pub(crate) struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

/// `SIGHUP`, which asks for the configuration to be read again. Once this is taken it never ends the process, also when nobody
/// waits for it.
pub(crate) struct HangUps(Signal);

impl HangUps {
    /// Takes the signal over.
    ///
    /// # Errors
    /// When the operating system refuses.
    pub(crate) fn take() -> io::Result<Self> {
        Ok(Self(signal(SignalKind::hangup())?))
    }

    /// Waits for the next one; several that came meanwhile are one. Cancellation safe.
    pub(crate) async fn next(&mut self) {
        self.0.recv().await;
    }
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
            shoal_telemetry::logging::flush(LAST_LINES);
            std::process::exit(Code::Interrupted as i32);
        });
    }
}
