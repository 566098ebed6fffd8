//! Kills a process with all its descendants, because a worker gives each stdio server its own process group.

use std::collections::HashMap;

use nix::sys::signal::{Signal, kill as send};
use nix::unistd::Pid;

pub(super) fn kill(pid: u32) {
    // Before the kill, because afterwards the children have another parent.
    let descendants = descendants(pid);
    for pid in std::iter::once(pid).chain(descendants) {
        if let Ok(pid) = i32::try_from(pid) {
            let _ = send(Pid::from_raw(pid), Signal::SIGKILL);
        }
    }
}

fn descendants(ancestor: u32) -> Vec<u32> {
    let children = children();
    let mut found = Vec::new();
    let mut parents = vec![ancestor];
    while let Some(parent) = parents.pop() {
        for child in children.get(&parent).into_iter().flatten() {
            found.push(*child);
            parents.push(*child);
        }
    }
    found
}

fn children() -> HashMap<u32, Vec<u32>> {
    let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    for process in processes {
        let Some(pid) = process
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok())
        else {
            continue;
        };
        let stat = std::fs::read_to_string(process.path().join("stat")).unwrap_or_default();
        if let Some(parent) = parent(&stat) {
            children.entry(parent).or_default().push(pid);
        }
    }
    children
}

/// In `/proc/<pid>/stat`, the parent is the second field after the command, which may contain any
/// characters.
fn parent(stat: &str) -> Option<u32> {
    let (_, after) = stat.rsplit_once(')')?;
    after.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::parent;

    #[test]
    fn the_parent_stands_after_any_name() {
        assert_eq!(parent("17 (a (b) c) S 4 17 17 0 -1"), Some(4));
        assert_eq!(parent(""), None);
    }
}
