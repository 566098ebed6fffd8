use std::path::PathBuf;
use std::time::Duration;

use anyhow::ensure;
use clap::Args;

use crate::cli::duration;
use crate::engine::Plan;
use crate::engine::call::Echo;
use crate::engine::mix::{Kind, Mix};
use crate::engine::ramp::Ramp;
use crate::mcp::Mode;
use crate::mcp::job::Job;
use crate::target::Target;

/// Each session needs an open file, and listeners and churn need more.
const MOST_SESSIONS: f64 = 15_000.0;

/// Options of `load`.
#[derive(Debug, Args)]
pub(crate) struct Load {
    /// URL of an endpoint of the server; may be repeated to spread sessions over several endpoints in turns.
    #[arg(long = "url", required = true)]
    pub(crate) urls: Vec<String>,
    /// Protocol era to use.
    #[arg(long, value_enum)]
    pub(crate) mode: Mode,
    /// Number of sessions (in 2026-07-28: clients) that call; 10..100 goes from 10 to 100 in steps.
    #[arg(
        long,
        visible_alias = "clients",
        default_value = "64",
        value_name = "N|FROM..TO"
    )]
    pub(crate) sessions: Ramp,
    /// Calls a second, sent on schedule even if earlier answers are late (open loop); 100..1000 goes from 100 to 1000
    /// in steps [default: each session calls again when it has its answer (closed loop)].
    #[arg(long, value_name = "R|FROM..TO")]
    pub(crate) rate: Option<Ramp>,
    /// Number of steps of a changing --rate or --sessions.
    #[arg(long, default_value_t = 5)]
    pub(crate) ramp_steps: usize,
    /// Kinds of calls with their weights: echo, payload[:SIZE], progress[:STEPS], elicitation, journaled, count, update.
    #[arg(long, default_value = "echo", value_name = "KIND=WEIGHT,…")]
    pub(crate) mix: Mix,
    /// Time to measure.
    #[arg(long, default_value = "10s", value_parser = duration)]
    pub(crate) duration: Duration,
    /// Time under load before the measurement.
    #[arg(long, default_value = "2s", value_parser = duration)]
    pub(crate) warmup: Duration,
    /// Maximum time of one call.
    #[arg(long, default_value = "30s", value_parser = duration)]
    pub(crate) timeout: Duration,
    /// Additional sessions a second that are opened, make --churn-calls calls and are ended [default: none].
    #[arg(long, value_name = "R")]
    pub(crate) churn: Option<Ramp>,
    /// Number of calls of such a session.
    #[arg(long, default_value_t = 3)]
    pub(crate) churn_calls: usize,
    /// Number of clients that join for the second half of the run and read long streams slowly or not at all.
    #[arg(long, default_value_t = 0)]
    pub(crate) slow_readers: usize,
    /// Number of streams held open throughout: standalone streams of sessions, or subscriptions/listen.
    #[arg(long, default_value_t = 0)]
    pub(crate) listeners: usize,
    /// Tool for echo calls, which must echo its text argument.
    #[arg(long, default_value = "echo")]
    pub(crate) tool: String,
    /// Name of that tool's text argument.
    #[arg(long, default_value = "text")]
    pub(crate) argument: String,
    /// Prefix of the text in that tool's answer.
    #[arg(long, default_value = "")]
    pub(crate) answer_prefix: String,
    /// Seed that decides which session makes which kind of call when.
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Number of threads that generate load.
    #[arg(long, default_value_t = 1)]
    pub(crate) threads: usize,
    /// Process id of the server, to measure its CPU time and memory; includes its descendants; may be repeated.
    #[arg(long = "pid")]
    pub(crate) pids: Vec<u32>,
    /// File for the result as JSON.
    #[arg(long)]
    pub(crate) json: Option<PathBuf>,
}

impl Load {
    pub(super) fn check(&self) -> anyhow::Result<()> {
        ensure!(
            !self.duration.is_zero(),
            "--duration must be more than nothing"
        );
        ensure!(
            !self.timeout.is_zero(),
            "--timeout must be more than nothing"
        );
        ensure!(
            self.sessions.most() <= MOST_SESSIONS && self.sessions.at(0, 1) >= 1.0,
            "--sessions {} is not from 1 to {MOST_SESSIONS}; start several of this program for more",
            self.sessions
        );
        let ramps = self.ramps();
        ensure!(
            !ramps || self.ramp_steps > 1,
            "--ramp-steps must be at least 2 where something goes from one to another"
        );
        ensure!(
            !(ramps && self.slow_readers > 0),
            "--slow-readers compares the two halves of a run, so nothing else may change: give one rate and one number of sessions"
        );
        ensure!(
            self.churn.is_none() || self.mode == Mode::Legacy,
            "--churn needs --mode legacy: clients of 2026-07-28 have no session to open"
        );
        ensure!(
            !self.churn.is_some_and(Ramp::changes),
            "--churn takes one number of sessions a second"
        );
        Ok(())
    }

    fn ramps(&self) -> bool {
        self.sessions.changes() || self.rate.is_some_and(Ramp::changes)
    }

    pub(super) async fn plan(&self) -> anyhow::Result<Plan> {
        let has_slow_readers = self.slow_readers > 0;
        Ok(Plan {
            targets: Target::resolve_all(&self.urls).await?,
            mode: self.mode,
            mix: self.mix.clone(),
            echo: Echo {
                tool: self.tool.clone(),
                argument: self.argument.clone(),
                prefix: self.answer_prefix.clone(),
            },
            sessions: self.sessions,
            rate: self.rate,
            warmup: self.warmup,
            duration: self.duration,
            steps: match (self.ramps(), has_slow_readers) {
                (true, _) => self.ramp_steps,
                (false, true) => 2,
                (false, false) => 1,
            },
            has_slow_readers,
            least_calls: 0,
            timeout: self.timeout,
            seed: self.seed,
            pids: self.pids.clone(),
            redis: None,
            by_second: true,
            label: String::new(),
        })
    }

    pub(super) fn more_kinds(&self) -> Vec<Kind> {
        let churn = self.churn.map(|_| Kind::Echo);
        let slow = (self.slow_readers > 0).then_some(Kind::Progress(Job::burst(1)));
        churn.into_iter().chain(slow).collect()
    }
}
