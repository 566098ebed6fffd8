use std::sync::Arc;

use shoal_telemetry::metrics::EndReason;

use super::patience::Patience;
use crate::streams::Tail;

pub(crate) enum LeaveKind {
    Passivate,
    /// The session's calls run on.
    HandOver(Arc<Patience>),
    /// The session's calls are stopped.
    ShutDown(Arc<Patience>),
    Lost,
    /// The session ends, and its calls are stopped with the reason `told`.
    End {
        why: EndReason,
        told: &'static str,
        written: Vec<Arc<Tail>>,
    },
}
