use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use crate::state::State;
use crate::{audit, logging};

/// A dropped guard waits this long for the last log lines, also after a shutdown that used up its time.
const LAST_LINES: Duration = Duration::from_millis(500);

/// The handle that [`init`](crate::init) returns. Call [`shutdown`](Self::shutdown) last, or waiting data is lost.
#[derive(Debug)]
#[must_use = "call `shutdown` before the process ends, or telemetry that waits for the collector is lost"]
pub struct Guard {
    state: &'static State,
}

impl Guard {
    pub(crate) fn new(state: &'static State) -> Self {
        Self { state }
    }

    /// Sends the data that waits for the collector, and waits for queued log lines. Later spans and log records are
    /// dropped, but lines still go to standard error.
    ///
    /// Blocks the calling thread for at most `within` and half a second.
    pub fn shutdown(self, within: Duration) {
        let began = Instant::now();
        audit::flush(within);
        self.send(within.saturating_sub(began.elapsed()));
        logging::flush(within.saturating_sub(began.elapsed()));
    }

    fn send(&self, within: Duration) {
        let state = self.state;
        if let Some(repeats) = &state.repeats {
            repeats.report_all();
        }
        let started = Instant::now();
        let (done, ended) = mpsc::channel();
        // Ends all signals at the same time, because all wait for the same collector, and `force_flush` has no time
        // limit.
        let mut running = 0;
        let mut start = |work: Box<dyn FnOnce() + Send>| {
            let done = done.clone();
            let spawned = thread::Builder::new()
                .name("telemetry-end".to_owned())
                .spawn(move || {
                    work();
                    let _ = done.send(());
                });
            running += usize::from(spawned.is_ok());
        };
        if let Some(tracer) = &state.tracer {
            start(Box::new(move || {
                tracer.spans().shut_down(within);
            }));
        }
        if let Some(meters) = &state.meters {
            // Metrics stay readable, because Prometheus may scrape until the process ends.
            start(Box::new(move || {
                let _ = meters.force_flush();
            }));
        }
        if let Some(loggers) = &state.loggers {
            start(Box::new(move || {
                let _ = loggers.shutdown_with_timeout(within);
            }));
        }
        for _ in 0..running {
            let left = within.saturating_sub(started.elapsed());
            if ended.recv_timeout(left).is_err() {
                tracing::warn!(?within, "not all telemetry reached the collector in time");
                return;
            }
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        logging::flush(LAST_LINES);
    }
}
