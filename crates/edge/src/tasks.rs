//! Tasks, as both eras ask for them: each is a session of its own, whose owner answers.

mod watch;

use shoal_ports::SessionId;

pub(crate) use self::watch::TaskWatch;
use crate::legacy::is_session_id;

/// The task that has this id, if one can have it.
pub(crate) fn task_of(id: String) -> Option<SessionId> {
    let task = SessionId::new(id);
    (task.is_task() && is_session_id(task.as_str())).then_some(task)
}
