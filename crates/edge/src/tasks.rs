//! Tasks for both eras. Each task is a session, whose owner knows its state.

mod watch;

use shoal_ports::{SessionId, SessionRef};
use shoal_protocol::task::no_such_task;
use shoal_protocol::{RawJson, RpcError};

pub(crate) use self::watch::TaskWatch;
use crate::legacy::is_session_id;
use crate::visit::Visit;

pub(crate) fn task_of(id: String) -> Option<SessionId> {
    let task = SessionId::new(id);
    (task.is_task() && is_session_id(task.as_str())).then_some(task)
}

pub(crate) fn named(params: Option<&RawJson>) -> Result<SessionId, RpcError> {
    let id = params.and_then(|params| params.member("taskId")?.string());
    let id = id.ok_or_else(|| RpcError::invalid_params("params.taskId must be a string"))?;
    task_of(id).ok_or_else(no_such_task)
}

pub(crate) fn to(visit: &Visit<'_>, task: SessionId) -> SessionRef {
    SessionRef {
        trace: visit.trace.clone(),
        ..SessionRef::new(task, visit.principal.clone())
    }
}
