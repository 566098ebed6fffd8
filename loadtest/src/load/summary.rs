use hdrhistogram::Histogram;

use super::Load;
use super::churn::Churn;
use crate::engine::Engine;
use crate::engine::tally::{Counts, LATE, Timing};
use crate::engine::watch::Seen;
use crate::outcome::Outcome;
use crate::times;

pub(super) struct Run<'a> {
    pub(super) options: &'a Load,
    pub(super) engine: &'a Engine,
    pub(super) seen: Seen,
    pub(super) churn: Option<&'a Churn>,
    pub(super) updates: u64,
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
    pub(super) fn into_outcome(self, mut outcome: Outcome) -> Outcome {
        let tally = &self.engine.shared.tally;
        let counts = tally.counts();
        outcome.seconds = (self.seen.last.at - self.seen.first.at).as_secs_f64();
        self.throughput(&mut outcome);
        self.latencies(&mut outcome, &counts);
        self.by_stage(&mut outcome, &counts);
        self.others(&mut outcome, &counts);
        outcome.series = self.seen.series;
        outcome.violations = tally.findings.violations();
        outcome
    }

    fn throughput(&self, outcome: &mut Outcome) {
        let Seen { first, last, .. } = &self.seen;
        let (calls, seconds) = (last.calls - first.calls, outcome.seconds);
        outcome.higher("calls a second", calls as f64 / seconds, "1/s");
        outcome.plain("calls answered", calls as f64, "");
        if let (Some((before, others_before)), Some((after, others))) = (&first.usage, &last.usage)
        {
            let cpu = after.cpu.saturating_sub(before.cpu).as_secs_f64();
            let others = others.saturating_sub(*others_before).as_secs_f64();
            let name = match self.churn {
                None => "server CPU per call",
                Some(_) => "server CPU per call, with that of churn",
            };
            outcome.lower(name, cpu * 1e6 / calls.max(1) as f64, "µs");
            outcome.plain("server cores busy", cpu / seconds, "cores");
            outcome.plain("other work on the machine", others / seconds, "cores");
            let mib = after.rss_kib as f64 / 1024.0;
            outcome.lower("server memory at the end", mib, "MiB");
        }
    }

    fn latencies(&self, outcome: &mut Outcome, counts: &Counts) {
        let sent = sum(&counts.stages[1..], |timing| &timing.from_sent);
        match &self.engine.pacer {
            None => outcome.latency("latency of a call", &sent),
            Some(pacer) => {
                let due = sum(&counts.stages[1..], |timing| &timing.from_due);
                outcome.latency("latency from when a call was due", &due);
                outcome.latency("latency from when a call was sent", &sent);
                self.schedule(outcome, pacer.behind(), counts.late, due.len());
            }
        }
        let kinds = self.options.mix.kinds();
        if kinds.len() > 1 {
            for (kind, times) in kinds.zip(&counts.kinds) {
                outcome.latency(kind.to_string(), times);
            }
        }
    }

    fn schedule(&self, outcome: &mut Outcome, unsent: u64, late: u64, due: u64) {
        let sessions = self.options.sessions;
        let name = "calls outstanding at most, one per session";
        outcome.plain(name, sessions.most(), "");
        outcome.lower("calls due and never sent", unsent as f64, "");
        let name = "calls sent late though most sessions were free";
        outcome.lower(name, late as f64, "");
        let what = format!(
            "calls due and never sent {unsent}: at most 0 (where there are some, the server is slower than the rate, \
             or {sessions} sessions are too few for it)"
        );
        outcome.verdict(what, unsent == 0);
        let what = format!(
            "calls sent more than {} ms late though most sessions were free {late}: at most 1 % of {due} (where there \
             are more, the generator had too little CPU time, and latencies from when a call was due hold its delay)",
            LATE.as_millis()
        );
        outcome.verdict(what, late * 100 <= due);
    }

    fn by_stage(&self, outcome: &mut Outcome, counts: &Counts) {
        let p99_ms = |timing: &Timing| times::quantile_ms(&timing.from_due, 0.99);
        let stages = self.engine.stages.all.iter().zip(&counts.stages).skip(1);
        if stages.len() < 2 {
            return;
        }
        for (stage, timing) in stages {
            let name = &stage.name;
            let rate = timing.from_sent.len() as f64 / stage.length.as_secs_f64();
            outcome.higher(format!("{name}: calls a second"), rate, "1/s");
            outcome.lower(format!("{name}: p99"), p99_ms(timing), "ms");
            outcome.latency(name, &timing.from_due);
            outcome.mark(stage.start.as_secs_f64(), name);
        }
        if self.options.slow_readers > 0 {
            let ratio = p99_ms(&counts.stages[2]) / p99_ms(&counts.stages[1]);
            let name = "p99 of the others, with slow readers over without";
            outcome.lower(name, ratio, "×");
        }
    }

    fn others(&self, outcome: &mut Outcome, counts: &Counts) {
        if counts.refused > 0 {
            let name = "calls turned away (HTTP 429 or 503)";
            outcome.lower(name, counts.refused as f64, "");
        }
        if let Some(churn) = self.churn {
            let rate = churn.ended() as f64 / outcome.seconds;
            outcome.higher("sessions opened, used and ended", rate, "1/s");
            outcome.latency("opening a session, from when it was due", &churn.opened());
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

fn sum(timings: &[Timing], of: impl Fn(&Timing) -> &Histogram<u64>) -> Histogram<u64> {
    let mut all = of(&timings[0]).clone();
    for timing in &timings[1..] {
        all.add(of(timing)).expect("the bounds are the same");
    }
    all
}
