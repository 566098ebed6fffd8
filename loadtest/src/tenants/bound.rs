use std::fmt;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, bail};
use serde_json::Value;

use crate::servers::cluster::member::Role;
use crate::servers::spawned::Environment;

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

struct Term {
    what: &'static str,
    number: u64,
    bytes: u64,
}

/// The maximum memory of a process beyond its memory when idle.
pub(super) struct Bound {
    role: &'static str,
    terms: Vec<Term>,
}

pub(super) struct Effective(Value);

impl Effective {
    pub(super) fn of(shoal: &Path, environment: &Environment) -> anyhow::Result<Self> {
        let mut command = Command::new(shoal);
        command.args(["config", "show", "--output", "json"]);
        let shown = command.envs(environment.clone()).output()?;
        if !shown.status.success() {
            bail!("{}", String::from_utf8_lossy(&shown.stderr));
        }
        serde_json::from_slice(&shown.stdout)
            .map(Self)
            .context("shoal config show gives no JSON")
    }

    pub(super) fn number(&self, setting: &'static str) -> anyhow::Result<u64> {
        let found = setting
            .split('.')
            .try_fold(&self.0, |at, name| at.get(name));
        let number = found.and_then(Value::as_u64);
        number.with_context(|| format!("{setting} is no number in the effective configuration"))
    }

    pub(super) fn bounds(&self, edges: usize) -> anyhow::Result<[(Role, Bound); 3]> {
        let header_bytes = self.number("limits.header_bytes")?;
        let buffer = self.number("streams.buffer")?;
        let tail = self.number("streams.tail_events")?;
        let edges = edges as u64;
        let term = |what, bytes| {
            Ok::<_, anyhow::Error>(Term {
                what,
                number: self.number(what)?,
                bytes,
            })
        };
        let per_request = header_bytes + TWICE * SMALL;
        let edge = vec![
            term("limits.connections", header_bytes + CONNECTION)?,
            term("limits.requests", per_request)?,
            term("limits.bodies_in_flight_bytes", TWICE)?,
            term("limits.answers_waiting_bytes", TWICE)?,
            term("limits.streams", buffer * SMALL)?,
            term("calls.waiting", SMALL)?,
        ];
        let session = vec![
            term("limits.sessions_per_node", SESSION)?,
            term("limits.stored_bytes", TWICE)?,
            term("limits.requests", per_request)?,
            term("limits.bodies_in_flight_bytes", TWICE * edges)?,
            term("limits.streams", tail * SMALL)?,
        ];
        let worker = vec![
            term("limits.bodies_in_flight_bytes", TWICE * edges)?,
            term("pools.demo.concurrency", per_request + buffer * SMALL)?,
            term("pools.demo.queue", per_request)?,
            term("pools.demo.asking", per_request)?,
            term("pools.demo.retained_bytes", TWICE)?,
        ];
        let of = |role: Role, mut terms: Vec<Term>| {
            terms.push(Term {
                what: "allocator and threads",
                number: 1,
                bytes: ALLOCATOR,
            });
            let bound = Bound {
                role: role.name(),
                terms,
            };
            (role, bound)
        };
        Ok([
            of(Role::Edge, edge),
            of(Role::Session, session),
            of(Role::Worker, worker),
        ])
    }
}

impl Bound {
    pub(super) fn bytes(&self) -> u64 {
        self.terms.iter().map(|term| term.number * term.bytes).sum()
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
        write!(
            out,
            "{} {:.0} MiB above idle =",
            self.role,
            mib(self.bytes())
        )?;
        for (
            at,
            Term {
                what,
                number,
                bytes,
            },
        ) in self.terms.iter().enumerate()
        {
            let plus = if at == 0 { "" } else { " +" };
            let total = mib(number * bytes);
            write!(out, "{plus} {what} {number} × {bytes} B ({total:.0} MiB)")?;
        }
        Ok(())
    }
}
