use std::time::Duration;

use futures::future::try_join_all;
use rand::seq::SliceRandom as _;

use super::{Deed, Injector, killed};
use crate::cluster::Member;
use crate::fault_proxy::Fault;
use crate::process::SOON;

const AWAY: Duration = Duration::from_secs(1);

pub(super) const EVERY: Duration = Duration::from_secs(1);
const SHORTLY_AWAY: Duration = Duration::from_millis(100);

impl Injector<'_> {
    pub(super) async fn kill(&mut self, members: &[&Member]) -> anyhow::Result<Vec<Deed>> {
        let member = self.one_of(members)?;
        self.kill_for(member, AWAY).await
    }

    pub(super) async fn kill_next(&mut self, turn: usize) -> anyhow::Result<Vec<Deed>> {
        let member = self.one_in_turn(turn)?;
        self.kill_for(member, SHORTLY_AWAY).await
    }

    async fn kill_for(&mut self, member: &Member, away: Duration) -> anyhow::Result<Vec<Deed>> {
        member.kill().await?;
        self.wait_about(away).await;
        member.bring_back().await?;
        Ok(vec![killed(member)])
    }

    pub(super) async fn kill_two_roles(&mut self) -> anyhow::Result<Vec<Deed>> {
        let cluster = self.cluster;
        let mut roles = [cluster.edges(), cluster.sessions(), cluster.workers()];
        roles.shuffle(&mut self.dice);
        let [one, other, _] = roles;
        let members = [self.one_of(&one)?, self.one_of(&other)?];
        self.kill_all(&members).await?;
        try_join_all(members.map(|member| member.wait_until_ready(SOON))).await?;
        Ok(members.map(killed).to_vec())
    }

    pub(super) async fn kill_all_session_nodes(&mut self) -> anyhow::Result<Vec<Deed>> {
        let nodes = self.cluster.sessions();
        let late = self.one_of(&self.cluster.workers())?;
        for node in &nodes {
            self.cluster.between(late, node, Fault::Cut);
        }
        self.kill_all(&nodes).await?;
        self.wait_about(AWAY).await;
        self.cluster.heal();
        try_join_all(nodes.iter().map(|node| node.wait_until_ready(SOON))).await?;
        let cut = Deed::Cut(format!("{} and all session nodes", late.name()));
        Ok(nodes.iter().copied().map(killed).chain([cut]).collect())
    }

    async fn kill_all(&mut self, members: &[&Member]) -> anyhow::Result<()> {
        for member in members {
            member.kill().await?;
        }
        self.wait_about(AWAY).await;
        try_join_all(members.iter().map(|member| member.start_again())).await?;
        Ok(())
    }
}
