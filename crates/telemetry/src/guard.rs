//! Ends telemetry, in bounded time.

use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use crate::state::State;
use crate::{audit, logging};

/// How long the last lines are waited for, when the collector has used up the time or nobody has given any.
const LAST_LINES: Duration = Duration::from_millis(500);

/// What [`init`](crate::init) hands out, to be [shut down](Self::shutdown) last.
///
/// Dropping it without that loses what waits for the collector, and nothing else.
#[derive(Debug)]
#[must_use = "call `shutdown` before the process ends, or what waits for the collector is lost"]
pub struct Guard {
    state: &'static State,
}

impl Guard {
    pub(crate) fn new(state: &'static State) -> Self {
        Self { state }
    }

    /// Sends what waits for the collector, and stops; what is not sent after `within` is lost. Spans and lines for the
    /// collector that come later are dropped; lines still go to standard error, where those that are on their way are
    /// waited for as well.
    ///
    /// Blocks the calling thread, for `within` and half a second at most.
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
        // All at once, each in a thread of its own: they wait for the same collector, and one of them has no limit.
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
            // Pushed and not shut down: Prometheus may look at the process until it ends.
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
