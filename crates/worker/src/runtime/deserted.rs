//! Calls whose reader has gone, and to which nobody else can come.
//!
//! What a session has called, or taken over as a task, is found by the session's next owner. Any other call without one (2026-07-28) belongs to the edge that
//! began it. When that edge dies, its client's connection breaks with it, which is how such a call is cancelled.

use std::sync::Arc;

use shoal_ports::CallFailure;
use tokio::runtime::Handle;
use tokio::time::sleep;

use super::record::CallRecord;

/// Cancels the call, unless somebody attaches in time: its reader's link may only have broken.
pub(super) fn watch(record: &Arc<CallRecord>, number: u64) {
    let (Some(patience), Ok(runtime)) = (record.deserted_after(), Handle::try_current()) else {
        return;
    };
    let record = Arc::downgrade(record);
    runtime.spawn(async move {
        sleep(patience).await;
        let Some(record) = record.upgrade() else {
            return;
        };
        if record.is_latest(number) && record.stop(CallFailure::Cancelled) {
            tracing::debug!(call = %record.id, "call cancelled: nobody came back to read it");
        }
    });
}
