//! Lists the tasks made from this session's calls (2025-11-25).

use bytes::Bytes;
use shoal_ports::{SessionId, SessionTransport};
use shoal_protocol::{RawJson, RawObject, Request, Revision, response};

use super::SessionState;
use crate::record::MadeTask;

/// Maximum number of tasks in the list. Older tasks leave the list but still exist.
const MOST_LISTED: usize = 100;

impl SessionState {
    /// Whether calls may become tasks. Not on single streams, because a client waits for a task's result on a separate
    /// connection.
    pub(super) fn offers_tasks(&self, revision: Revision) -> bool {
        self.limits.offers_tasks
            && revision.has_tasks()
            && self.transport() == SessionTransport::Streamable
    }

    pub(super) fn task_made(&mut self, task: MadeTask) {
        let listed = &mut self.record.made_tasks;
        let too_many = (listed.len() + 1).saturating_sub(MOST_LISTED);
        listed.drain(..too_many);
        listed.push(task);
    }

    pub(super) fn task_unmade(&mut self, task: &SessionId) {
        self.record.made_tasks.retain(|made| made.task != *task);
    }

    /// Answers `tasks/list` with the task ids, newest first. The edge asks each task for its status, because most are
    /// on other nodes.
    pub(super) fn listed_tasks(&self, request: &Request) -> Bytes {
        let tasks = self.record.made_tasks.iter().rev();
        let ids: Vec<&str> = tasks.map(|made| made.task.as_str()).collect();
        let mut listed = RawObject::default();
        listed.set("taskIds", RawJson::of(&ids));
        listed.set("capabilities", self.caller.capabilities.clone());
        response(&request.id, &listed.to_json())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use shoal_ports::{CallId, SessionId};
    use shoal_protocol::Method;

    use super::super::tests::{facts, ready, request};
    use super::super::{Effect, Input};
    use super::MOST_LISTED;
    use crate::record::{MadeTask, Record};

    fn made(n: usize) -> Input {
        Input::TaskMade(MadeTask {
            task: SessionId::new(format!("t{n}")),
            delivery: CallId::generate(),
            made_at: 1,
        })
    }

    fn listed(session: &mut super::SessionState) -> Value {
        let asked = session.apply(request(9, Method::TasksList, "{}"), &facts());
        let Effect::Respond(text) = asked else {
            panic!("it is answered");
        };
        let answer: Value = serde_json::from_slice(&text).unwrap();
        answer["result"]["taskIds"].clone()
    }

    #[test]
    fn the_newest_tasks_are_listed_and_survive_the_node() {
        let mut session = ready();
        assert_eq!(listed(&mut session), json!([]));
        for n in 0..MOST_LISTED + 2 {
            session.apply(made(n), &facts());
        }
        let unmade = Input::TaskUnmade(SessionId::new("t2"));
        session.apply(unmade, &facts());
        let ids = listed(&mut session);
        assert_eq!(ids.as_array().unwrap().len(), MOST_LISTED - 1);
        assert_eq!(
            (&ids[0], &ids[MOST_LISTED - 2]),
            (&json!("t101"), &json!("t3"))
        );
        let stored = Record::from_bytes(&session.snapshot()).unwrap();
        assert_eq!(stored, *session.record());
    }
}
