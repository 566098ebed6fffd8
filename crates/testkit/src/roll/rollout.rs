use std::time::Duration;

use anyhow::{Context as _, bail};
use serde::Serialize;
use tokio::time::{Instant, sleep};

use super::Options;
use crate::cluster::{Cluster, Member, Role};
use crate::process::SOON;
use crate::service::Service;

/// A process that was replaced. Times count from the run's start.
#[derive(Clone, Debug, Serialize)]
pub struct Restart {
    /// The role.
    pub role: String,
    /// The process's name.
    pub name: String,
    /// When the process's successor was started.
    pub from: Duration,
    /// When the process was told to terminate.
    pub told: Duration,
    /// When the process had ended.
    pub until: Duration,
    /// Why the process did not exit cleanly. `None` if it did.
    pub failed: Option<String>,
    /// The sessions that the process handed over.
    pub handed_over: Option<HandOver>,
}

/// Sessions that a node handed over at its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct HandOver {
    /// Sessions handed over.
    pub sessions: u64,
    /// The median, over these sessions, of the time without an owner.
    pub median_ms: f64,
    /// The longest time for which one of these sessions had no owner.
    pub longest_ms: f64,
}

impl Restart {
    /// Returns the time from the signal to the process's end.
    #[must_use]
    pub fn drain(&self) -> Duration {
        self.until.saturating_sub(self.told)
    }
}

pub(super) struct Rollout<'a> {
    cluster: Cluster,
    service: &'a Service,
    options: &'a Options,
    began: Instant,
    restarts: Vec<Restart>,
}

impl<'a> Rollout<'a> {
    pub(super) fn new(
        cluster: Cluster,
        service: &'a Service,
        options: &'a Options,
        began: Instant,
    ) -> Self {
        Self {
            cluster,
            service,
            options,
            began,
            restarts: Vec::new(),
        }
    }

    pub(super) fn end(self) -> (Cluster, Vec<Restart>) {
        (self.cluster, self.restarts)
    }

    pub(super) async fn run(&mut self) -> anyhow::Result<()> {
        for role in &self.options.roles {
            let members = self.cluster.members().iter();
            let members = members.filter(|member| member.role() == *role);
            let names: Vec<String> = members.map(|member| member.name().to_owned()).collect();
            for name in names {
                self.replace(*role, &name).await?;
                sleep(self.options.between).await;
            }
        }
        Ok(())
    }

    async fn replace(&mut self, role: Role, name: &str) -> anyhow::Result<()> {
        let from = self.began.elapsed();
        let successor = self.cluster.start_one_more(role).await?;
        self.wait_until_ready(&successor).await?;
        if let Some(edge) = successor.as_edge() {
            self.service.add(edge);
        }
        let old = self.cluster.replace(name, successor);
        let old = old.with_context(|| format!("there is no {name}"))?;
        let told = self.began.elapsed();
        self.service.terminate(name);
        let ended = old.terminate(self.options.grace).await;
        let failed = match ended {
            Ok(status) if status.success() => None,
            Ok(status) => Some(format!("{name} ended with {status}")),
            Err(error) => {
                old.kill().await?;
                Some(format!("{name} had to be killed: {error:#}"))
            }
        };
        let log = std::fs::read_to_string(old.log()).unwrap_or_default();
        self.restarts.push(Restart {
            role: role.to_string(),
            name: name.to_owned(),
            from,
            told,
            until: self.began.elapsed(),
            failed,
            handed_over: HandOver::in_log(&log),
        });
        Ok(())
    }

    async fn wait_until_ready(&self, member: &Member) -> anyhow::Result<()> {
        let deadline = Instant::now() + SOON;
        while !member.admin().is_ready().await {
            if Instant::now() > deadline {
                bail!(
                    "{} does not get ready: {}",
                    member.name(),
                    crate::process::tail(member.log())
                );
            }
            sleep(self.options.probing.period).await;
        }
        Ok(())
    }
}

impl HandOver {
    fn in_log(log: &str) -> Option<Self> {
        let line = log.lines().rfind(|line| line.contains("handed over"))?;
        let number = |name: &str| {
            let (_, after) = line.split_once(&format!("{name}="))?;
            let end = after.find(' ').unwrap_or(after.len());
            after[..end].parse::<f64>().ok()
        };
        Some(Self {
            sessions: number("sessions")? as u64,
            median_ms: number("median_ms")?,
            longest_ms: number("longest_ms")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::HandOver;

    #[test]
    fn a_log_tells_of_the_last_hand_over() {
        let log = "INFO shoal_node::shutdown: shutting down: hand sessions over\n\
                   INFO shoal_node::shutdown: handed over sessions=250 median_ms=1.5 longest_ms=30 took_ms=80\n\
                   INFO shoal_node::shutdown: shut down took=2s\n";
        let expected = HandOver {
            sessions: 250,
            median_ms: 1.5,
            longest_ms: 30.0,
        };
        assert_eq!(HandOver::in_log(log), Some(expected));
        assert_eq!(HandOver::in_log("nothing of the kind\n"), None);
    }
}
