use std::time::{Duration, Instant};

use super::area::{Label, area};
use super::definition::Attribute;
use super::labels::{Pair, label};

const VERSION: &str = "service.version";

area! {
    /// The metrics of this process.
    ProcessMetrics {
        uptime: Gauge(Duration) []
            = "process.uptime", "s", "Time since the start.";
        build: Gauge(u64) [version: Version]
            = "shoal.build.info", "{build}", "Always 1.";
        memory: UpDownCounter(Option<u64>) []
            = "process.memory.usage", "By", "Physical memory of the process (Linux).";
    }
}

enum Version {}

impl Label for Version {
    type Given<'a> = &'static str;

    const ATTRIBUTE: Attribute = Attribute::code(VERSION, "the version");

    fn pair(given: &'static str) -> Pair {
        label(VERSION, given)
    }
}

impl ProcessMetrics {
    pub(crate) fn observe(&self, version: String) {
        let since = Instant::now();
        self.uptime(move || since.elapsed()).forever();
        // Leaks the text only once per process.
        let version: &'static str = version.leak();
        self.build(move |to| to(version, 1)).forever();
        self.memory(resident_bytes).forever();
    }
}

fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}
