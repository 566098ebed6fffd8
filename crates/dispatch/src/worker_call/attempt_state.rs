use shoal_telemetry::metrics::{RetryReason, ShedReason};

#[derive(Default)]
pub(super) struct AttemptState {
    pub(super) repeats: Option<RetryReason>,
    pub(super) shed: Option<ShedReason>,
}
