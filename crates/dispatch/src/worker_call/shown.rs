//! Tracks what a caller has seen of a call, which decides whether it can run again and which events
//! repeat.

use shoal_ports::CallEventKind;
use shoal_protocol::{Method, RawJson};

/// The events that the caller has seen.
#[derive(Default)]
pub(super) struct Shown {
    /// Whether the caller has seen any event.
    pub(super) anything: bool,
    /// Whether the caller was asked a question or to return later. The call then cannot run again
    /// as if for the first time.
    pub(super) asked: bool,
    /// The parameters of the latest progress.
    progress: Option<RawJson>,
    /// The progress that a second run must exceed to be shown.
    floor: Option<f64>,
}

impl Shown {
    /// Returns the event if the caller should see it. Progress must increase (basic, Progress), so
    /// a second run's progress is dropped until it passes the first run's.
    pub(super) fn pass(&mut self, kind: CallEventKind) -> Option<CallEventKind> {
        self.anything = true;
        match &kind {
            CallEventKind::Ask { .. } | CallEventKind::CloseStream { .. } => self.asked = true,
            CallEventKind::Notification { method, params } if *method == Method::Progress => {
                if let Some(floor) = self.floor
                    && params
                        .as_ref()
                        .and_then(progress)
                        .is_some_and(|it| it <= floor)
                {
                    return None;
                }
                self.progress.clone_from(params);
            }
            // A second run stores the same session state again, which is safe to repeat.
            CallEventKind::State { .. }
            | CallEventKind::Withdrawn { .. }
            | CallEventKind::Notification { .. }
            | CallEventKind::Finished(_) => {}
        }
        Some(kind)
    }

    pub(super) fn runs_again(&mut self) {
        let reached = self.progress.take().as_ref().and_then(progress);
        // The floor stays if this run did not get as far as the previous one.
        self.floor = match (self.floor, reached) {
            (Some(floor), Some(reached)) => Some(floor.max(reached)),
            (floor, reached) => floor.or(reached),
        };
    }
}

fn progress(params: &RawJson) -> Option<f64> {
    params.member("progress")?.read().ok()
}
