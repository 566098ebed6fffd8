//! A whole cluster: Redis, edges, session nodes and workers as separate processes behind one URL.

mod builder;
mod certificates;
mod member;
mod plan;
mod role;
mod tools;

use std::collections::HashMap;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use futures::future::join_all;

pub use builder::Builder;
pub(crate) use builder::behind;
pub use certificates::{Certificates, Issued};
pub use member::Member;
pub use plan::variable;
pub use role::Role;
pub use tools::Tools;

use self::plan::Plan;
use crate::directory::Directory;
use crate::fault_proxy::{Fault, FaultProxy};
use crate::process;
use crate::redis::Redis;
use crate::round_robin::{Break, RoundRobin};

/// Parses `NAME=VALUE`.
///
/// # Errors
///
/// If there is no `=`.
pub fn setting(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("write NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

const ORDERLY_END: Duration = Duration::from_secs(20);

/// A running cluster. Dropping it kills all processes, and keeps the logs if the test is failing.
#[derive(Debug)]
pub struct Cluster {
    members: Vec<Member>,
    round_robin: Option<RoundRobin>,
    url: String,
    redis: Option<Redis>,
    certificates: Option<Certificates>,
    plan: Plan,
    started: HashMap<Role, usize>,
}

impl Cluster {
    /// Returns a builder with one member of each role.
    #[must_use]
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Returns the balancer's URL, or that of the first edge.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns all Shoal processes.
    #[must_use]
    pub fn members(&self) -> &[Member] {
        &self.members
    }

    /// Returns the members that serve clients.
    #[must_use]
    pub fn edges(&self) -> Vec<&Member> {
        self.those_that(Role::serves_clients)
    }

    /// Returns the members that hold sessions.
    #[must_use]
    pub fn sessions(&self) -> Vec<&Member> {
        self.those_that(Role::holds_sessions)
    }

    /// Returns the members that run tools.
    #[must_use]
    pub fn workers(&self) -> Vec<&Member> {
        self.those_that(|role| role == Role::Worker)
    }

    /// Returns the process ids of all members and, last, of Redis.
    #[must_use]
    pub fn pids(&self) -> Vec<u32> {
        let members = self.members.iter().map(|member| member.pid());
        members
            .chain(self.redis.iter().map(|redis| redis.pid()))
            .collect()
    }

    /// Returns the cluster's own Redis.
    #[must_use]
    pub fn redis(&self) -> Option<&Redis> {
        self.redis.as_ref()
    }

    /// Returns the certificates that members use with [`Builder::tls`].
    #[must_use]
    pub fn certificates(&self) -> Option<&Certificates> {
        self.certificates.as_ref()
    }

    /// Returns the requests that edges have broken.
    #[must_use]
    pub fn breaks(&self) -> Vec<Break> {
        self.round_robin
            .as_ref()
            .map_or_else(Vec::new, RoundRobin::breaks)
    }

    /// Returns the path of the ledger of [`Tools::Chaos`].
    #[must_use]
    pub fn ledger(&self) -> PathBuf {
        tools::ledger(&self.plan.directory)
    }

    /// Starts another member, which the balancer does not know, and waits for its addresses.
    ///
    /// # Errors
    ///
    /// If the member does not start. The error contains its log.
    pub async fn start_one_more(&mut self, role: Role) -> anyhow::Result<Member> {
        let started = self.started.entry(role).or_default();
        *started += 1;
        let join: Vec<SocketAddr> = match role {
            Role::Worker => self.members.iter().filter_map(Member::dialled_at).collect(),
            _ => Vec::new(),
        };
        self.plan.start(role, *started, &join).await
    }

    /// Puts `by` in the place of the member `name`. Returns the former member.
    pub fn replace(&mut self, name: &str, by: Member) -> Option<Member> {
        let old = self
            .members
            .iter_mut()
            .find(|member| member.name() == name)?;
        Some(std::mem::replace(old, by))
    }

    /// Sets a fault between two members. Needs [`Builder::fault_proxies`].
    pub fn between(&self, one: &Member, other: &Member, fault: Fault) {
        for (member, dialer) in [(one, other), (other, one)] {
            if let Some(gate) = &member.gates.own {
                gate.set_for(dialer.name(), fault);
            }
        }
    }

    /// Sets a fault between a member and Redis. Needs [`Builder::fault_proxies`].
    pub fn to_redis(&self, member: &Member, fault: Fault) {
        if let Some(gate) = &member.gates.redis {
            gate.set(fault);
        }
    }

    /// Ends the faults of all proxies.
    pub fn heal(&self) {
        self.gates().for_each(FaultProxy::heal);
    }

    /// Counts faults' effects on connections. With zero, a test proves little.
    #[must_use]
    pub fn disturbed(&self) -> u64 {
        self.gates().map(FaultProxy::disturbed).sum()
    }

    fn gates(&self) -> impl Iterator<Item = &FaultProxy> {
        let gates = self.members.iter().map(|member| &member.gates);
        gates.flat_map(|gates| gates.own.iter().chain(&gates.redis))
    }

    /// Returns the tails of all logs.
    #[must_use]
    pub fn logs(&self) -> String {
        let mut text = String::new();
        for member in &self.members {
            let log = process::tail(member.log());
            let _ = writeln!(text, "--- {}\n{log}", member.name());
        }
        text
    }

    /// Returns the directory of logs, data and configuration.
    #[must_use]
    pub fn directory(&self) -> &Directory {
        &self.plan.directory
    }

    /// Ends every member in order, edges first and workers last.
    pub async fn end(mut self) {
        for role in [
            Role::Edge,
            Role::Combined,
            Role::Session,
            Role::Worker,
            Role::Whole,
        ] {
            let members = std::mem::take(&mut self.members);
            let (now, later) = members
                .into_iter()
                .partition(|member| member.role() == role);
            self.members = later;
            let now: Vec<Member> = now;
            join_all(now.into_iter().map(|member| member.end(ORDERLY_END))).await;
        }
    }

    fn those_that(&self, does: impl Fn(Role) -> bool) -> Vec<&Member> {
        let members = self.members.iter();
        members.filter(|member| does(member.role())).collect()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if std::thread::panicking() {
            report(self);
        }
    }
}

#[expect(clippy::print_stderr, reason = "a failing test shows it")]
fn report(cluster: &Cluster) {
    let kept = cluster.directory().keep().display();
    eprintln!("{}all of it: {kept}", cluster.logs());
}
