//! Finds all descendants of a process.
//!
//! A descendant may leave the process group and lose its parent, but inherits the environment. So each server
//! gets a unique variable, which Shoal finds in `/proc` (Linux). A descendant that leaves the group and
//! clears its environment escapes.

/// The variable that marks descendants. With the prefix `SHOAL_`, it would be a setting.
const NAME: &str = "CHILD_OF_SHOAL";

#[derive(Debug)]
pub(super) struct Mark(String);

/// Killed on drop.
#[derive(Debug)]
pub(super) struct Group(Option<GroupMembers>);

#[derive(Debug)]
pub(super) struct GroupMembers {
    leader: u32,
    mark: Mark,
}

impl Mark {
    pub(super) fn new() -> Self {
        Self(uuid::Uuid::new_v4().simple().to_string())
    }

    pub(super) fn name(&self) -> &'static str {
        NAME
    }

    pub(super) fn value(&self) -> &str {
        &self.0
    }
}

impl Group {
    pub(super) fn new(leader: Option<u32>, mark: Mark) -> Self {
        Self(leader.map(|leader| GroupMembers { leader, mark }))
    }

    pub(super) fn leader(&self) -> Option<u32> {
        self.0.as_ref().map(|members| members.leader)
    }

    /// Works only once, because the process id may be reused afterwards.
    pub(super) fn take(&mut self) -> Option<GroupMembers> {
        self.0.take()
    }

    pub(super) fn put_back(&mut self, members: GroupMembers) {
        self.0 = Some(members);
    }
}

impl GroupMembers {
    /// Sends `SIGTERM` to the process and all its descendants.
    pub(super) fn terminate(&self) {
        os::terminate(self);
    }
}

impl Drop for GroupMembers {
    fn drop(&mut self) {
        os::kill(self);
    }
}

#[cfg(test)]
thread_local! {
    pub(super) static WALKS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

#[cfg(unix)]
mod os {
    use nix::sys::signal::{Signal, kill as signal, killpg};
    use nix::unistd::Pid;

    use super::{GroupMembers, NAME};

    /// How often to search for descendants that start while others are killed.
    const ROUNDS: usize = 8;

    pub(super) fn terminate(members: &GroupMembers) {
        send(members, Signal::SIGTERM);
    }

    pub(super) fn kill(members: &GroupMembers) {
        for _ in 0..ROUNDS {
            if send(members, Signal::SIGKILL) == 0 {
                return;
            }
        }
    }

    fn send(members: &GroupMembers, which: Signal) -> usize {
        // The signal fails only if the process has ended.
        if let Ok(leader) = i32::try_from(members.leader) {
            let _ = killpg(Pid::from_raw(leader), which);
        }
        let marked = marked(&format!("{NAME}={}", members.mark.value()));
        let outside = marked.iter().filter(|pid| signal(**pid, which).is_ok());
        outside.count()
    }

    /// Leaves out processes of other users, which are unreadable, and zombies, which have no environment.
    fn marked(variable: &str) -> Vec<Pid> {
        #[cfg(test)]
        super::WALKS.with(|walks| walks.set(walks.get() + 1));
        let Ok(processes) = std::fs::read_dir("/proc") else {
            return Vec::new();
        };
        let processes = processes.filter_map(|entry| {
            let pid: i32 = entry.ok()?.file_name().to_str()?.parse().ok()?;
            let environment = std::fs::read(format!("/proc/{pid}/environ")).ok()?;
            let mut variables = environment.split(|byte| *byte == 0);
            let is_marked = variables.any(|other| other == variable.as_bytes());
            is_marked.then(|| Pid::from_raw(pid))
        });
        processes.collect()
    }
}

#[cfg(not(unix))]
mod os {
    use super::GroupMembers;

    pub(super) fn terminate(_members: &GroupMembers) {}

    pub(super) fn kill(_members: &GroupMembers) {}
}
