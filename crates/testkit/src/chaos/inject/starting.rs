//! Clients that listen at a starting edge must hear of the next list change.

use anyhow::Context as _;
use futures::future::try_join_all;

use super::{Deed, Deeds, Injector};
use crate::client::Listener;
use crate::process::SOON;

const LISTENERS: usize = 12;

impl Injector<'_> {
    pub(super) async fn listen_at_a_starting_edge(&mut self, turn: usize) -> Deeds {
        let edge = self.one_of(&self.cluster.edges())?;
        let worker = self.one_of(&self.cluster.workers())?;
        let url = edge.mcp_url().context("an edge has a URL")?;
        edge.kill().await?;
        // While the edge is down, so that clients listen from its first moment.
        let listening = try_join_all((0..LISTENERS).map(|_| Listener::open(url, SOON)));
        let (started, listeners) = tokio::join!(edge.start_again(), listening);
        started?;
        let mut listeners = listeners?;
        edge.wait_until_ready(SOON).await?;
        let before: Vec<usize> = listeners.iter().map(Listener::changes).collect();
        worker.set(&format!("pools.extra{turn}.backend"), "conformance");
        worker.set(
            &format!("pools.extra{turn}.prefix"),
            &format!("extra{turn}_"),
        );
        let mut deeds = self.restart(worker).await?;
        for (listener, before) in listeners.iter_mut().zip(before) {
            let heard = listener.hear_more_than(before, SOON).await;
            heard.with_context(|| {
                format!("a listener at {}, which had just started", edge.name())
            })?;
        }
        deeds.push(Deed::new(Deed::KILLED, edge.name()));
        Ok(deeds)
    }
}
