mod latencies;

use super::Load;
use super::stage::Stages;
use super::tally::Counts;
use super::usage::Usage;
use super::watch::{Reading, Seen};
use crate::findings::Findings;
use crate::outcome::Outcome;

pub(super) struct Run<'a> {
    pub(super) options: &'a Load,
    pub(super) stages: &'a Stages,
    pub(super) counts: &'a Counts,
    pub(super) findings: &'a Findings,
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
        outcome.violations = self.findings.violations();
        outcome
    }

    fn parameters(&self, outcome: &mut Outcome) {
        let Load { rate, churn, .. } = self.options;
        let rate = rate.map_or("closed loop".to_owned(), |rate| rate.to_string());
        let churn = churn.map_or("none".to_owned(), |rate| rate.to_string());
        let options = self.options;
        outcome.parameters(&[
            ("url", &options.urls.join(" ")),
            ("mode", &options.mode.name()),
            ("sessions", &options.sessions),
            ("rate", &rate),
            ("mix", &options.mix),
            ("duration", &format!("{:?}", options.duration)),
            ("warmup", &format!("{:?}", options.warmup)),
            ("timeout", &format!("{:?}", options.timeout)),
            ("churn", &churn),
            ("slow-readers", &options.slow_readers),
            ("listeners", &options.listeners),
            ("seed", &options.seed),
            ("threads", &options.threads),
        ]);
    }

    fn throughput(&self, outcome: &mut Outcome, first: &Reading, last: &Reading) {
        let (calls, seconds) = (last.calls - first.calls, outcome.seconds);
        outcome.higher("calls a second", calls as f64 / seconds, "1/s");
        outcome.plain("calls answered", calls as f64, "");
        if let (Some(before), Some(after)) = (&first.usage, &last.usage) {
            let cpu = after.cpu.saturating_sub(before.cpu).as_secs_f64();
            let others = after.others.saturating_sub(before.others).as_secs_f64();
            let name = match self.options.churn {
                None => "server CPU per call",
                Some(_) => "server CPU per call, with that of churn",
            };
            outcome.lower(name, cpu * 1e6 / calls.max(1) as f64, "µs");
            outcome.plain("server cores busy", cpu / seconds, "cores");
            outcome.plain("other work on the machine", others / seconds, "cores");
        }
    }

    fn memory(&self, outcome: &mut Outcome, last: &Reading) {
        let mib = |usage: &Usage| usage.memory_kib() as f64 / 1024.0;
        if let Some((before, open)) = &self.memory {
            let grown = open.memory_kib().saturating_sub(before.memory_kib()) as f64;
            outcome.lower("server memory before the sessions", mib(before), "MiB");
            let name = "server memory grown per session opened";
            outcome.lower(name, grown / self.opened as f64, "KiB");
        }
        if let Some(usage) = &last.usage {
            outcome.lower("server memory at the end", mib(usage), "MiB");
        }
    }

    fn others(&self, outcome: &mut Outcome) {
        let counts = self.counts;
        if counts.refused > 0 {
            let name = "calls turned away (HTTP 429 or 503)";
            outcome.lower(name, counts.refused as f64, "");
        }
        if self.options.churn.is_some() {
            let rate = counts.churned as f64 / outcome.seconds;
            outcome.higher("sessions opened, used and ended", rate, "1/s");
            let unsent = self.churn_unsent as f64;
            outcome.lower("sessions due and never opened", unsent, "");
            outcome.latency("opening a session, from when it was due", &counts.opened);
        }
        if self.options.listeners > 0 {
            let listeners = self.options.listeners as f64;
            outcome.plain("streams held open", listeners, "");
            outcome.plain("updates told to listeners", self.updates as f64, "");
        }
        for (what, count) in &counts.events {
            outcome.plain(*what, *count as f64, "");
        }
    }
}
