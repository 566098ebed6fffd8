//! Calls an edge during its drain. Each call must get one answer, or a refusal that says that the
//! call did not run.

use std::time::Duration;

use anyhow::Context as _;
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};
use tokio::time::sleep;

use super::{Deeds, Injector};
use crate::load::{Calls, Clients, Load};

const CLIENTS: usize = 6;
/// Clients pause so briefly that some call is always open.
const THINKING: Duration = Duration::from_millis(200);
const BEFORE: Duration = Duration::from_secs(1);
/// Above the numbers of the run's other clients.
const FIRST: usize = 100_000;

impl Injector<'_> {
    pub(super) async fn call_a_draining_edge(&mut self, turn: usize) -> Deeds {
        let edge = self.one_of(&self.cluster.edges())?;
        let url = edge.mcp_url().context("an edge has a URL")?;
        let clients = Clients {
            sessions: CLIENTS,
            modern: CLIENTS,
            tasks: CLIENTS,
            thinking: THINKING,
            calls: Calls::Mixed,
        };
        let mut dice = StdRng::seed_from_u64(self.dice.random());
        let first = FIRST + turn * 3 * CLIENTS;
        let load = Load::start(url, first, clients, self.began, &mut dice)?;
        sleep(BEFORE).await;
        let deeds = self.restart(edge).await?;
        let histories = load.settle(self.options.settle, None).await;
        self.histories.extend(histories);
        Ok(deeds)
    }
}
