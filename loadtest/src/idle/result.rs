use super::calls::Counted;
use super::memory::Reading;
use super::server::Server;
use super::summary::{Summary, histogram};
use super::verdict;
use crate::cli;
use crate::outcome::{Better, Distribution, Outcome, Series, Violation};

pub(super) fn begin(arguments: &cli::Idle) -> Outcome {
    let whom = match &arguments.shoal {
        Some(_) if arguments.cluster => {
            format!(
                "Shoal with two edges and {} session nodes",
                arguments.session_nodes
            )
        }
        Some(_) => "Shoal in one process".to_owned(),
        None => arguments.urls.join(", "),
    };
    let era = arguments.mode.name();
    let title = format!("{} idle {era} streams of {whom}", arguments.streams);
    let mut outcome = Outcome::begin("idle", title);
    for (name, value) in [
        ("mode", era.to_owned()),
        ("streams", arguments.streams.to_string()),
        ("bare-sessions", arguments.bare_sessions.to_string()),
        ("settle", format!("{:?}", arguments.settle)),
        ("hold", format!("{:?}", arguments.hold)),
        ("rate", arguments.rate.to_string()),
        ("callers", arguments.callers.to_string()),
        ("keep-alive", format!("{:?}", arguments.keep_alive)),
    ] {
        outcome.parameters.insert(name.to_owned(), value);
    }
    outcome
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
    pub(super) calls: Option<Counted>,
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
            outcome.figure(
                "floor: resident memory a stream",
                floor,
                "KiB",
                Better::Neither,
            );
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
                outcome.figure(name, kib as f64, "KiB", Better::Lower);
            }
        }
        if self.open > 0 {
            for kind in server.kinds() {
                let kib = self.kib_per_stream(server, kind);
                let name = format!("{kind}: resident memory a stream");
                outcome.figure(name, kib, "KiB", Better::Lower);
            }
            if let Some(kib) = self.settled.redis_grown_kib(&self.before) {
                let name = "redis: used memory a session with a stream";
                outcome.figure(name, kib / self.open as f64, "KiB", Better::Lower);
            }
        }
        if let Some(bare) = &self.bare {
            for kind in server.kinds() {
                let grown = bare.after.grown_kib(&bare.before, kind, &server.processes);
                let name = format!("{kind}: resident memory a session without a stream");
                outcome.figure(name, grown / bare.open.max(1) as f64, "KiB", Better::Lower);
            }
            if let Some(kib) = bare.redis_kib() {
                let name = "redis: used memory a session without a stream";
                outcome.figure(name, kib, "KiB", Better::Lower);
            }
        }
    }

    fn write_streams(&self, outcome: &mut Outcome) {
        let summary = &self.summary;
        outcome.figure(
            "streams open when settled",
            self.open as f64,
            "",
            Better::Higher,
        );
        outcome.figure("signs of life", summary.signs as f64, "", Better::Neither);
        outcome.figure("late keep-alives", summary.late as f64, "", Better::Lower);
        for (name, counted) in [
            ("opening a session with its stream", &summary.opening_ms),
            ("between two signs of life of a stream", &summary.between_ms),
        ] {
            outcome
                .latencies
                .push(Distribution::of(name, &histogram(counted)));
        }
        let bare = self.bare.as_ref().map(|bare| &bare.summary);
        let refused = summary.refused + bare.map_or(0, |bare| bare.refused);
        let example = summary.example.as_ref();
        let example = example.or_else(|| bare?.example.as_ref());
        let example = example.map_or("no keep-alive in time", String::as_str);
        violation(
            outcome,
            "streams or sessions that could not be opened",
            refused,
            example,
        );
        violation(
            outcome,
            "streams that were dropped",
            summary.dropped,
            example,
        );
        violation(outcome, "keep-alives missed", summary.missed, example);
    }

    fn write_calls(&self, outcome: &mut Outcome, arguments: &cli::Idle) {
        let Some(calls) = &self.calls else {
            return;
        };
        let rate = calls.latency.len() as f64 / arguments.hold.as_secs_f64();
        outcome.figure("calls answered rightly", rate, "1/s", Better::Higher);
        let name = "echo calls meanwhile, from when each was due";
        outcome
            .latencies
            .push(Distribution::of(name, &calls.latency));
        let example = calls.example.as_deref().unwrap_or_default();
        violation(outcome, "calls answered wrongly", calls.wrong, example);
        violation(outcome, "calls not answered", calls.failed, example);
    }

    fn write_series(&self, outcome: &mut Outcome, server: &Server) {
        let points = |of: &dyn Fn(&Sample) -> f64| {
            let samples = self.samples.iter();
            samples.map(|sample| (sample.seconds, of(sample))).collect()
        };
        outcome.series.push(Series {
            name: "open streams".to_owned(),
            unit: String::new(),
            points: points(&|sample| sample.open as f64),
        });
        for process in &server.processes {
            let kib = |sample: &Sample| {
                let known = sample.memory.resident.get(&process.name);
                known.copied().unwrap_or(0) as f64
            };
            outcome.series.push(Series {
                name: format!("{}: resident memory", process.name),
                unit: "KiB".to_owned(),
                points: points(&kib),
            });
        }
    }
}

impl BareResult {
    pub(super) fn redis_kib(&self) -> Option<f64> {
        let kib = self.after.redis_grown_kib(&self.before)?;
        Some(kib / self.open.max(1) as f64)
    }
}

fn violation(outcome: &mut Outcome, what: &str, count: u64, example: &str) {
    if count > 0 {
        outcome.violations.push(Violation {
            what: what.to_owned(),
            count,
            example: example.to_owned(),
        });
    }
}
