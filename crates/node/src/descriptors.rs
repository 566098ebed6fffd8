//! Raises the limit on open files, and limits client connections, because clients could use up the files that probes,
//! Redis and other processes need.

use nix::sys::resource::{Resource, getrlimit, setrlimit};

use crate::config::{Backend, NodeLimits, Settings};

/// Standard streams, listeners, the runtime, telemetry and name lookups.
const BASE: usize = 32;
const LINKS: usize = 64;
/// Three streams and the process descriptor.
const CHILD: usize = 4;
/// Clients get at least one in four of all files.
const LEAST_SHARE: usize = 4;

/// Returns how many client connections fit, and a warning if they are fewer than configured.
pub(crate) fn connections(settings: &Settings, admin: usize) -> (usize, Option<String>) {
    let configured = settings.limits.connections;
    let Some(files) = raise() else {
        return (configured, None);
    };
    let kept = kept(settings, admin);
    let taken = for_clients(configured, files, kept);
    let warning = (taken < configured).then(|| {
        format!(
            "limits.connections is {configured}, but the process may open only {files} files: it takes {taken} \
             connections and keeps the rest for the admin port, other processes and tools; raise the limit to {} \
             (ulimit -n, LimitNOFILE), or lower limits.connections",
            configured.saturating_add(kept)
        )
    });
    (taken, warning)
}

/// A single process with the default limit needs no warning.
pub(crate) fn matters(settings: &Settings) -> bool {
    let usual = NodeLimits::default().connections;
    settings.limits.connections != usual || !settings.node.store.is_memory()
}

fn for_clients(configured: usize, files: usize, kept: usize) -> usize {
    let room = files.saturating_sub(kept).max(files / LEAST_SHARE).max(1);
    configured.min(room)
}

fn kept(settings: &Settings, admin: usize) -> usize {
    let alone = settings.node.store.is_memory()
        && settings.cluster.listen.is_none()
        && settings.cluster.join.is_empty();
    let links = if alone { 0 } else { LINKS };
    let children = settings.pools.values().map(|pool| match &pool.backend {
        Backend::Stdio(stdio) => stdio.most_processes() * CHILD,
        Backend::Http(http) => http.sessions.saturating_add(2 * pool.limits.concurrency),
        Backend::OpenApi(_) => 2 * pool.limits.concurrency,
        Backend::Demo | Backend::Conformance | Backend::Handler => 0,
    });
    children.fold(BASE + links + admin, usize::saturating_add)
}

fn raise() -> Option<usize> {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).ok()?;
    let raised = soft < hard && setrlimit(Resource::RLIMIT_NOFILE, hard, hard).is_ok();
    let limit = if raised { hard } else { soft };
    usize::try_from(limit).ok()
}

#[cfg(test)]
mod tests {
    use super::for_clients;

    #[test]
    fn clients_leave_what_is_kept() {
        for (configured, files, kept, taken) in [
            (100_000, 1 << 20, 96, 100_000),
            (100_000, 1024, 96, 928),
            (100, 1024, 96, 100),
            (100_000, 128, 96, 32),
            (100_000, 128, 400, 32),
            (100_000, 1, 96, 1),
        ] {
            assert_eq!(
                for_clients(configured, files, kept),
                taken,
                "{configured} {files}"
            );
        }
    }
}
