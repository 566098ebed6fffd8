//! The audit trail (`docs/audit.md`). Recording does not block: an event that finds its queue full is dropped and
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

use self::arguments::AuditedArguments;
pub use self::config::{Audit, Kind};
pub use self::event::Event;
use crate::lines::LineSink;
use crate::metrics::{AuditSink, metrics};
use crate::state;

static TRAIL: OnceLock<Trail> = OnceLock::new();

struct Trail {
    kinds: Vec<Kind>,
    arguments: AuditedArguments,
    file: Option<LineSink>,
    collector: Option<SdkLogger>,
}

/// Starts this process's trail. Call it after [`init`](crate::init).
///
/// # Errors
///
/// If the file cannot be opened.
pub fn start(audit: &Audit) -> io::Result<()> {
    let file = audit.file.as_deref();
    let file = file.map(|path| file::open(path, audit.queue_bytes));
    let collector = audit.otlp.then(state::loggers).flatten();
    let trail = Trail {
        kinds: audit.events.clone(),
        arguments: AuditedArguments::new(audit),
        file: file.transpose()?,
        collector: collector.map(|loggers| loggers.logger("shoal.audit")),
    };
    if trail.file.is_some() || trail.collector.is_some() {
        let _ = TRAIL.set(trail);
    }
    Ok(())
}

/// Whether there is an audit trail. Ask before gathering data for events.
#[must_use]
pub fn enabled() -> bool {
    TRAIL.get().is_some()
}

/// Whether events of this kind are recorded.
#[must_use]
pub fn keeps(kind: Kind) -> bool {
    TRAIL.get().is_some_and(|trail| trail.kinds.contains(&kind))
}

/// Records an event. `fill` runs only if events of this kind are recorded.
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
        collector.emit(*record);
        count(AuditSink::Otlp, true);
    }
}

/// Waits up to `within` until all recorded events are in the file.
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
