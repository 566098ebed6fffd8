//! The audit trail: who was let in, who was allowed what, and what became of each call (`docs/audit.md`).
//!
//! Whoever decides tells it here, once for each decision. Nobody waits: what finds no room on its way out is dropped, and
//! counted.

mod arguments;
mod config;
mod event;
mod file;
pub mod keys;
mod line;
mod time;

use std::io;
use std::sync::OnceLock;
use std::time::Duration;

use opentelemetry::logs::{Logger as _, LoggerProvider as _};
use opentelemetry_sdk::logs::SdkLogger;

use self::arguments::Arguments;
pub use self::config::{Audit, Kind};
pub use self::event::Event;
use crate::lines::Lines;
use crate::metrics::{AuditSink, metrics};
use crate::state;

/// The trail of this process.
static TRAIL: OnceLock<Trail> = OnceLock::new();

struct Trail {
    kinds: Vec<Kind>,
    arguments: Arguments,
    file: Option<Lines>,
    collector: Option<SdkLogger>,
}

/// Keeps a trail from now on, for the whole process. Comes after [`init`](crate::init). Without a place to go it does nothing.
///
/// # Errors
/// The file cannot be opened, with its name.
pub fn start(audit: &Audit) -> io::Result<()> {
    let file = audit.file.as_deref();
    let file = file.map(|path| file::open(path, audit.queue_bytes));
    let collector = audit.otlp.then(state::loggers).flatten();
    let trail = Trail {
        kinds: audit.events.clone(),
        arguments: Arguments::new(audit),
        file: file.transpose()?,
        collector: collector.map(|loggers| loggers.logger("shoal.audit")),
    };
    if trail.file.is_some() || trail.collector.is_some() {
        let _ = TRAIL.set(trail);
    }
    Ok(())
}

/// Whether there is a trail: what only an event needs is not gathered otherwise.
#[must_use]
pub fn enabled() -> bool {
    TRAIL.get().is_some()
}

/// Whether events of a kind are recorded.
#[must_use]
pub fn keeps(kind: Kind) -> bool {
    TRAIL.get().is_some_and(|trail| trail.kinds.contains(&kind))
}

/// Records an event, which `fill` describes. It is not called when nobody keeps events of the kind.
pub fn record(kind: Kind, fill: impl FnOnce(&mut Event)) {
    let Some(trail) = TRAIL.get().filter(|trail| trail.kinds.contains(&kind)) else {
        return;
    };
    let record =
        (trail.collector.as_ref()).map(|collector| Box::new(collector.create_log_record()));
    let mut event = Event::new(kind, &trail.arguments, trail.file.is_some(), record);
    fill(&mut event);
    let (line, record) = event.finish();
    if let Some((file, mut line)) = trail.file.as_ref().zip(line) {
        let kept = file.push(line.finish());
        count(AuditSink::File, kept);
    }
    if let Some((collector, record)) = trail.collector.as_ref().zip(record) {
        // What is lost from here on is counted with all else that does not reach the collector.
        collector.emit(*record);
        count(AuditSink::Otlp, true);
    }
}

/// Waits until the events recorded so far stand in the file, for `within` at most.
pub fn flush(within: Duration) {
    if let Some(file) = TRAIL.get().and_then(|trail| trail.file.as_ref()) {
        file.flush(within);
    }
}

fn count(sink: AuditSink, kept: bool) {
    let audit = &metrics().audit;
    match kept {
        true => audit.recorded(sink),
        false => audit.lost(sink, 1),
    }
}
