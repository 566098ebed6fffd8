use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, ensure};
use clap::Args;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};

use crate::cli::duration;
use crate::connection::Goodbye;
use crate::failover::timeline::{histogram, quantile};
use crate::failure::Failure;
use crate::findings::Findings;
use crate::mcp::Mode;
use crate::mcp::client::Client;
use crate::mcp::tools::call;
use crate::outcome::{Better, Distribution, Outcome, Verdict};
use crate::servers::cluster::{Cluster, Shape};
use crate::target::Target;

/// Minimum goodput, as a fraction of the workers' capacity.
const GOODPUT: f64 = 0.9;

const SHED_WITHIN: Duration = Duration::from_millis(50);

const CALL_TIMEOUT: Duration = Duration::from_secs(30);

/// The arguments of `loadtest overload`.
#[derive(Debug, Args)]
pub(crate) struct Overload {
    /// Shoal binary [default: `shoal` next to this program, if it exists].
    #[arg(long)]
    shoal: Option<PathBuf>,
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
    /// File for the result as JSON.
    #[arg(long)]
    pub(crate) json: Option<PathBuf>,
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

pub(crate) async fn run(options: &Overload, progress: impl Fn(&str)) -> anyhow::Result<Outcome> {
    ensure!(options.times > 0.0, "some calls must come");
    ensure!(!options.service.is_zero(), "a call must take some time");
    let shoal = crate::servers::spawned::shoal_binary(options.shoal.as_deref())?;
    let capacity = options.capacity();
    let mut outcome = Outcome::begin(
        "overload",
        format!(
            "{} workers with {} places, {} × the {capacity:.0} calls/s that they can run",
            options.workers, options.places, options.times
        ),
    );
    for (name, value) in [
        ("workers", options.workers.to_string()),
        ("places", options.places.to_string()),
        ("service", format!("{:?}", options.service)),
        ("times", options.times.to_string()),
        ("duration", format!("{:?}", options.duration)),
    ] {
        outcome.parameters.insert(name.to_owned(), value);
    }
    let cluster = Cluster::start_as(&shoal, None, &options.shape())?;
    let crowd = Arc::new(Crowd {
        target: Target::resolve(&cluster.url).await?,
        milliseconds: options.service.as_millis(),
        idle: Mutex::default(),
        measured: Instant::now() + options.warmup
            ..Instant::now() + options.warmup + options.duration,
        tally: Mutex::default(),
        findings: Findings::default(),
    });
    progress(&format!("{:.0} calls a second", capacity * options.times));
    crowd.come(capacity * options.times).await;
    let crowd = Arc::into_inner(crowd).context("a call goes on")?;
    outcome.seconds = options.duration.as_secs_f64();
    outcome.violations = crowd.findings.violations();
    let tally = (crowd.tally.into_inner()).unwrap_or_else(PoisonError::into_inner);
    conclude(&mut outcome, &tally, capacity);
    Ok(outcome)
}

struct Crowd {
    target: Target,
    milliseconds: u128,
    idle: Mutex<Vec<Client>>,
    measured: std::ops::Range<Instant>,
    tally: Mutex<Tally>,
    findings: Findings,
}

impl Crowd {
    async fn come(self: &Arc<Self>, rate: f64) {
        let every = Duration::from_secs_f64(1.0 / rate);
        let (mut calls, mut due) = (JoinSet::new(), Instant::now());
        while due < self.measured.end {
            sleep_until(due).await;
            let crowd = Arc::clone(self);
            calls.spawn(async move { crowd.call(due).await });
            while calls.try_join_next().is_some() {}
            due += every;
        }
        while calls.join_next().await.is_some() {}
    }

    async fn call(&self, due: Instant) {
        let idle = self.lock(&self.idle).pop();
        let opened = match idle {
            Some(client) => Ok(client),
            None => Client::open(&self.target, Mode::Modern, Goodbye::Reset).await,
        };
        let mut client = match opened {
            Ok(client) => client,
            Err(failure) => return self.findings.failed("connecting", &failure),
        };
        let arguments = format!(r#"{{"steps":1,"interval_ms":{}}}"#, self.milliseconds);
        let calling = call(&mut client, "long_job", &arguments, "done after 1 steps");
        let answered = timeout(CALL_TIMEOUT, calling).await;
        self.lock(&self.idle).push(client);
        let now = Instant::now();
        let (took, counts) = (now - due, self.measured.contains(&due));
        let mut tally = self.lock(&self.tally);
        match answered {
            Ok(Ok(())) => {
                tally.answered_in_time += u64::from(self.measured.contains(&now));
                if counts {
                    tally.done.push(took);
                }
            }
            Ok(Err(Failure::Status {
                status: 429 | 503,
                retry_after_s,
                ..
            })) => {
                tally.without_retry_after += u64::from(retry_after_s.is_none());
                if counts {
                    tally.refused.push(took);
                }
            }
            // A queued call is refused in a stream.
            Ok(Err(Failure::Wrong(why))) if why.contains("50300") => {
                if counts {
                    tally.refused.push(took);
                }
            }
            Ok(Err(failure)) => self.findings.failed("a call", &failure),
            Err(_) => self.findings.add("no answer", "a call took too long"),
        }
    }

    fn lock<'a, T>(&self, what: &'a Mutex<T>) -> std::sync::MutexGuard<'a, T> {
        what.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn conclude(outcome: &mut Outcome, tally: &Tally, capacity: f64) {
    let goodput = tally.answered_in_time as f64 / outcome.seconds / capacity;
    let refused = histogram(tally.refused.iter().copied());
    let shed = quantile(&refused, 0.99);
    outcome.figure(
        "goodput, share of the capacity",
        goodput,
        "",
        Better::Higher,
    );
    outcome.figure("calls done", tally.done.len() as f64, "", Better::Neither);
    outcome.figure(
        "calls refused",
        tally.refused.len() as f64,
        "",
        Better::Neither,
    );
    let done = histogram(tally.done.iter().copied());
    outcome.latencies.push(Distribution::of("done", &done));
    outcome
        .latencies
        .push(Distribution::of("refused", &refused));
    for (what, held) in [
        (
            format!(
                "goodput {:.0} % of the capacity: at least 90 %",
                goodput * 100.0
            ),
            goodput >= GOODPUT,
        ),
        (
            format!("p99 of a refusal {shed:.1?}: at most {SHED_WITHIN:?}"),
            shed <= SHED_WITHIN,
        ),
        (
            format!(
                "{} refusals without Retry-After: none",
                tally.without_retry_after
            ),
            tally.without_retry_after == 0,
        ),
    ] {
        outcome.verdicts.push(Verdict {
            what,
            held: Some(held),
        });
    }
}
