//! Tracks what a caller has seen, which decides whether its call can run again.

use shoal_ports::CallEventKind;
use shoal_protocol::{Method, RawJson};

#[derive(Default)]
pub(super) struct Shown {
    pub(super) anything: bool,
    /// Whether the caller was asked a question or told to return later. After that, the call cannot simply run again.
    pub(super) asked: bool,
    progress: Option<RawJson>,
    /// The progress that a second run must exceed to be shown.
    floor: Option<f64>,
}

impl Shown {
    /// Drops a second run's progress until it exceeds the first run's, because progress must increase (basic,
    /// Progress).
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
            // These do not prevent a second run. Storing the same session state again is safe.
            CallEventKind::State { .. }
            | CallEventKind::Withdrawn { .. }
            | CallEventKind::Notification { .. }
            | CallEventKind::Finished(_) => {}
        }
        Some(kind)
    }

    pub(super) fn runs_again(&mut self) {
        let reached = self.progress.take().as_ref().and_then(progress);
        self.floor = match (self.floor, reached) {
            (Some(floor), Some(reached)) => Some(floor.max(reached)),
            (floor, reached) => floor.or(reached),
        };
    }
}

fn progress(params: &RawJson) -> Option<f64> {
    params.member("progress")?.read().ok()
}
