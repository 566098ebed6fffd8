//! The engine of every load: sessions that call in a closed or an open loop, and verify each answer.

pub(crate) mod call;
pub(crate) mod mix;
pub(crate) mod pacer;
pub(crate) mod ramp;
pub(crate) mod session;
pub(crate) mod stage;
pub(crate) mod tally;
pub(crate) mod watch;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::connection::Goodbye;
use crate::failure::Failure;
use crate::mcp::client::Client;
use crate::mcp::{Mode, request};
use crate::process;
use crate::report::RunReport;
use crate::servers::Running;
use crate::target::Target;
use call::{Caller, Echo};
use mix::{Kind, Mix};
use pacer::Pacer;
use ramp::Ramp;
use session::Session;
use stage::Stages;
use tally::Tally;

const OPENING: usize = 128;

const GRACE: Duration = Duration::from_secs(90);

/// A load.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    /// Sessions take turns at them.
    pub(crate) targets: Vec<Target>,
    pub(crate) mode: Mode,
    pub(crate) mix: Mix,
    pub(crate) echo: Echo,
    pub(crate) sessions: Ramp,
    /// Calls a second in an open loop; `None` means a closed loop.
    pub(crate) rate: Option<Ramp>,
    pub(crate) warmup: Duration,
    pub(crate) duration: Duration,
    /// Number of equal parts of `duration`, through which `sessions` and `rate` change.
    pub(crate) steps: usize,
    /// The second half has slow readers.
    pub(crate) has_slow_readers: bool,
    /// In a closed loop, slow servers are measured longer, until this many answers, for at most a minute.
    pub(crate) least_calls: u64,
    pub(crate) timeout: Duration,
    pub(crate) seed: u64,
    /// The server's processes.
    pub(crate) pids: Vec<u32>,
    pub(crate) redis: Option<SocketAddr>,
    /// Also records figures and resources of each second.
    pub(crate) by_second: bool,
    /// Begins the lines of progress.
    pub(crate) label: String,
}

impl Plan {
    /// Returns a plan of echo calls of 32 bytes in a closed loop, without a warm-up.
    pub(crate) async fn at(url: &str, mode: Mode, sessions: usize) -> anyhow::Result<Self> {
        Ok(Self {
            targets: vec![Target::resolve(url).await?],
            mode,
            mix: Mix::of(Kind::Payload(32)),
            echo: Echo::by("echo"),
            sessions: Ramp::flat(sessions as f64),
            rate: None,
            warmup: Duration::ZERO,
            duration: Duration::ZERO,
            steps: 1,
            has_slow_readers: false,
            least_calls: 0,
            timeout: Duration::from_secs(30),
            seed: 1,
            pids: Vec::new(),
            redis: None,
            by_second: false,
            label: String::new(),
        })
    }

    /// The same for a server of this program.
    pub(crate) async fn of(server: &Running, mode: Mode, sessions: usize) -> anyhow::Result<Self> {
        Ok(Self {
            pids: server.pids.clone(),
            redis: server.redis,
            ..Self::at(&server.url, mode, sessions).await?
        })
    }
}

/// The plan and the tally, which all clients of a load share.
pub(crate) struct Shared {
    pub(crate) plan: Plan,
    pub(crate) tally: Tally,
}

impl Shared {
    /// Fails if a process of the server cannot be read.
    pub(crate) fn new(plan: Plan) -> anyhow::Result<Arc<Self>> {
        if !plan.pids.is_empty() {
            process::measure(&plan.pids).context("could not read a process named with --pid")?;
        }
        let tally = Tally::new(plan.mix.kinds().len(), plan.steps + 1);
        Ok(Arc::new(Self { plan, tally }))
    }

    pub(crate) fn has(&self, kind: Kind) -> bool {
        self.plan.mix.kinds().any(|it| it == kind)
    }

    pub(crate) async fn open(&self, number: usize) -> Result<Caller, Failure> {
        let Plan { targets, mode, .. } = &self.plan;
        let able = match () {
            () if self.has(Kind::Elicitation) => r#"{"elicitation":{"form":{}}}"#,
            () if self.has(Kind::Task) => request::TASKS,
            () => "{}",
        };
        let target = &targets[number % targets.len()];
        let opening = Client::open_with(None, target, *mode, Goodbye::Finish, able);
        Ok(Caller::new(self.in_time(opening).await?, number))
    }

    pub(crate) async fn in_time<T>(
        &self,
        step: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        let limit = self.plan.timeout;
        timeout(limit, step).await.unwrap_or_else(|_| {
            let limit = limit.as_secs_f64();
            Err(Failure::Transport(format!("nothing within {limit} s")))
        })
    }

    /// Opens the sessions of the warm-up. Fails if a session cannot be opened: the load would be too small.
    pub(crate) async fn open_all(&self) -> anyhow::Result<Vec<Caller>> {
        let sessions = self.plan.sessions.at(0, self.plan.steps).round() as usize;
        let opening = (0..sessions).rev().map(|number| self.open(number));
        let opened = stream::iter(opening)
            .buffer_unordered(OPENING)
            .try_collect();
        let opened: Result<_, Failure> = opened.await;
        opened.context("could not open a session")
    }
}

/// A load that runs.
pub(crate) struct Engine {
    pub(crate) shared: Arc<Shared>,
    pub(crate) stages: Arc<Stages>,
    /// `None` in a closed loop.
    pub(crate) pacer: Option<Arc<Pacer>>,
    pub(crate) running: JoinSet<()>,
}

impl Engine {
    pub(crate) fn begin(shared: &Arc<Shared>, mut callers: Vec<Caller>) -> Self {
        let stages = Arc::new(Stages::new(&shared.plan, Instant::now()));
        let rate = shared.plan.rate;
        let pacer = rate.map(|_| Pacer::start(&stages));
        let mut engine = Self {
            shared: Arc::clone(shared),
            stages,
            pacer,
            running: JoinSet::new(),
        };
        for number in 0..shared.plan.sessions.most().round() as usize {
            let session = Session {
                number,
                shared: Arc::clone(shared),
                caller: callers.pop(),
                stages: Arc::clone(&engine.stages),
                pacer: engine.pacer.clone(),
            };
            engine.running.spawn(session.run());
        }
        engine
    }

    /// Waits for the clients, and counts calls that were due and never sent.
    pub(crate) async fn finish(&mut self) {
        let (plan, tally) = (&self.shared.plan, &self.shared.tally);
        let ending = async { while self.running.join_next().await.is_some() {} };
        if timeout(plan.timeout + GRACE, ending).await.is_err() {
            let left = self.running.len();
            self.running.abort_all();
            let what = "no answer: clients that did not end with the run";
            tally.findings.add(what, format_args!("{left} of them"));
        }
        let end = self.stages.end();
        for due in self.pacer.iter().flat_map(|pacer| pacer.unsent()) {
            if let Some(stage) = self.stages.at(due) {
                tally.unsent(stage, end.saturating_duration_since(due));
            }
        }
    }
}

/// Runs a load in a closed loop. The report counts failures of calls.
pub(crate) async fn run(plan: Plan) -> anyhow::Result<RunReport> {
    let shared = Shared::new(plan)?;
    let callers = shared.open_all().await?;
    let mut engine = Engine::begin(&shared, callers);
    let seen = engine.watch().await?;
    engine.finish().await;
    Ok(RunReport::of(&shared, &seen))
}
