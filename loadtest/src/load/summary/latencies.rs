use hdrhistogram::Histogram;

use super::Run;
use crate::load::tally::{LATE, Timing};
use crate::outcome::Outcome;
use crate::times;

impl Run<'_> {
    pub(super) fn latencies(&self, outcome: &mut Outcome) {
        let measured = &self.counts.stages[1..];
        let sent = sum(measured, |timing| &timing.from_sent);
        if self.options.rate.is_none() {
            outcome.latency("latency of a call", &sent);
        } else {
            let due = sum(measured, |timing| &timing.from_due);
            outcome.latency("latency from when a call was due", &due);
            outcome.latency("latency from when a call was sent", &sent);
            let name = "behind schedule: from when a call was due to when it was sent";
            outcome.latency(name, &self.counts.lag);
            self.schedule(outcome, due.len());
        }
        let kinds = self.options.mix.kinds();
        if kinds.len() > 1 {
            for (kind, timing) in kinds.zip(&self.counts.kinds) {
                outcome.latency(kind.to_string(), &timing.from_due);
            }
        }
    }

    fn schedule(&self, outcome: &mut Outcome, due: u64) {
        let (sessions, unsent, late) = (self.options.sessions, self.unsent, self.counts.late);
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

    pub(super) fn by_stage(&self, outcome: &mut Outcome) {
        if self.counts.stages.len() < 3 {
            return;
        }
        for (stage, timing) in self.stages.all.iter().zip(&self.counts.stages).skip(1) {
            let name = &stage.name;
            let rate = timing.from_sent.len() as f64 / stage.length.as_secs_f64();
            outcome.higher(format!("{name}: calls a second"), rate, "1/s");
            outcome.lower(format!("{name}: p99"), p99_ms(timing), "ms");
            outcome.latency(name, &timing.from_due);
            outcome.mark(stage.start.as_secs_f64(), name);
        }
        if self.options.slow_readers > 0 {
            let [_, without, with] = self.counts.stages.as_slice() else {
                return;
            };
            let ratio = p99_ms(with) / p99_ms(without);
            let name = "p99 of the others, with slow readers over without";
            outcome.lower(name, ratio, "×");
        }
    }
}

fn p99_ms(timing: &Timing) -> f64 {
    times::quantile_ms(&timing.from_due, 0.99)
}

fn sum(timings: &[Timing], of: impl Fn(&Timing) -> &Histogram<u64>) -> Histogram<u64> {
    let mut all = of(&timings[0]).clone();
    for timing in &timings[1..] {
        all.add(of(timing)).expect("the bounds are the same");
    }
    all
}
