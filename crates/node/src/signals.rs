//! The signals that end the process: the first asks for an orderly end, the second insists.

use std::io;
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::exit::Code;

/// How long whoever asks a second time waits for the last lines of the log.
const LAST_LINES: Duration = Duration::from_millis(200);

/// `SIGTERM`, `SIGINT` and `SIGHUP`, taken over from their default, which is to end the process at once.
/// A terminal that is closed sends the last of them.
pub(crate) struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hang_up: Option<Signal>,
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
            hang_up: (!ignores_hang_up())
                .then(|| signal(SignalKind::hangup()))
                .transpose()?,
        })
    }

    /// Waits for the next signal and names it. Cancellation safe.
    pub(crate) async fn next(&mut self) -> &'static str {
        let hang_up = async {
            match &mut self.hang_up {
                Some(signal) => signal.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = hang_up => "SIGHUP",
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

/// Whether whoever started the process wants it to outlive its terminal, as `nohup` does (Linux).
fn ignores_hang_up() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    // Signal 1 is the lowest bit.
    ignored.is_some_and(|mask| mask & 1 == 1)
}
