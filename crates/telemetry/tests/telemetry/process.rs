//! Runs a test in its own process, because a process has one telemetry.

use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

use shoal_telemetry::config::{Protocol, Telemetry};
use shoal_telemetry::logging::{Format, Logging};

const INSIDE: &str = "SHOAL_TELEMETRY_TEST";

/// Calls the test `name` again in a new process. Returns its output, or `None` inside of it.
pub(crate) fn alone(name: &str, body: impl FnOnce()) -> Option<Output> {
    alone_with(name, &[], body)
}

pub(crate) fn alone_with(
    name: &str,
    variables: &[(&str, &Path)],
    body: impl FnOnce(),
) -> Option<Output> {
    #[expect(
        clippy::disallowed_methods,
        reason = "the test's own variable, which is no configuration of Shoal"
    )]
    let inside = std::env::var(INSIDE);
    if inside.is_ok_and(|inside| inside == name) {
        body();
        return None;
    }
    let output = Command::new(std::env::current_exe().expect("this program has a path"))
        .args(["--exact", name, "--nocapture", "--test-threads=1"])
        .env(INSIDE, name)
        .envs(variables.iter().copied())
        .output()
        .expect("the test runs once more");
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && stdout.contains("1 passed"),
        "{stdout}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    Some(output)
}

pub(crate) fn telemetry(endpoint: String, protocol: Protocol) -> Telemetry {
    let mut telemetry = Telemetry {
        service_instance_id: "node-1".to_owned(),
        resource: [("shoal.node".to_owned(), "node-1".to_owned())].into(),
        endpoint: Some(endpoint),
        protocol,
        timeout: Duration::from_secs(20).into(),
        ..Telemetry::default()
    };
    telemetry.traces.ratio = 1.0;
    telemetry
}

pub(crate) fn json() -> Logging {
    Logging {
        format: Format::Json,
        ..Logging::default()
    }
}

/// No export and no shutdown of telemetry takes this long, unless it hangs.
pub(crate) const LONG: Duration = Duration::from_secs(60);

pub(crate) fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").map_or(0, Iterator::count)
}
