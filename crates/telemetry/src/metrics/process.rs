//! This process: how long it runs, what it is, and what it uses.

use std::time::Instant;

use super::definition::{Attribute, Kind, definitions};
use super::instrument::Factory;
use super::labels::label;
use super::observed::Observed;

const VERSION: &str = "service.version";

definitions! {
    UPTIME = Kind::Gauge, "process.uptime", "s",
        "How long the process has been running.", [];
    BUILD = Kind::Gauge, "shoal.build.info", "{build}",
        "Always 1; its attributes say what is running.",
        [Attribute::code(VERSION, "this build's version")];
    MEMORY = Kind::UpDownCounter, "process.memory.usage", "By",
        "Physical memory that the process uses (Linux only).", [];
}

/// This process.
#[derive(Debug)]
pub struct ProcessMetrics {
    uptime: Observed,
    build: Observed,
    memory: Observed,
}

impl ProcessMetrics {
    pub(super) fn new(factory: &Factory) -> Self {
        Self {
            uptime: factory.observed(&UPTIME),
            build: factory.observed(&BUILD),
            memory: factory.observed(&MEMORY),
        }
    }

    /// Observes the process until it ends.
    pub(crate) fn observe(&self, version: String) {
        let since = Instant::now();
        (self.uptime)
            .number(move || since.elapsed().as_secs_f64())
            .forever();
        // Once in a process's life.
        let version: &'static str = version.leak();
        (self.build)
            .observe(move |to| to(1.0, vec![label(VERSION, version)]))
            .forever();
        (self.memory)
            .observe(|to| {
                if let Some(bytes) = resident_bytes() {
                    to(bytes, Vec::new());
                }
            })
            .forever();
    }
}

/// What Linux says the process holds in memory.
fn resident_bytes() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: f64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024.0)
}
