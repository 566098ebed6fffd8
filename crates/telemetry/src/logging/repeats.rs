use std::collections::HashMap;
use std::fmt;
use std::hash::{DefaultHasher, Hasher as _};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tracing::callsite::Identifier;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

use crate::config::Logs;
use crate::metrics::metrics;

const TARGET: &str = "shoal_telemetry::repeats";
/// Maximum messages that are counted separately. Further messages from the same place in the code count together.
const MOST: usize = 1_024;
const SHOWN: usize = 160;

/// The field that names the kind of a refusal. Callers can cause any number of refusals, so an interval logs one line
/// of each kind.
const REFUSAL: &str = "refusal";

/// The place in the code, and a hash of the message or of the refusal's kind.
type RepeatKey = (Identifier, u64);

#[derive(Debug)]
pub(crate) struct Repeats {
    limit: u32,
    interval: Duration,
    counted: Mutex<Counted>,
}

#[derive(Debug, Default)]
struct Counted {
    windows: HashMap<RepeatKey, Window>,
    is_reporting: bool,
}

#[derive(Debug)]
struct Window {
    since: Instant,
    passed: u32,
    left_out: Option<SuppressedLines>,
}

#[derive(Debug)]
struct SuppressedLines {
    count: u64,
    level: Level,
    target: &'static str,
    message: String,
    refusal: Option<String>,
}

impl Repeats {
    pub(crate) fn new(logs: &Logs) -> Self {
        Self {
            limit: logs.repeats,
            interval: logs.repeats_per.get(),
            counted: Mutex::default(),
        }
    }

    fn admit(self: &Arc<Self>, event: &Event<'_>, now: Instant) -> bool {
        let metadata = event.metadata();
        if metadata.target() == TARGET {
            return true;
        }
        let (kind, limit) = match is_refusal(event) {
            true => (hash(event, REFUSAL), 1),
            false => (hash(event, MESSAGE), self.limit),
        };
        let mut key = (metadata.callsite(), kind);
        let mut counted = self.counted.lock();
        if counted.windows.len() >= MOST && !counted.windows.contains_key(&key) {
            let interval = self.interval;
            counted.windows.retain(|_, window| {
                window.left_out.is_some() || now.duration_since(window.since) < interval
            });
            if counted.windows.len() >= MOST {
                key.1 = 0;
            }
        }
        let window = counted.windows.entry(key).or_insert(Window {
            since: now,
            passed: 0,
            left_out: None,
        });
        // A new interval begins only once the last one's suppressed lines are reported.
        if window.left_out.is_none() && now.duration_since(window.since) >= self.interval {
            window.since = now;
            window.passed = 0;
        }
        if window.passed < limit {
            window.passed += 1;
            return true;
        }
        let left_out = window.left_out.get_or_insert_with(|| SuppressedLines {
            count: 0,
            level: *metadata.level(),
            target: metadata.target(),
            message: text(event, MESSAGE),
            refusal: is_refusal(event).then(|| text(event, REFUSAL)),
        });
        left_out.count += 1;
        let start = !std::mem::replace(&mut counted.is_reporting, true);
        drop(counted);
        metrics().telemetry.suppressed();
        if start {
            self.start_reporting();
        }
        false
    }

    /// Reports suppressed lines even if no further line comes.
    fn start_reporting(self: &Arc<Self>) {
        let this = Arc::clone(self);
        let spawned = thread::Builder::new()
            .name("log-repeats".to_owned())
            .spawn(move || {
                while let Some(wait) = this.until_due() {
                    thread::sleep(wait);
                    this.report(Instant::now());
                }
            });
        if spawned.is_err() {
            self.counted.lock().is_reporting = false;
        }
    }

    fn until_due(&self) -> Option<Duration> {
        let mut counted = self.counted.lock();
        let next = (counted.windows.values())
            .filter(|window| window.left_out.is_some())
            .map(|window| window.since + self.interval)
            .min();
        counted.is_reporting = next.is_some();
        next.map(|due| due.saturating_duration_since(Instant::now()))
    }

    fn report(&self, now: Instant) {
        let interval = self.interval;
        let mut due = Vec::new();
        self.counted.lock().windows.retain(|_, window| {
            let is_over = now.duration_since(window.since) >= interval;
            if is_over {
                due.extend(window.left_out.take());
            }
            !is_over
        });
        say(due);
    }

    pub(crate) fn report_all(&self) {
        let due = (self.counted.lock().windows.values_mut())
            .filter_map(|window| window.left_out.take())
            .collect();
        say(due);
    }
}

fn say(due: Vec<SuppressedLines>) {
    for SuppressedLines {
        count,
        level,
        target,
        message,
        refusal,
    } in due
    {
        if level == Level::ERROR {
            tracing::error!(
                target: TARGET,
                suppressed = count,
                from = target,
                line = message,
                kind = refusal,
                "lines that repeat were left out"
            );
        } else {
            tracing::warn!(
                target: TARGET,
                suppressed = count,
                from = target,
                line = message,
                kind = refusal,
                "lines that repeat were left out"
            );
        }
    }
}

#[derive(Debug)]
pub(super) struct Gate(pub(super) Arc<Repeats>);

impl<S: Subscriber> Layer<S> for Gate {
    fn event_enabled(&self, event: &Event<'_>, _: Context<'_, S>) -> bool {
        self.0.admit(event, Instant::now())
    }
}

const MESSAGE: &str = "message";

fn is_refusal(event: &Event<'_>) -> bool {
    event.metadata().fields().field(REFUSAL).is_some()
}

struct Text<W>(&'static str, W);

impl<W: fmt::Write> Visit for Text<W> {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.record_debug(field, &format_args!("{value}"));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == self.0 {
            // A truncated text is enough, so a full buffer is no error.
            let _ = write!(self.1, "{value:?}");
        }
    }
}

fn hash(event: &Event<'_>, field: &'static str) -> u64 {
    struct Hashing(DefaultHasher);

    impl fmt::Write for Hashing {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            self.0.write(text.as_bytes());
            Ok(())
        }
    }

    let mut visitor = Text(field, Hashing(DefaultHasher::new()));
    event.record(&mut visitor);
    visitor.1.0.finish()
}

fn text(event: &Event<'_>, field: &'static str) -> String {
    struct Cut(String);

    impl fmt::Write for Cut {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            let left = SHOWN.saturating_sub(self.0.chars().count());
            self.0.extend(text.chars().take(left));
            if left == 0 { Err(fmt::Error) } else { Ok(()) }
        }
    }

    let mut visitor = Text(field, Cut(String::new()));
    event.record(&mut visitor);
    visitor.1.0
}
