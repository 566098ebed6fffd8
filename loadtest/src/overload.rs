use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, ensure};
use clap::Args;
use tokio::time::{Instant, timeout};

use crate::arrivals::{self, Pool};
use crate::cli::duration;
use crate::failure::Failure;
use crate::findings::Findings;
use crate::mcp::Mode;
use crate::mcp::tools::call;
use crate::outcome::Outcome;
use crate::scenario::{Finished, Scenario, Subject};
use crate::servers::cluster::{Cluster, Shape};
use crate::target::Target;
use crate::times;

/// Minimum goodput, as a fraction of the workers' capacity.
const GOODPUT: f64 = 0.9;

const SHED_WITHIN: Duration = Duration::from_millis(50);

const CALL_TIMEOUT: Duration = Duration::from_secs(30);

/// The arguments of `loadtest overload`.
#[derive(Debug, Args)]
pub(crate) struct Overload {
    #[command(flatten)]
    subject: Subject,
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
    /// Directory for the logs of the processes [default: none, logs are discarded].
    #[arg(long)]
    logs: Option<PathBuf>,
}

impl Overload {
    fn capacity(&self) -> f64 {
        (self.workers * self.places) as f64 / self.service.as_secs_f64()
    }

    fn shape(&self) -> Shape {
        Shape {
            workers: self.workers,
            logs: self.logs.clone(),
            ..Shape::smallest(&vec![
                ("SHOAL_POOLS__DEMO__BACKEND", "demo".to_owned()),
                ("SHOAL_POOLS__DEMO__CONCURRENCY", self.places.to_string()),
            ])
        }
    }
}

#[derive(Default)]
struct Tally {
    done: Vec<Duration>,
    refused: Vec<Duration>,
    without_retry_after: u64,
    /// Answers in the measured time, whenever their calls were sent.
    answered_in_time: u64,
}

impl Scenario for Overload {
    fn json(&self) -> Option<&Path> {
        self.subject.json()
    }

    async fn run(&self) -> anyhow::Result<impl Finished> {
        ensure!(self.times > 0.0, "some calls must come");
        ensure!(!self.service.is_zero(), "a call must take some time");
        let (shoal, capacity) = (self.subject.shoal()?, self.capacity());
        let mut outcome = Outcome::begin(
            "overload",
            format!(
                "{} workers with {} places, {} × the {capacity:.0} calls/s that they can run",
                self.workers, self.places, self.times
            ),
        );
        outcome.parameters(&[
            ("workers", &self.workers),
            ("places", &self.places),
            ("service", &format!("{:?}", self.service)),
            ("times", &self.times),
            ("duration", &format!("{:?}", self.duration)),
        ]);
        let cluster = Cluster::start_as(&shoal, None, &self.shape())?;
        let measured = Instant::now() + self.warmup;
        let crowd = Arc::new(Crowd {
            pool: Pool::new(Target::resolve(&cluster.url).await?, Mode::Modern),
            milliseconds: self.service.as_millis(),
            measured: measured..measured + self.duration,
            tally: Mutex::default(),
            findings: Findings::default(),
        });
        let rate = capacity * self.times;
        crate::progress(&format!("{rate:.0} calls a second"));
        let call = |due| {
            let crowd = Arc::clone(&crowd);
            async move { crowd.call(due).await }
        };
        arrivals::spread(rate, self.warmup + self.duration, call).await;
        let crowd = Arc::into_inner(crowd).context("a call goes on")?;
        outcome.seconds = self.duration.as_secs_f64();
        outcome.violations = crowd.findings.violations();
        let tally = (crowd.tally.into_inner()).unwrap_or_else(PoisonError::into_inner);
        conclude(&mut outcome, &tally, capacity);
        Ok(outcome)
    }
}

struct Crowd {
    pool: Pool,
    milliseconds: u128,
    measured: std::ops::Range<Instant>,
    tally: Mutex<Tally>,
    findings: Findings,
}

impl Crowd {
    async fn call(&self, due: Instant) {
        let mut client = match self.pool.take().await {
            Ok(client) => client,
            Err(failure) => return self.findings.failed("connecting", &failure),
        };
        let arguments = format!(r#"{{"steps":1,"interval_ms":{}}}"#, self.milliseconds);
        let calling = call(&mut client, "long_job", &arguments, "done after 1 steps");
        let answered = timeout(CALL_TIMEOUT, calling).await;
        self.pool.give_back(client);
        let now = Instant::now();
        let (took, counts) = (now - due, self.measured.contains(&due));
        let mut tally = self.tally.lock().unwrap_or_else(PoisonError::into_inner);
        match answered {
            Ok(Ok(())) => {
                tally.answered_in_time += u64::from(self.measured.contains(&now));
                tally.done.extend(counts.then_some(took));
            }
            Ok(Err(Failure::Status {
                status: 429 | 503,
                retry_after_s,
                ..
            })) => {
                tally.without_retry_after += u64::from(retry_after_s.is_none());
                tally.refused.extend(counts.then_some(took));
            }
            // A queued call is refused in a stream.
            Ok(Err(Failure::Wrong(why))) if why.contains("50300") => {
                tally.refused.extend(counts.then_some(took));
            }
            Ok(Err(failure)) => self.findings.failed("a call", &failure),
            Err(_) => self.findings.add("no answer", "a call took too long"),
        }
    }
}

fn conclude(outcome: &mut Outcome, tally: &Tally, capacity: f64) {
    let goodput = tally.answered_in_time as f64 / outcome.seconds / capacity;
    let refused = times::of(tally.refused.iter().copied());
    let shed = times::quantile(&refused, 0.99);
    outcome.higher("goodput, share of the capacity", goodput, "");
    outcome.plain("calls done", tally.done.len() as f64, "");
    outcome.plain("calls refused", tally.refused.len() as f64, "");
    outcome.latency("done", &times::of(tally.done.iter().copied()));
    outcome.latency("refused", &refused);
    let percent = goodput * 100.0;
    let what = format!("goodput {percent:.0} % of the capacity: at least 90 %");
    outcome.verdict(what, goodput >= GOODPUT);
    let what = format!("p99 of a refusal {shed:.1?}: at most {SHED_WITHIN:?}");
    outcome.verdict(what, shed <= SHED_WITHIN);
    let without = tally.without_retry_after;
    let what = format!("{without} refusals without Retry-After: none");
    outcome.verdict(what, without == 0);
}
