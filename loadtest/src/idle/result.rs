use hdrhistogram::Histogram;

use super::memory::Reading;
use super::server::Server;
use super::summary::{Summary, histogram};
use super::verdict;
use crate::cli;
use crate::outcome::{Outcome, Violation};

pub(super) fn begin(arguments: &cli::Idle) -> Outcome {
    let nodes = arguments.session_nodes;
    let whom = match &arguments.shoal {
        Some(_) if arguments.cluster => format!("Shoal with two edges and {nodes} session nodes"),
        Some(_) => "Shoal in one process".to_owned(),
        None => arguments.urls.join(", "),
    };
    let era = arguments.mode.name();
    let title = format!("{} idle {era} streams of {whom}", arguments.streams);
    let mut outcome = Outcome::begin("idle", title);
    outcome.parameters(&[
        ("mode", &era),
        ("streams", &arguments.streams),
        ("bare-sessions", &arguments.bare_sessions),
        ("settle", &format!("{:?}", arguments.settle)),
        ("hold", &format!("{:?}", arguments.hold)),
        ("rate", &arguments.rate),
        ("callers", &arguments.callers),
        ("keep-alive", &format!("{:?}", arguments.keep_alive)),
    ]);
    outcome
}

/// The calls while the streams were held.
pub(super) struct Called {
    pub(super) latency: Histogram<u64>,
    pub(super) violations: Vec<Violation>,
}

pub(super) struct Sample {
    pub(super) seconds: f64,
    pub(super) open: usize,
    pub(super) memory: Reading,
}

pub(super) struct BareResult {
    pub(super) before: Reading,
    pub(super) after: Reading,
    pub(super) open: usize,
    pub(super) summary: Summary,
}

pub(super) struct Measured {
    pub(super) floor_kib: Option<f64>,
    pub(super) before: Reading,
    pub(super) opened: Reading,
    pub(super) settled: Reading,
    pub(super) end: Reading,
    pub(super) open: usize,
    pub(super) summary: Summary,
    pub(super) calls: Option<Called>,
    pub(super) samples: Vec<Sample>,
    pub(super) seconds: f64,
    pub(super) bare: Option<BareResult>,
}

impl Measured {
    pub(super) fn write(&self, outcome: &mut Outcome, arguments: &cli::Idle, server: &Server) {
        outcome.seconds = self.seconds;
        self.write_memory(outcome, server);
        self.write_streams(outcome);
        self.write_calls(outcome, arguments);
        self.write_series(outcome, server);
        verdict::write(self, outcome, arguments, server);
    }

    pub(super) fn kib_per_stream(&self, server: &Server, kind: &str) -> f64 {
        let grown = self
            .settled
            .grown_kib(&self.before, kind, &server.processes);
        grown / self.open.max(1) as f64
    }

    fn write_memory(&self, outcome: &mut Outcome, server: &Server) {
        if let Some(floor) = self.floor_kib {
            outcome.plain("floor: resident memory a stream", floor, "KiB");
        }
        let moments = [
            ("before", &self.before),
            ("when all was open", &self.opened),
            ("settled", &self.settled),
            ("at the end", &self.end),
        ];
        for process in &server.processes {
            for (when, reading) in moments {
                let kib = reading.resident.get(&process.name).copied().unwrap_or(0);
                let name = format!("{}: resident memory {when}", process.name);
                outcome.lower(name, kib as f64, "KiB");
            }
        }
        if self.open > 0 {
            for kind in server.kinds() {
                let kib = self.kib_per_stream(server, kind);
                let name = format!("{kind}: resident memory a stream");
                outcome.lower(name, kib, "KiB");
            }
            if let Some(kib) = self.settled.redis_grown_kib(&self.before) {
                let name = "redis: used memory a session with a stream";
                outcome.lower(name, kib / self.open as f64, "KiB");
            }
        }
        if let Some(bare) = &self.bare {
            for kind in server.kinds() {
                let grown = bare.after.grown_kib(&bare.before, kind, &server.processes);
                let name = format!("{kind}: resident memory a session without a stream");
                outcome.lower(name, grown / bare.open.max(1) as f64, "KiB");
            }
            if let Some(kib) = bare.redis_kib() {
                let name = "redis: used memory a session without a stream";
                outcome.lower(name, kib, "KiB");
            }
        }
    }

    fn write_streams(&self, outcome: &mut Outcome) {
        let summary = &self.summary;
        outcome.higher("streams open when settled", self.open as f64, "");
        outcome.plain("signs of life", summary.signs as f64, "");
        outcome.lower("late keep-alives", summary.late as f64, "");
        let opening = histogram(&summary.opening_ms);
        outcome.latency("opening a session with its stream", &opening);
        let between = histogram(&summary.between_ms);
        outcome.latency("between two signs of life of a stream", &between);
        let bare = self.bare.as_ref().map(|bare| &bare.summary);
        let refused = summary.refused + bare.map_or(0, |bare| bare.refused);
        let example = summary.example.as_ref();
        let example = example.or_else(|| bare?.example.as_ref());
        let example = example.map_or("no keep-alive in time", String::as_str);
        let what = "streams or sessions that could not be opened";
        outcome.violation(what, refused, example);
        outcome.violation("streams that were dropped", summary.dropped, example);
        outcome.violation("keep-alives missed", summary.missed, example);
    }

    fn write_calls(&self, outcome: &mut Outcome, arguments: &cli::Idle) {
        let Some(calls) = &self.calls else {
            return;
        };
        let rate = calls.latency.len() as f64 / arguments.hold.as_secs_f64();
        outcome.higher("calls answered rightly", rate, "1/s");
        let name = "echo calls meanwhile, from when each was due";
        outcome.latency(name, &calls.latency);
        outcome.violations.extend_from_slice(&calls.violations);
    }

    fn write_series(&self, outcome: &mut Outcome, server: &Server) {
        let points = |of: &dyn Fn(&Sample) -> f64| {
            let samples = self.samples.iter();
            samples.map(|sample| (sample.seconds, of(sample))).collect()
        };
        outcome.series("open streams", "", points(&|sample| sample.open as f64));
        for process in &server.processes {
            let kib = |sample: &Sample| {
                let known = sample.memory.resident.get(&process.name);
                known.copied().unwrap_or(0) as f64
            };
            outcome.series(
                format!("{}: resident memory", process.name),
                "KiB",
                points(&kib),
            );
        }
    }
}

impl BareResult {
    pub(super) fn redis_kib(&self) -> Option<f64> {
        let kib = self.after.redis_grown_kib(&self.before)?;
        Some(kib / self.open.max(1) as f64)
    }
}
