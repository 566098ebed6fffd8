mod latencies;

use super::Load;
use super::ramp::Ramp;
use super::stage::Stages;
use super::tally::Counts;
use super::usage::Usage;
use super::watch::{Reading, Seen};
use crate::outcome::{Better, Distribution, Outcome};

pub(super) struct Run<'a> {
    pub(super) options: &'a Load,
    pub(super) stages: &'a Stages,
    pub(super) counts: &'a Counts,
    pub(super) seen: Seen,
    pub(super) unsent: u64,
    pub(super) churn_unsent: u64,
    pub(super) updates: u64,
    /// Memory before and after the first sessions were opened.
    pub(super) memory: Option<(Usage, Usage)>,
    pub(super) opened: usize,
}

pub(super) fn title(options: &Load) -> String {
    let how = match options.rate {
        Some(rate) => format!(
            "{rate} calls/s, open loop, over {} sessions",
            options.sessions
        ),
        None => format!("closed loop over {} sessions", options.sessions),
    };
    let (mode, urls) = (options.mode.name(), options.urls.join(" "));
    format!("{} {mode}, {how}, at {urls}", options.mix)
}

impl Run<'_> {
    pub(super) fn into_outcome(mut self, mut outcome: Outcome) -> Outcome {
        self.parameters(&mut outcome);
        let (first, last) = self.seen.measured.clone();
        outcome.seconds = (last.at - first.at).as_secs_f64();
        self.throughput(&mut outcome, &first, &last);
        self.memory(&mut outcome, &last);
        self.latencies(&mut outcome);
        self.by_stage(&mut outcome);
        self.others(&mut outcome);
        outcome.series = std::mem::take(&mut self.seen.series);
        outcome.violations = self.counts.violations();
        outcome
    }

    fn parameters(&self, outcome: &mut Outcome) {
        let options = self.options;
        let mut put = |name: &str, value: String| outcome.parameters.insert(name.to_owned(), value);
        put("url", options.urls.join(" "));
        put("mode", options.mode.name().to_owned());
        put("sessions", options.sessions.to_string());
        put(
            "rate",
            options
                .rate
                .map_or("closed loop".to_owned(), |rate| rate.to_string()),
        );
        put("mix", options.mix.to_string());
        put("duration", format!("{:?}", options.duration));
        put("warmup", format!("{:?}", options.warmup));
        put("timeout", format!("{:?}", options.timeout));
        put(
            "churn",
            options
                .churn
                .map_or("none".to_owned(), |rate| rate.to_string()),
        );
        put("slow-readers", options.slow_readers.to_string());
        put("listeners", options.listeners.to_string());
        put("seed", options.seed.to_string());
        put("threads", options.threads.to_string());
    }

    fn throughput(&self, outcome: &mut Outcome, first: &Reading, last: &Reading) {
        let (calls, seconds) = (last.calls - first.calls, outcome.seconds);
        outcome.figure(
            "calls a second",
            calls as f64 / seconds,
            "1/s",
            Better::Higher,
        );
        outcome.figure("calls answered", calls as f64, "", Better::Neither);
        if let (Some(before), Some(after)) = (&first.usage, &last.usage) {
            let cpu = after.cpu.saturating_sub(before.cpu).as_secs_f64();
            let others = after.others.saturating_sub(before.others).as_secs_f64();
            let name = match self.options.churn {
                None => "server CPU per call",
                Some(_) => "server CPU per call, with that of churn",
            };
            outcome.figure(name, cpu * 1e6 / calls.max(1) as f64, "µs", Better::Lower);
            outcome.figure("server cores busy", cpu / seconds, "cores", Better::Neither);
            outcome.figure(
                "other work on the machine",
                others / seconds,
                "cores",
                Better::Neither,
            );
        }
    }

    fn memory(&self, outcome: &mut Outcome, last: &Reading) {
        let mib = |usage: &Usage| usage.memory_kib() as f64 / 1024.0;
        if let Some((before, open)) = &self.memory {
            let grown = open.memory_kib().saturating_sub(before.memory_kib()) as f64;
            outcome.figure(
                "server memory before the sessions",
                mib(before),
                "MiB",
                Better::Lower,
            );
            let name = "server memory grown per session opened";
            outcome.figure(name, grown / self.opened as f64, "KiB", Better::Lower);
        }
        if let Some(usage) = &last.usage {
            outcome.figure("server memory at the end", mib(usage), "MiB", Better::Lower);
        }
    }

    fn others(&self, outcome: &mut Outcome) {
        if self.counts.refused > 0 {
            let name = "calls turned away (HTTP 429 or 503)";
            outcome.figure(name, self.counts.refused as f64, "", Better::Lower);
        }
        if self
            .options
            .churn
            .is_some_and(|rate: Ramp| rate.most() > 0.0)
        {
            let rate = self.counts.churned as f64 / outcome.seconds;
            outcome.figure(
                "sessions opened, used and ended",
                rate,
                "1/s",
                Better::Higher,
            );
            let unsent = self.churn_unsent as f64;
            outcome.figure("sessions due and never opened", unsent, "", Better::Lower);
            let name = "opening a session, from when it was due";
            outcome
                .latencies
                .push(Distribution::of(name, &self.counts.opened));
        }
        if self.options.listeners > 0 {
            let listeners = self.options.listeners as f64;
            outcome.figure("streams held open", listeners, "", Better::Neither);
            outcome.figure(
                "updates told to listeners",
                self.updates as f64,
                "",
                Better::Neither,
            );
        }
        for (what, count) in &self.counts.events {
            outcome.figure(*what, *count as f64, "", Better::Neither);
        }
    }
}
