use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use shoal_ports::{Begun, CallFailure, GatewayError, LogError, RunningCall, StoreError};
use shoal_protocol::task::TaskEnd;
use shoal_telemetry::metrics::{
    AppendOutcome, AttachOutcome, BeginOutcome, ClaimOutcome, ClaimReason, EndReason, HoldOutcome,
    ResumeOutcome, TaskStatus, Transport, metrics,
};
use tokio::time::Instant;

use crate::clock::unix_millis;
use crate::live::LiveSession;
use crate::sessions::SessionFacts;
use crate::stored::JournalShare;

pub(crate) fn ended(about: &SessionFacts, reason: EndReason) {
    metrics().sessions.ended(reason);
    if reason != EndReason::Lost
        && let Some(opened_at) = about.opened_at
    {
        let lived = Duration::from_millis(unix_millis().saturating_sub(opened_at));
        let revision = about.revision.map(|revision| revision.as_str());
        (metrics().mcp).session_ended(lived, revision, Transport::Tcp, None);
    }
}

pub(crate) fn task_ended(live: &LiveSession) {
    let status = live.read(|record| {
        let end = record.task.as_ref()?.end.as_ref()?;
        Some(match end {
            TaskEnd::Completed(_) => TaskStatus::Completed,
            TaskEnd::Failed(_) => TaskStatus::Failed,
            TaskEnd::Cancelled => TaskStatus::Cancelled,
        })
    });
    if let Some(status) = status.flatten() {
        metrics().tasks.ended(status);
    }
}

pub(crate) fn claimed<T>(reason: ClaimReason, claimed: &Result<T, StoreError>) {
    let outcome = match claimed {
        Ok(_) => ClaimOutcome::Won,
        Err(StoreError::Held | StoreError::Stale) => ClaimOutcome::Held,
        Err(StoreError::NotFound) => ClaimOutcome::Gone,
        Err(_) => ClaimOutcome::Failed,
    };
    metrics().sessions.claimed(reason, outcome);
}

pub(crate) fn held(runs_once: bool, outcome: HoldOutcome) {
    if runs_once {
        metrics().journal.held(outcome);
    }
}

pub(crate) fn begun(since: Instant, begun: &Result<Begun, LogError>) {
    let outcome = match begun {
        Ok(Begun::Now(_)) => BeginOutcome::Begun,
        Ok(Begun::Before(_)) => BeginOutcome::Repeated,
        Err(LogError::Store(StoreError::Stale)) => BeginOutcome::Stale,
        Err(LogError::Store(StoreError::Full(_))) => BeginOutcome::Full,
        Err(LogError::Store(error)) if error.is_outage() => BeginOutcome::Unavailable,
        Err(_) => BeginOutcome::Failed,
    };
    metrics().journal.begun(since.elapsed(), outcome);
}

pub(crate) fn appended<T>(
    since: Instant,
    (events, bytes): (usize, usize),
    appended: &Result<T, LogError>,
) {
    let outcome = match appended {
        Ok(_) => AppendOutcome::Written,
        Err(LogError::Store(StoreError::Stale)) => AppendOutcome::Stale,
        Err(LogError::Store(StoreError::Full(_))) => AppendOutcome::Full,
        Err(LogError::Store(error)) if error.is_outage() => AppendOutcome::Unavailable,
        Err(_) => AppendOutcome::Failed,
    };
    let streams = &metrics().streams;
    streams.appended(since.elapsed(), events as u64, outcome);
    if outcome == AppendOutcome::Written {
        streams.appended_bytes(bytes as u64);
    }
}

pub(crate) fn resumed(resumed: Result<ResumeOutcome, &GatewayError>) -> Option<ResumeOutcome> {
    let outcome = match resumed {
        Ok(outcome) => outcome,
        Err(GatewayError::HistoryGone(_)) => ResumeOutcome::HistoryGone,
        Err(GatewayError::Moved { .. }) => return None,
        Err(_) => ResumeOutcome::Failed,
    };
    metrics().streams.resumed(outcome);
    Some(outcome)
}

pub(crate) fn attached(attached: &Result<RunningCall, CallFailure>) {
    let outcome = match attached {
        Ok(_) => AttachOutcome::Attached,
        Err(CallFailure::OutcomeUnknown { .. }) => AttachOutcome::Lost,
        Err(_) => AttachOutcome::Failed,
    };
    metrics().journal.attached(outcome);
}

pub(crate) struct Journaled(
    Arc<AtomicUsize>,
    #[allow(dead_code, reason = "counts until dropped")] JournalShare,
);

impl Journaled {
    pub(crate) fn count(count: &Arc<AtomicUsize>, stored: JournalShare) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count.clone(), stored)
    }
}

impl Drop for Journaled {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
