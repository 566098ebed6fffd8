//! What a caller has seen of a call, which decides whether it can run again and what is repeated then.

use shoal_ports::CallEventKind;
use shoal_protocol::{Method, RawJson};

/// What has gone on to the caller.
#[derive(Default)]
pub(super) struct Shown {
    /// Whether anything has.
    pub(super) anything: bool,
    /// Whether it was a question, or a request to come back later: then the call cannot be run again as if
    /// nothing had happened.
    pub(super) asked: bool,
    /// The parameters of the latest progress.
    progress: Option<RawJson>,
    /// What progress must exceed to be shown, after the call was run again.
    floor: Option<f64>,
}

impl Shown {
    /// The event, if the caller is to see it. Progress must increase (basic, Progress), so what a second run
    /// says of where the first one has been is left out.
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
            // What a call keeps in its session it keeps again when it runs again: it is safe to repeat.
            CallEventKind::State { .. }
            | CallEventKind::Withdrawn { .. }
            | CallEventKind::Notification { .. }
            | CallEventKind::Finished(_) => {}
        }
        Some(kind)
    }

    /// The call begins once more.
    pub(super) fn runs_again(&mut self) {
        let reached = self.progress.take().as_ref().and_then(progress);
        // A run that did not get as far as the one before leaves the floor where it was.
        self.floor = match (self.floor, reached) {
            (Some(floor), Some(reached)) => Some(floor.max(reached)),
            (floor, reached) => floor.or(reached),
        };
    }
}

fn progress(params: &RawJson) -> Option<f64> {
    params.member("progress")?.read().ok()
}
