use std::sync::Arc;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::modern::{Modern, Notes};
use super::toolset::Toolset;
use crate::client::Client;
use crate::history::{History, Recorder};

/// The parameters of the clients.
#[derive(Clone, Debug)]
pub struct Clients {
    /// Number of clients of 2025-11-25. Each has a session and a standalone stream, and makes long
    /// and short calls at the same time.
    pub legacy: usize,
    /// Number of clients of 2026-07-28. Each listens, and makes long and short calls.
    pub modern: usize,
    /// The tools that the clients call.
    pub tools: Toolset,
    /// Maximum pause between a client's calls.
    pub thinking: Duration,
    /// Maximum length of a long call.
    pub longest: Duration,
    /// Seeds every decision of the clients.
    pub seed: u64,
}

pub(super) struct Load {
    legacy: Vec<Client>,
    modern: Vec<Arc<Notes>>,
    lanes: JoinSet<()>,
    listeners: Vec<AbortOnDropHandle<()>>,
    enough: CancellationToken,
}

pub(super) struct Seen {
    pub(super) legacy: Vec<History>,
    pub(super) modern: Vec<Arc<Notes>>,
    pub(super) unfinished: usize,
}

impl Load {
    /// The clients' starts are spread over one thinking time.
    pub(super) fn start(url: &str, clients: &Clients, began: Instant) -> anyhow::Result<Self> {
        let mut dice = StdRng::seed_from_u64(clients.seed);
        let mut load = Self {
            legacy: Vec::new(),
            modern: Vec::new(),
            lanes: JoinSet::new(),
            listeners: Vec::new(),
            enough: CancellationToken::new(),
        };
        for number in 0..clients.legacy {
            let client = Client::new(url, Recorder::new(number, began))?;
            for long in [true, false] {
                let lane = Lane {
                    client: client.clone(),
                    clients: clients.clone(),
                    dice: StdRng::seed_from_u64(dice.random()),
                    enough: load.enough.clone(),
                };
                load.lanes.spawn(lane.run(long));
            }
            load.listen(clients, &mut dice, {
                let client = client.clone();
                async move { client.listen(None).await }
            });
            load.legacy.push(client);
        }
        for number in 0..clients.modern {
            let modern = Modern::new(url, number, clients.clone(), began)?;
            load.modern.push(modern.notes());
            let dice_of_lane = StdRng::seed_from_u64(dice.random());
            load.lanes
                .spawn(modern.clone().run(dice_of_lane, load.enough.clone()));
            load.listen(clients, &mut dice, modern.listen());
        }
        Ok(load)
    }

    fn listen(
        &mut self,
        clients: &Clients,
        dice: &mut StdRng,
        listening: impl Future<Output = ()> + Send + 'static,
    ) {
        let first = clients.thinking.mul_f64(dice.random());
        let listener = tokio::spawn(async move {
            sleep(first).await;
            listening.await;
        });
        self.listeners.push(AbortOnDropHandle::new(listener));
    }

    pub(super) async fn settle(mut self, within: Duration) -> Seen {
        self.enough.cancel();
        let _ = timeout(within, async {
            while self.lanes.join_next().await.is_some() {}
        })
        .await;
        let unfinished = self.lanes.len();
        self.lanes.abort_all();
        drop(self.listeners);
        Seen {
            legacy: self.legacy.iter().map(Client::history).collect(),
            modern: self.modern,
            unfinished,
        }
    }
}

struct Lane {
    client: Client,
    clients: Clients,
    dice: StdRng,
    enough: CancellationToken,
}

impl Lane {
    async fn run(mut self, long: bool) {
        let mut count = 1;
        loop {
            let thinking = self.clients.thinking.mul_f64(self.dice.random());
            tokio::select! {
                () = sleep(thinking) => {}
                () = self.enough.cancelled() => return,
            }
            let tools = self.clients.tools;
            let plan = match long {
                true => tools.long(&mut self.dice, self.clients.longest),
                false => tools.short(&mut self.dice, &mut count),
            };
            let work = self.client.work(plan.tool, plan.steps, plan.ms);
            self.client.call(work, None).await;
        }
    }
}
