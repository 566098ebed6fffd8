//! Clients that call tools, with random pauses, until they have worked long enough.

use std::time::Duration;

use futures::future::join_all;
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::client::{Client, Era, Leave};
use crate::history::{History, Recorder, Step, Tool};

/// Microseconds until the client hangs up: some requests have not arrived by then, others have been
/// answered.
const HANGS_UP_US: std::ops::Range<f64> = 500.0..20_000.0;
const LONGEST_AWAY: Duration = Duration::from_secs(2);
const ASK_AGAIN: Duration = Duration::from_millis(200);

const STEP: Duration = Duration::from_millis(400);
const SHORTEST_LONG: Duration = Duration::from_secs(2);
/// Maximum duration of a long call without a session, which cannot resume its stream.
const LONGEST_MODERN: Duration = Duration::from_secs(4);

/// The clients of a run.
#[derive(Clone, Copy, Debug)]
pub struct Clients {
    /// Number of clients of 2025-11-25, each with a session.
    pub sessions: usize,
    /// Number of clients of 2026-07-28.
    pub modern: usize,
    /// Number of clients of 2026-07-28 whose calls become tasks.
    pub tasks: usize,
    /// Maximum pause between a client's calls.
    pub thinking: Duration,
    /// The calls that clients make.
    pub calls: Calls,
}

/// The calls that clients make.
#[derive(Clone, Copy, Debug)]
pub enum Calls {
    /// All tools of `chaos_tools`, four calls at a time. Clients leave and hang up during some.
    Mixed,
    /// The same, but most calls take 1 to 10 ms.
    MostlyShort,
    /// Long calls beside short ones, while every client listens.
    Patient {
        /// Whether the server has the demo tools instead of `chaos_tools`.
        demo: bool,
        /// Maximum duration of a long call.
        longest: Duration,
    },
}

pub(crate) struct Load {
    callers: Vec<Client>,
    sessions: usize,
    lanes: JoinSet<()>,
    _listeners: JoinSet<()>,
    enough: CancellationToken,
}

impl Load {
    /// Starts clients, which are numbered from `first`: those with sessions, then those without, then those with tasks.
    pub(crate) fn start(
        url: &str,
        first: usize,
        clients: Clients,
        began: Instant,
        dice: &mut StdRng,
    ) -> anyhow::Result<Self> {
        let Clients {
            sessions,
            modern,
            tasks,
            ..
        } = clients;
        let caller = |number| {
            let era = match number < sessions {
                true => Era::Legacy(None),
                false => Era::Modern {
                    tasks: number >= sessions + modern,
                },
            };
            Client::of(era, url, Recorder::new(first + number, began))
        };
        let callers = (0..sessions + modern + tasks).map(caller);
        let callers = callers.collect::<anyhow::Result<Vec<_>>>()?;
        let (enough, mut lanes, mut listeners) =
            (CancellationToken::new(), JoinSet::new(), JoinSet::new());
        for (number, caller) in callers.iter().enumerate() {
            let legacy = number < sessions;
            let (count, listens) = match clients.calls {
                Calls::Patient { .. } => (2, true),
                _ => (4, legacy && number.is_multiple_of(3)),
            };
            for lane in 0..if legacy { count } else { 1 } {
                let lane = Lane {
                    caller: caller.clone(),
                    legacy,
                    clients,
                    is_first: lane == 0,
                    counted: 0,
                    dice: StdRng::seed_from_u64(dice.random()),
                };
                lanes.spawn(lane.run(enough.clone()));
            }
            if listens {
                let (caller, first) = (caller.clone(), clients.thinking.mul_f64(dice.random()));
                listeners.spawn(async move {
                    sleep(first).await;
                    caller.listen(None).await;
                });
            }
        }
        Ok(Self {
            callers,
            sessions,
            lanes,
            _listeners: listeners,
            enough,
        })
    }

    /// Ends the load when all open calls have ended, and returns the histories.
    pub(crate) async fn settle(mut self, within: Duration, wipe: Option<Duration>) -> Vec<History> {
        self.enough.cancel();
        let _ = timeout(within, async {
            while self.lanes.join_next().await.is_some() {}
            let legacy = &self.callers[..self.sessions];
            join_all(legacy.iter().map(|client| last_call(client, wipe))).await;
        })
        .await;
        self.lanes.abort_all();
        self.callers.iter().map(Client::history).collect()
    }
}

