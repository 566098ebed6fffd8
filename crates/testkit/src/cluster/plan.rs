use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use super::{Builder, Member, Role};
use crate::admin::Admin;
use crate::clock::SKEWS;
use crate::dialers::Dialers;
use crate::directory::Directory;
use crate::fault_proxy::FaultProxy;
use crate::free_port;
use crate::process::Launch;

#[derive(Debug)]
pub(super) struct Plan {
    pub(super) builder: Builder,
    pub(super) program: PathBuf,
    pub(super) directory: Directory,
    pub(super) redis: Option<SocketAddr>,
    pub(super) dialers: Dialers,
}

/// How other members reach this one, and the proxies for faults.
#[derive(Debug, Default)]
pub(super) struct Gates {
    pub(super) dialled_at: Option<SocketAddr>,
    pub(super) own: Option<FaultProxy>,
    pub(super) redis: Option<FaultProxy>,
}

impl Plan {
    pub(super) async fn start(
        &self,
        role: Role,
        number: usize,
        join: &[SocketAddr],
    ) -> anyhow::Result<Member> {
        let name = format!("{role}-{number}");
        let log = self.directory.file(&format!("{name}.log"));
        let (builder, admin) = (&self.builder, local_port()?.to_string());
        let mut gates = Gates::default();
        let mut launch =
            Launch::new(&name, &self.program, log).arguments(["serve", "--admin", &admin]);
        if let Some(roles) = role.flag() {
            launch = launch.arguments(["--roles", roles]);
        }
        if role.serves_clients() {
            launch = launch.arguments(["--listen", &local_port()?.to_string()]);
        }
        if role.has_cluster_listener() {
            let listen = local_port()?;
            launch = launch.arguments(["--cluster-listen", &listen.to_string()]);
            gates.dialled_at = Some(listen);
            let mut redis = self.redis;
            if builder.fault_proxies {
                let gate = FaultProxy::classified(listen, self.dialers.classify()).await?;
                launch = launch.arguments(["--advertise", &gate.address().to_string()]);
                gates.dialled_at = Some(gate.address());
                gates.own = Some(gate);
                if let Some(redis) = &mut redis {
                    let gate = FaultProxy::start(*redis).await?;
                    *redis = gate.address();
                    gates.redis = Some(gate);
                }
            }
            let redis = redis.map(|redis| format!("redis://{redis}"));
            if let Some(store) = redis.as_ref().or(builder.store.as_ref()) {
                launch = launch.arguments(["--store", store]);
            }
        }
        if !join.is_empty() {
            let addresses: Vec<String> = join.iter().map(SocketAddr::to_string).collect();
            launch = launch.arguments(["--join", &addresses.join(",")]);
        }
        let own = match role {
            Role::Worker => &builder.worker_settings[..],
            _ => &[],
        };
        for (name, value) in builder.settings.iter().chain(own) {
            launch = launch.variable(&variable(name), value);
        }
        if let Some(clock) = builder.clock {
            for (name, value) in clock.variables(skew(role, number)) {
                launch = launch.variable(name, &value);
            }
        }
        if role.runs_tools() {
            // Last, because a command takes the rest of the line.
            launch = launch.arguments(builder.tools.arguments(&self.directory, number)?);
        }
        let launch = launch.under(&builder.starter);
        let admin = Admin::at(&format!("http://{admin}"))?;
        Member::start(role, launch, admin, gates, self.dialers.clone()).await
    }
}

/// Returns the environment variable of a setting such as `streams.retry`.
#[must_use]
pub fn variable(setting: &str) -> String {
    format!("SHOAL_{}", setting.to_uppercase().replace('.', "__"))
}

fn skew(role: Role, number: usize) -> i64 {
    let place = match role {
        Role::Edge | Role::Whole => 0,
        Role::Session | Role::Combined => 1,
        Role::Worker => 2,
    };
    SKEWS[(place + number) % SKEWS.len()]
}

fn local_port() -> anyhow::Result<SocketAddr> {
    Ok((Ipv4Addr::LOCALHOST, free_port::reserve()?).into())
}
