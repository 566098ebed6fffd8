use std::ffi::OsString;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use super::{Member, Role, Tools};
use crate::clock::{SKEWS, WrongClock};
use crate::dialers::Dialers;
use crate::directory::Directory;
use crate::fault_proxy::FaultProxy;
use crate::free_port;
use crate::process::Launch;

#[derive(Debug)]
pub(super) struct Plan {
    pub(super) program: PathBuf,
    pub(super) starter: Vec<OsString>,
    pub(super) directory: Directory,
    pub(super) settings: Vec<(String, String)>,
    pub(super) worker_settings: Vec<(String, String)>,
    pub(super) tools: Tools,
    pub(super) clock: Option<WrongClock>,
    pub(super) redis: Option<SocketAddr>,
    pub(super) store: Option<String>,
    pub(super) fault_proxies: bool,
    pub(super) dialers: Dialers,
}

#[derive(Debug, Default)]
pub(super) struct Gates {
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
        let mut gates = Gates::default();
        let mut launch = Launch::new(&name, &self.program, log).arguments([
            "serve",
            "--admin",
            &local_port()?.to_string(),
        ]);
        if let Some(roles) = role.flag() {
            launch = launch.arguments(["--roles", roles]);
        }
        if role.serves_clients() {
            launch = launch.arguments(["--listen", &local_port()?.to_string()]);
        }
        if role.has_cluster_listener() {
            let listen = local_port()?;
            launch = launch.arguments(["--cluster-listen", &listen.to_string()]);
            if self.fault_proxies {
                let gate = FaultProxy::classified(listen, self.dialers.classify()).await?;
                launch = launch.arguments(["--advertise", &gate.address().to_string()]);
                gates.own = Some(gate);
            }
        }
        if let (true, Some(mut redis)) = (role.has_cluster_listener(), self.redis) {
            if self.fault_proxies {
                let gate = FaultProxy::start(redis).await?;
                redis = gate.address();
                gates.redis = Some(gate);
            }
            launch = launch.arguments(["--store", &format!("redis://{redis}")]);
        }
        if let (true, Some(store)) = (role.has_cluster_listener(), &self.store) {
            launch = launch.arguments(["--store", store]);
        }
        if !join.is_empty() {
            let addresses: Vec<String> = join.iter().map(SocketAddr::to_string).collect();
            launch = launch.arguments(["--join", &addresses.join(",")]);
        }
        let own = match role {
            Role::Worker => &self.worker_settings[..],
            _ => &[],
        };
        for (name, value) in self.settings.iter().chain(own) {
            launch = launch.variable(&variable(name), value);
        }
        for (name, value) in self
            .clock
            .iter()
            .flat_map(|clock| clock.variables(skew(role, number)))
        {
            launch = launch.variable(name, &value);
        }
        if role.runs_tools() {
            // Last, because a command takes the rest of the line.
            launch = launch.arguments(self.tools.arguments(&self.directory, number)?);
        }
        let launch = launch.under(&self.starter);
        Member::start(role, launch, gates, self.dialers.clone()).await
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
