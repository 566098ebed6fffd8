use shoal_ports::{SessionId, SessionTasks, SessionTransport};
use shoal_protocol::Revision;

use super::SessionMachine;
use crate::record::MadeTask;

/// Maximum number of tasks in the list. Older tasks leave the list but still exist.
const MOST_LISTED: usize = 100;

impl SessionMachine {
    /// Single streams offer no tasks, because a client waits for a task's result on a separate connection.
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

    /// Returns ids only, because the tasks' owners know the states. `None` if the client cannot have tasks.
    pub(crate) fn made_tasks(&self) -> Option<SessionTasks> {
        self.revision().filter(|it| self.offers_tasks(*it))?;
        let tasks = self.record.made_tasks.iter().rev();
        Some(SessionTasks {
            tasks: tasks.map(|made| made.task.clone()).collect(),
            capabilities: self.caller.capabilities.clone(),
        })
    }
}

#[cfg(test)]
mod tests {
    use shoal_ports::{CallId, SessionId};

    use super::super::Input;
    use super::super::tests::{facts, ready};
    use super::MOST_LISTED;
    use crate::record::{MadeTask, Record};

    fn made(n: usize) -> Input {
        Input::TaskMade(MadeTask {
            task: SessionId::new(format!("t{n}")),
            delivery: CallId::generate(),
            made_at: 1,
        })
    }

    fn listed(session: &super::SessionMachine) -> Vec<String> {
        let made = session.made_tasks().unwrap().tasks;
        made.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn the_newest_tasks_are_listed_and_survive_the_node() {
        let mut session = ready();
        assert_eq!(listed(&session), [""; 0]);
        for n in 0..MOST_LISTED + 2 {
            session.apply(made(n), &facts());
        }
        let unmade = Input::TaskUnmade(SessionId::new("t2"));
        session.apply(unmade, &facts());
        let ids = listed(&session);
        assert_eq!(ids.len(), MOST_LISTED - 1);
        assert_eq!(
            (ids[0].as_str(), ids[MOST_LISTED - 2].as_str()),
            ("t101", "t3")
        );
        let stored = Record::from_bytes(&session.snapshot()).unwrap();
        assert_eq!(stored, *session.record());
    }
}
