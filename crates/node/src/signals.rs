//! SIGTERM or SIGINT starts the shutdown, and a second one of these signals ends the process at once. SIGHUP reloads
//! the configuration.

use std::io;
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::exit::Code;

/// How long to wait for the last log lines after a second signal.
const LAST_LINES: Duration = Duration::from_millis(200);

/// Replaces the default action of `SIGTERM` and `SIGINT`.
pub(crate) struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

/// Replaces the default action of `SIGHUP`, which ends the process.
pub(crate) struct HangUps(Signal);

impl HangUps {
    pub(crate) fn take() -> io::Result<Self> {
        Ok(Self(signal(SignalKind::hangup())?))
    }

    /// Several pending signals count as one. Cancellation safe.
    pub(crate) async fn next(&mut self) {
        self.0.recv().await;
    }
}

impl Signals {
    pub(crate) fn take() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    /// Returns the signal's name. Cancellation safe.
    pub(crate) async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }

    /// Makes the next signal end the process at once, with exit code 130.
    pub(crate) fn next_one_exits(mut self) {
        tokio::spawn(async move {
            let signal = self.next().await;
            tracing::warn!(signal, "asked a second time: exiting at once");
            shoal_telemetry::logging::flush(LAST_LINES);
            std::process::exit(Code::Interrupted as i32);
        });
    }
}
