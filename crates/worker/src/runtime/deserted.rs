//! Calls without a session whose reader left.
//!
//! A session's calls wait for its next owner. A call without a session (2026-07-28) belongs to its
//! edge: if the edge dies, the client's connection breaks, which cancels the call.

use std::sync::Arc;

use shoal_ports::CallFailure;
use tokio::runtime::Handle;
use tokio::time::sleep;

use super::record::CallRecord;

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
