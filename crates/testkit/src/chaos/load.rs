use std::time::Duration;

use futures::future::join_all;
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::Options;
use super::fault::Trait;
use crate::client::{Client, Leave, ModernClient};
use crate::cluster::Cluster;
use crate::history::{History, Recorder, Step, Tool};

const LANES: usize = 4;

/// Microseconds until the client hangs up: some requests have not arrived by then, others have been
/// answered.
const HANGS_UP_US: std::ops::Range<f64> = 500.0..20_000.0;

const MOSTLY_SHORT: f64 = 0.7;
const SHORT_MS: std::ops::RangeInclusive<u64> = 1..=10;

const LISTENS: usize = 3;

const LONGEST_AWAY: Duration = Duration::from_secs(2);

const ASK_AGAIN: Duration = Duration::from_millis(200);

pub(super) struct Load {
    clients: Vec<Client>,
    modern: Vec<ModernClient>,
    lanes: JoinSet<()>,
    _listeners: Vec<AbortOnDropHandle<()>>,
    enough: CancellationToken,
}

impl Load {
    pub(super) fn start(
        cluster: &Cluster,
        options: &Options,
        began: Instant,
        dice: &mut StdRng,
    ) -> anyhow::Result<Self> {
        Self::at(cluster.url(), 0, options, began, dice)
    }

    pub(super) fn at(
        url: &str,
        first: usize,
        options: &Options,
        began: Instant,
        dice: &mut StdRng,
    ) -> anyhow::Result<Self> {
        let mut recorders = (first..).map(|number| Recorder::new(number, began));
        let mut recorders = |count: usize| recorders.by_ref().take(count).collect::<Vec<_>>();
        let clients = recorders(options.sessions).into_iter();
        let clients = clients
            .map(|recorder| Client::new(url, recorder))
            .collect::<anyhow::Result<Vec<_>>>()?;
        let modern = recorders(options.modern).into_iter();
        let modern = modern.map(|recorder| ModernClient::new(url, recorder));
        let tasks = recorders(options.tasks).into_iter();
        let tasks = tasks.map(|recorder| ModernClient::with_tasks(url, recorder));
        let modern = modern.chain(tasks).collect::<anyhow::Result<Vec<_>>>()?;
        let legacy = clients.iter().cloned().map(Caller::Legacy);
        let callers = legacy
            .flat_map(|caller| std::iter::repeat_n(caller, LANES))
            .chain(modern.iter().cloned().map(Caller::Modern));
        let enough = CancellationToken::new();
        let mut lanes = JoinSet::new();
        for caller in callers {
            let lane = Lane {
                caller,
                dice: StdRng::seed_from_u64(dice.random()),
                thinking: options.thinking,
                short: options.fault.has(Trait::ShortCalls),
                enough: enough.clone(),
            };
            lanes.spawn(lane.run());
        }
        let listeners = clients.iter().step_by(LISTENS).map(listen);
        Ok(Self {
            _listeners: listeners.map(AbortOnDropHandle::new).collect(),
            clients,
            modern,
            lanes,
            enough,
        })
    }

    pub(super) async fn settle(mut self, within: Duration, wipe: Option<Duration>) -> Vec<History> {
        self.enough.cancel();
        let _ = timeout(within, async {
            while self.lanes.join_next().await.is_some() {}
            join_all(self.clients.iter().map(|client| last_call(client, wipe))).await;
        })
        .await;
        self.lanes.abort_all();
        let legacy = self.clients.iter().map(Client::history);
        legacy
            .chain(self.modern.iter().map(ModernClient::history))
            .collect()
    }
}

fn listen(client: &Client) -> JoinHandle<()> {
    let client = client.clone();
    tokio::spawn(async move { client.listen(None).await })
}

/// Shows whether the session still exists. If all data was lost, calls until the client has opened
/// another session.
async fn last_call(client: &Client, wipe: Option<Duration>) {
    loop {
        client.call(client.work(Tool::Echo, 0, 0), None).await;
        match wipe {
            Some(wipe) if opened(&client.history()) < wipe => sleep(ASK_AGAIN).await,
            _ => return,
        }
    }
}

fn opened(history: &History) -> Duration {
    let opened = |step: &Step| matches!(step, Step::Opened { .. });
    let newest = history.entries.iter().rfind(|entry| opened(&entry.step));
    newest.map_or(Duration::ZERO, |entry| entry.at)
}

#[derive(Clone)]
enum Caller {
    Legacy(Client),
    Modern(ModernClient),
}

struct Lane {
    caller: Caller,
    dice: StdRng,
    thinking: Duration,
    short: bool,
    enough: CancellationToken,
}

impl Lane {
    async fn run(mut self) {
        loop {
            let thinking = self.thinking.mul_f64(self.dice.random());
            tokio::select! {
                () = sleep(thinking) => {}
                () = self.enough.cancelled() => return,
            }
            let (tool, steps, ms) = match self.short && self.dice.random_bool(MOSTLY_SHORT) {
                true => (Tool::Record, 0, self.dice.random_range(SHORT_MS)),
                false => what_to_call(&mut self.dice),
            };
            match &self.caller {
                Caller::Legacy(client) => {
                    let leave = leave(&mut self.dice, tool);
                    client.call(client.work(tool, steps, ms), leave).await;
                }
                Caller::Modern(client) => {
                    let hang_up = hang_up(&mut self.dice, tool);
                    client.call(client.work(tool, steps, ms), hang_up).await;
                }
            }
        }
    }
}

fn leave(dice: &mut StdRng, tool: Tool) -> Option<Leave> {
    if dice.random_bool(0.1) {
        return Some(Leave::Return {
            after: dice.random_range(1..6),
            within: Duration::MAX,
            away: LONGEST_AWAY.mul_f64(dice.random()),
            unread: false,
        });
    }
    let after = hang_up(dice, tool)?;
    Some(Leave::HangUp { after })
}

/// The client stays for a call that asks the user, to answer the question.
fn hang_up(dice: &mut StdRng, tool: Tool) -> Option<Duration> {
    let hangs_up = tool != Tool::Ask && dice.random_bool(0.12);
    hangs_up.then(|| Duration::from_secs_f64(dice.random_range(HANGS_UP_US) / 1e6))
}

fn what_to_call(dice: &mut StdRng) -> (Tool, u32, u64) {
    match dice.random_range(0..100) {
        0..35 => (Tool::Echo, 0, 0),
        35..55 => (Tool::Record, 0, dice.random_range(0..300)),
        55..70 => (
            Tool::Steps,
            dice.random_range(2..12),
            dice.random_range(20..200),
        ),
        70..88 => (
            Tool::StepsOnce,
            dice.random_range(2..12),
            dice.random_range(20..200),
        ),
        88..94 => (Tool::Ask, 0, 0),
        _ => (Tool::Long, 0, dice.random_range(1500..4000)),
    }
}
