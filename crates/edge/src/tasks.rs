//! Tasks for both eras. Each task is a session, whose owner answers.

mod watch;

use shoal_ports::SessionId;

pub(crate) use self::watch::TaskWatch;
use crate::legacy::is_session_id;

pub(crate) fn task_of(id: String) -> Option<SessionId> {
    let task = SessionId::new(id);
    (task.is_task() && is_session_id(task.as_str())).then_some(task)
}
