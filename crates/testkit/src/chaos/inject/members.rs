//! Faults of processes and of their machine.

use std::time::Duration;

use futures::future::try_join_all;
use rand::Rng as _;
use rand::seq::SliceRandom as _;
use tokio::time::sleep;

use super::{AWAY, Deed, Deeds, Injector, ORDERLY_END};
use crate::clock::{self, WrongClock};
use crate::cluster::{Member, Tools};
use crate::fault_proxy::{Direction, Fault};
use crate::limits::{self, DESCRIPTORS};

const BRIEFLY: Duration = Duration::from_millis(300);

impl Injector<'_> {
    pub(super) async fn kill_one(&mut self, members: &[&Member], away: Duration) -> Deeds {
        let member = self.one_of(members)?;
        self.kill(&[member], away).await
    }

    async fn kill(&mut self, members: &[&Member], away: Duration) -> Deeds {
        for member in members {
            member.kill().await?;
        }
        self.wait_about(away).await;
        try_join_all(members.iter().map(|member| member.start_again())).await?;
        let killed = |member: &&Member| Deed::new(Deed::KILLED, member.name());
        Ok(members.iter().map(killed).collect())
    }

    pub(super) async fn kill_two_roles(&mut self) -> Deeds {
        let cluster = self.cluster;
        let mut roles = [cluster.edges(), cluster.sessions(), cluster.workers()];
        roles.shuffle(&mut self.dice);
        let [one, other, _] = roles;
        let members = [self.one_of(&one)?, self.one_of(&other)?];
        self.kill(&members, AWAY).await
    }

    pub(super) async fn kill_all_session_nodes(&mut self) -> Deeds {
        let nodes = self.cluster.sessions();
        let late = self.one_of(&self.cluster.workers())?;
        for node in &nodes {
            self.cluster.between(late, node, Fault::Cut);
        }
        let mut deeds = self.kill(&nodes, AWAY).await?;
        self.wait_about(AWAY).await;
        self.cluster.heal();
        let cut = format!("{} and all session nodes", late.name());
        deeds.push(Deed::new("cut", cut));
        Ok(deeds)
    }

    pub(super) async fn change_clock(&mut self, members: &[&Member], seconds: i64) -> Deeds {
        let clock = WrongClock::find()?;
        let member = self.one_of(members)?;
        let pid = member.pid();
        for (name, value) in clock.variables(seconds) {
            member.variable(name, &value);
        }
        let deeds = self.kill(&[member], BRIEFLY).await?;
        clock::clean_up_after(pid);
        Ok(deeds)
    }

    pub(super) async fn stop_reading(&mut self, members: &[&Member]) -> Deeds {
        let member = self.one_of(members)?;
        member.kill().await?;
        self.wait_about(BRIEFLY).await;
        member.start_again_unread().await?;
        Ok(vec![Deed::new(Deed::KILLED, member.name())])
    }

    pub(super) async fn use_up_descriptors(&mut self, members: &[&Member]) -> Deeds {
        let member = self.one_of(members)?;
        let pid = member.pid();
        let free = limits::lowest_free_descriptor(pid)?;
        limits::set(pid, DESCRIPTORS, Some(free)).await?;
        self.wait_about(self.options.lease).await;
        limits::set(pid, DESCRIPTORS, None).await?;
        Ok(vec![Deed::new("without descriptors", member.name())])
    }

    pub(super) async fn restart(&mut self, member: &Member) -> Deeds {
        member.restart(ORDERLY_END).await?;
        Ok(vec![Deed::new("restarted", member.name())])
    }

    pub(super) async fn take_room_away(&mut self) -> Deeds {
        let worker = self.one_of(&self.cluster.workers())?;
        for (name, value) in Tools::LITTLE_ROOM {
            worker.set(name, value);
        }
        let mut deeds = self.restart(worker).await?;
        self.wait_about(self.options.lease).await;
        let refused = worker.admin().metric("shoal_worker_refused_total", "");
        if refused.await? > 0.0 {
            deeds.push(Deed::new(Deed::REFUSED, worker.name()));
        }
        for (name, _) in Tools::LITTLE_ROOM {
            worker.unset(name);
        }
        worker.restart(ORDERLY_END).await?;
        Ok(deeds)
    }

    pub(super) async fn pause(&mut self, members: &[&Member], time: Duration) -> Deeds {
        let time = self.about(time);
        self.pause_for(members, time).await
    }

    pub(super) async fn pause_within_lease(&mut self, members: &[&Member]) -> Deeds {
        let noticed = self.options.silence.mul_f64(1.1);
        let held = self.options.lease.saturating_sub(noticed).mul_f64(0.8);
        let time = noticed + held.mul_f64(self.dice.random());
        self.pause_for(members, time).await
    }

    async fn pause_for(&mut self, members: &[&Member], time: Duration) -> Deeds {
        let member = self.one_of(members)?;
        member.pause().await?;
        sleep(time).await;
        member.resume().await?;
        Ok(vec![Deed::new("paused", member.name())])
    }

    /// The node's last messages to workers arrive when other nodes may own its sessions.
    pub(super) async fn pause_with_late_starts(&mut self) -> Deeds {
        let cluster = self.cluster;
        let node = self.one_of(&cluster.sessions())?;
        for worker in cluster.workers() {
            cluster.between(worker, node, Fault::OneWayHole(Direction::Down));
        }
        sleep(BRIEFLY).await;
        node.pause().await?;
        sleep(self.options.lease.mul_f64(self.dice.random_range(1.1..1.5))).await;
        cluster.heal();
        // The messages travel before the node continues.
        sleep(BRIEFLY).await;
        node.resume().await?;
        Ok(vec![Deed::new("paused, and sent late", node.name())])
    }
}
