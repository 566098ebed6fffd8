use std::time::Duration;

use anyhow::Context as _;
use serde::Serialize;
use tokio::time::{Instant, sleep};

use crate::cluster::{Cluster, Role};
use crate::process::SOON;
use crate::service::Service;

/// How long a process may take to end (`terminationGracePeriodSeconds`).
const GRACE: Duration = Duration::from_secs(60);
const BETWEEN: Duration = Duration::from_secs(1);

/// A process that was replaced. Times count from the run's start.
#[derive(Clone, Debug, Serialize)]
pub struct Restart {
    /// The process's name.
    pub name: String,
    /// When the process was told to terminate.
    pub told: Duration,
    /// When the process had ended.
    pub until: Duration,
    /// Why the process did not exit cleanly. `None` if it did.
    pub failed: Option<String>,
    /// The fields of the process's log about the sessions that it handed over.
    pub handed_over: Option<String>,
}

pub(super) async fn run(
    cluster: &mut Cluster,
    service: &Service,
    began: Instant,
    restarts: &mut Vec<Restart>,
) -> anyhow::Result<()> {
    for role in [Role::Session, Role::Edge, Role::Worker] {
        let members = cluster.members().iter();
        let members = members.filter(|member| member.role() == role);
        let names: Vec<String> = members.map(|member| member.name().to_owned()).collect();
        for name in names {
            let successor = cluster.start_one_more(role).await?;
            successor.wait_until_ready(SOON).await?;
            if let Some(edge) = successor.as_edge() {
                service.add(edge);
            }
            let old = cluster.replace(&name, successor);
            let old = old.with_context(|| format!("there is no {name}"))?;
            let told = began.elapsed();
            service.terminate(&name);
            let failed = match old.terminate(GRACE).await {
                Ok(status) if status.success() => None,
                Ok(status) => Some(format!("{name} ended with {status}")),
                Err(error) => {
                    old.kill().await?;
                    Some(format!("{name} had to be killed: {error:#}"))
                }
            };
            let log = std::fs::read_to_string(old.log()).unwrap_or_default();
            let handed_over = log
                .lines()
                .rev()
                .find_map(|line| line.split_once("handed over "));
            restarts.push(Restart {
                name,
                told,
                until: began.elapsed(),
                failed,
                handed_over: handed_over.map(|(_, fields)| fields.to_owned()),
            });
            sleep(BETWEEN).await;
        }
    }
    Ok(())
}
