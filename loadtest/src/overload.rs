use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use anyhow::ensure;
use clap::Args;
use tokio::time::Instant;

use crate::arrivals::{self, Done, Pool};
use crate::cli::duration;
use crate::engine::call::Caller;
use crate::failure::Failure;
use crate::findings::Findings;
use crate::mcp::Mode;
use crate::mcp::tools::call;
use crate::outcome::Outcome;
use crate::scenario::Subject;
use crate::target::Target;
use crate::times;

/// Minimum goodput, as a fraction of the workers' capacity.
const GOODPUT: f64 = 0.9;

const SHED_WITHIN: Duration = Duration::from_millis(50);

/// The arguments of `loadtest overload`.
#[derive(Debug, Args)]
pub(crate) struct Overload {
    #[command(flatten)]
    pub(crate) subject: Subject,
    /// Number of workers.
    #[arg(long, default_value_t = 2)]
    workers: usize,
    /// Concurrent calls of each worker (`pools.demo.concurrency`).
    #[arg(long, default_value_t = 4)]
    places: usize,
    /// Duration of a call.
    #[arg(long, default_value = "100ms", value_parser = duration)]
    service: Duration,
    /// Calls to send, as a multiple of the workers' capacity.
    #[arg(long, default_value_t = 10.0)]
    times: f64,
    /// Time under load before the measurement; must be longer than a call may wait (`pools.demo.queue_age`).
    #[arg(long, default_value = "8s", value_parser = duration)]
    warmup: Duration,
    /// Time to measure.
    #[arg(long, default_value = "15s", value_parser = duration)]
    duration: Duration,
}

impl Overload {
    fn capacity(&self) -> f64 {
        (self.workers * self.places) as f64 / self.service.as_secs_f64()
    }
}

impl Overload {
    pub(crate) async fn run(&self) -> anyhow::Result<Outcome> {
        ensure!(self.times > 0.0, "some calls must come");
        ensure!(!self.service.is_zero(), "a call must take some time");
        let capacity = self.capacity();
        let mut outcome = Outcome::begin(
            "overload",
            format!(
                "{} workers with {} places, {} × the {capacity:.0} calls/s that they can run",
                self.workers, self.places, self.times
            ),
        );
        let cluster = self.subject.cluster()?.workers(self.workers);
        let cluster = cluster.setting("pools.demo.concurrency", &self.places.to_string());
        let cluster = cluster.start().await?;
        let target = Target::resolve(cluster.url()).await?;
        let pool = Pool::new(target, Mode::Modern);
        let milliseconds = self.service.as_millis();
        let call = |_| {
            let pool = Arc::clone(&pool);
            let arguments = format!(r#"{{"steps":1,"interval_ms":{milliseconds}}}"#);
            async move {
                let calling = async |caller: &mut Caller| {
                    call(
                        &mut caller.client,
                        "long_job",
                        &arguments,
                        "done after 1 steps",
                    )
                    .await
                };
                pool.call(calling).await
            }
        };
        let rate = capacity * self.times;
        crate::progress(&format!("{rate:.0} calls a second"));
        let began = Instant::now() + self.warmup;
        let ended = arrivals::spread(rate, self.warmup + self.duration, call).await;
        outcome.seconds = self.duration.as_secs_f64();
        conclude(&mut outcome, ended, began..began + self.duration, capacity);
        Ok(outcome)
    }
}

fn conclude(outcome: &mut Outcome, ended: Vec<Done>, measured: Range<Instant>, capacity: f64) {
    let (findings, mut done, mut refused) = (Findings::default(), Vec::new(), Vec::new());
    let (mut answered, mut without) = (0_u32, 0_u32);
    for Done { due, ended, result } in ended {
        let took = measured.contains(&due).then_some(ended - due);
        match result {
            Ok(()) => {
                // Counts answers in the measured time, whenever their calls were sent.
                answered += u32::from(measured.contains(&ended));
                done.extend(took);
            }
            Err(Failure::Status {
                status: 429 | 503,
                retry_after_s,
                ..
            }) => {
                without += u32::from(retry_after_s.is_none());
                refused.extend(took);
            }
            // A queued call is refused in a stream.
            Err(Failure::Wrong(why)) if why.contains("50300") => refused.extend(took),
            Err(failure) => findings.failed("a call", &failure),
        }
    }
    outcome.violations = findings.violations();
    let goodput = f64::from(answered) / outcome.seconds / capacity;
    let (done, refused) = (times::of(done), times::of(refused));
    let shed = times::quantile(&refused, 0.99);
    outcome.higher("goodput, share of the capacity", goodput, "");
    outcome.plain("calls done", done.len() as f64, "");
    outcome.plain("calls refused", refused.len() as f64, "");
    outcome.latency("done", &done);
    outcome.latency("refused", &refused);
    let percent = goodput * 100.0;
    let what = format!("goodput {percent:.0} % of the capacity: at least 90 %");
    outcome.verdict(what, goodput >= GOODPUT);
    let what = format!("p99 of a refusal {shed:.1?}: at most {SHED_WITHIN:?}");
    outcome.verdict(what, shed <= SHED_WITHIN);
    let what = format!("{without} refusals without Retry-After: none");
    outcome.verdict(what, without == 0);
}
