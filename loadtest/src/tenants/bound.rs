use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, ensure};
use serde_json::Value;
use shoal_testkit::cluster::{Role, variable};

const KIB: u64 = 1 << 10;
/// Maximum bytes of a body or an event that no limit of bytes counts.
const SMALL: u64 = 16 * KIB;
/// Buffers, tasks and timers of a connection.
const CONNECTION: u64 = 32 * KIB;
/// A session without its stored content.
const SESSION: u64 = 16 * KIB;
/// Overhead by allocator and threads.
const ALLOCATOR: u64 = 64 << 20;
/// Factor for the bytes of texts, because a text exists as received and as sent.
const TWICE: u64 = 2;

/// The effective configuration.
pub(super) struct Limits(Value);

impl Limits {
    pub(super) fn read(shoal: &Path, settings: &[(String, String)]) -> anyhow::Result<Self> {
        let mut command = Command::new(shoal);
        command.args(["config", "show", "--output", "json"]);
        let variables = settings.iter();
        command.envs(variables.map(|(name, value)| (variable(name), value)));
        let shown = command.output()?;
        let error = String::from_utf8_lossy(&shown.stderr);
        ensure!(shown.status.success(), "{error}");
        let shown = serde_json::from_slice(&shown.stdout);
        shown.map(Self).context("shoal config show gives no JSON")
    }

    pub(super) fn number(&self, setting: &str) -> anyhow::Result<u64> {
        let found = self.0.pointer(&format!("/{}", setting.replace('.', "/")));
        let number = found.and_then(Value::as_u64);
        number.with_context(|| format!("{setting} is no number in the effective configuration"))
    }

    /// Returns the most KiB that a process may take beyond its memory when idle, and prints their sum.
    pub(super) fn kib_above_idle(&self, role: Role, edges: usize) -> anyhow::Result<u64> {
        let header = self.number("limits.header_bytes")?;
        let buffer = self.number("streams.buffer")? * SMALL;
        let tail = self.number("streams.tail_events")? * SMALL;
        let (request, of_edges) = (header + TWICE * SMALL, TWICE * edges as u64);
        let units: &[(&str, u64)] = match role {
            Role::Edge | Role::Combined | Role::Whole => &[
                ("limits.connections", header + CONNECTION),
                ("limits.requests", request),
                ("limits.bodies_in_flight_bytes", TWICE),
                ("limits.answers_waiting_bytes", TWICE),
                ("limits.streams", buffer),
                ("calls.waiting", SMALL),
            ],
            Role::Session => &[
                ("limits.sessions_per_node", SESSION),
                ("limits.stored_bytes", TWICE),
                ("limits.requests", request),
                ("limits.bodies_in_flight_bytes", of_edges),
                ("limits.streams", tail),
            ],
            Role::Worker => &[
                ("limits.bodies_in_flight_bytes", of_edges),
                ("pools.demo.concurrency", request + buffer),
                ("pools.demo.queue", request),
                ("pools.demo.asking", request),
                ("pools.demo.retained_bytes", TWICE),
            ],
        };
        let mut sum = ALLOCATOR;
        let mut text = format!("allocator and threads ({} MiB)", ALLOCATOR >> 20);
        for (setting, bytes) in units {
            let number = self.number(setting)?;
            let mib = (number * bytes) >> 20;
            sum += number * bytes;
            text += &format!(" + {setting} {number} × {bytes} B ({mib} MiB)");
        }
        let (role, mib) = (role.as_str(), sum >> 20);
        crate::progress(&format!("{role} {mib} MiB above idle = {text}"));
        Ok(sum >> 10)
    }
}
