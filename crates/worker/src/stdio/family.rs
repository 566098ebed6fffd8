//! Finding all descendants of a process: its process group, and those that have left it.
//!
//! A descendant that calls `setsid` leaves the group, and one whose parent has ended is no longer a child of anybody
//! known. But all inherit the environment, so each server gets a variable of its own, by which its
//! descendants are found in `/proc` (Linux). One that clears its environment and leaves the group is not.

/// The variable. Not `SHOAL_…`: another Shoal would take that for a setting.
const NAME: &str = "CHILD_OF_SHOAL";

/// What tells the descendants of one process from all others.
#[derive(Debug)]
pub(super) struct Mark(String);

/// A process and its descendants, killed when dropped.
#[derive(Debug)]
pub(super) struct Group(Option<Members>);

/// What is left to be killed.
#[derive(Debug)]
pub(super) struct Members {
    leader: u32,
    mark: Mark,
}

impl Mark {
    /// A new one.
    pub(super) fn new() -> Self {
        Self(uuid::Uuid::new_v4().simple().to_string())
    }

    /// The variable's name.
    pub(super) fn name(&self) -> &'static str {
        NAME
    }

    /// The variable's value.
    pub(super) fn value(&self) -> &str {
        &self.0
    }
}

impl Group {
    /// Of a process that leads a process group, if it runs.
    pub(super) fn new(leader: Option<u32>, mark: Mark) -> Self {
        Self(leader.map(|leader| Members { leader, mark }))
    }

    /// The process that leads it, until it has been taken.
    pub(super) fn leader(&self) -> Option<u32> {
        self.0.as_ref().map(|members| members.leader)
    }

    /// What is to be killed, once: its number may be somebody else's afterwards.
    pub(super) fn take(&mut self) -> Option<Members> {
        self.0.take()
    }

    /// Puts back what was taken.
    pub(super) fn put_back(&mut self, members: Members) {
        self.0 = Some(members);
    }
}

impl Members {
    /// Asks all to end. Goes through all processes of the machine, as killing them does.
    pub(super) fn terminate(&self) {
        os::terminate(self);
    }
}

impl Drop for Members {
    fn drop(&mut self) {
        os::kill(self);
    }
}

#[cfg(test)]
thread_local! {
    /// How often this thread went through all processes.
    pub(super) static WALKS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

#[cfg(unix)]
mod os {
    use nix::sys::signal::{Signal, kill as signal, killpg};
    use nix::unistd::Pid;

    use super::{Members, NAME};

    /// How often those are looked for that were started while the others were killed.
    const ROUNDS: usize = 8;

    pub(super) fn terminate(members: &Members) {
        send(members, Signal::SIGTERM);
    }

    pub(super) fn kill(members: &Members) {
        for _ in 0..ROUNDS {
            if send(members, Signal::SIGKILL) == 0 {
                return;
            }
        }
    }

    /// Returns how many there were outside the group.
    fn send(members: &Members, which: Signal) -> usize {
        // Each of these fails when there is nobody left, which is what is wanted.
        if let Ok(leader) = i32::try_from(members.leader) {
            let _ = killpg(Pid::from_raw(leader), which);
        }
        let marked = marked(&format!("{NAME}={}", members.mark.value()));
        let outside = marked.iter().filter(|pid| signal(**pid, which).is_ok());
        outside.count()
    }

    /// The processes with this variable in their environment. Those of other users cannot be looked at; one that has
    /// ended and is not reaped has none.
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
    use super::Members;

    pub(super) fn terminate(_members: &Members) {}

    pub(super) fn kill(_members: &Members) {}
}