/// Shows whether the session still exists. If all data was lost, calls until the client has opened
/// another session.
async fn last_call(client: &Client, wipe: Option<Duration>) {
    loop {
        client.call(client.work(Tool::Echo, 0, 0), None).await;
        match wipe {
            Some(wipe) if client.look(opened) < wipe => sleep(ASK_AGAIN).await,
            _ => return,
        }
    }
}

fn opened(history: &History) -> Duration {
    let opened = |step: &Step| matches!(step, Step::Opened { .. });
    let newest = history.entries.iter().rfind(|entry| opened(&entry.step));
    newest.map_or(Duration::ZERO, |entry| entry.at)
}

struct Lane {
    caller: Client,
    legacy: bool,
    clients: Clients,
    is_first: bool,
    counted: u32,
    dice: StdRng,
}

impl Lane {
    async fn run(mut self, enough: CancellationToken) {
        loop {
            let thinking = self.clients.thinking.mul_f64(self.dice.random());
            tokio::select! {
                () = sleep(thinking) => {}
                () = enough.cancelled() => return,
            }
            let ((tool, steps, ms), leave) = match self.clients.calls {
                Calls::Patient { demo, longest } => (self.patient(demo, longest), None),
                calls => {
                    let call = what_to_call(&mut self.dice, calls);
                    (call, leave(&mut self.dice, call.0))
                }
            };
            let work = self.caller.work(tool, steps, ms);
            self.caller.call(work, leave).await;
        }
    }

    fn patient(&mut self, demo: bool, longest: Duration) -> (Tool, u32, u64) {
        let dice = &mut self.dice;
        let (long, longest) = match self.legacy {
            true => (self.is_first, longest),
            false => (dice.random_bool(0.2), longest.min(LONGEST_MODERN)),
        };
        if long {
            let shortest = SHORTEST_LONG.min(longest);
            let time = shortest + (longest - shortest).mul_f64(dice.random());
            let steps = (time.as_millis() / STEP.as_millis()).max(1);
            let tool = match demo {
                true => Tool::Job,
                false if dice.random_bool(0.5) => Tool::Steps,
                false => Tool::StepsOnce,
            };
            return (tool, steps as u32, STEP.as_millis() as u64);
        }
        // Only a session counts calls.
        if !self.legacy || dice.random_bool(0.6) {
            (Tool::Echo, 0, 0)
        } else if demo {
            self.counted += 1;
            (Tool::CountUp, self.counted, 0)
        } else {
            (Tool::Record, 0, 0)
        }
    }
}

/// The client stays for a call that asks the user, to answer the question.
fn leave(dice: &mut StdRng, tool: Tool) -> Option<Leave> {
    if dice.random_bool(0.1) {
        return Some(Leave::Return {
            after: dice.random_range(1..6),
            within: Duration::MAX,
            away: LONGEST_AWAY.mul_f64(dice.random()),
            unread: false,
        });
    }
    let hangs_up = tool != Tool::Ask && dice.random_bool(0.12);
    let after = Duration::from_secs_f64(dice.random_range(HANGS_UP_US) / 1e6);
    hangs_up.then_some(Leave::HangUp { after })
}

fn what_to_call(dice: &mut StdRng, calls: Calls) -> (Tool, u32, u64) {
    if matches!(calls, Calls::MostlyShort) && dice.random_bool(0.7) {
        return (Tool::Record, 0, dice.random_range(1..=10));
    }
    let steps = (dice.random_range(2..12), dice.random_range(20..200));
    match dice.random_range(0..100) {
        0..35 => (Tool::Echo, 0, 0),
        35..55 => (Tool::Record, 0, dice.random_range(0..300)),
        55..70 => (Tool::Steps, steps.0, steps.1),
        70..88 => (Tool::StepsOnce, steps.0, steps.1),
        88..94 => (Tool::Ask, 0, 0),
        _ => (Tool::Long, 0, dice.random_range(1500..4000)),
    }
}
