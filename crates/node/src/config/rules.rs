use std::collections::BTreeSet;
use std::slice;

use shoal_edge::TrustedProxies;
use shoal_policy::Policy;
use shoal_ports::QuotaConfig;

use super::finding::Finding;
use super::layers::Layers;
use super::setting_path::{PathStep, SettingPath};
use super::{AuthMode, Backend, Pool, Role, Settings, cluster_tls};

mod auth;
mod cluster;
pub(super) mod limits;
pub(super) mod pools;
mod server;

/// Skips rules about `misread` tables, whose mistakes may break the rules.
pub(super) fn check(settings: &Settings, misread: &BTreeSet<&str>) -> Vec<BrokenRule> {
    let rules: [(&[&str], SettingRule); 23] = [
        (&["node", "cluster"], cluster::roles),
        (&["cluster"], cluster::cluster),
        (&["server", "cluster"], tls),
        (&["node"], cluster::store),
        (&["auth", "server"], auth::anonymous),
        (&["auth"], auth::tokens),
        (&["auth"], auth::oauth),
        (&["policy"], policy),
        (&["quotas", "server"], quotas),
        (&["outbound"], outbound),
        (&["server"], auth::console),
        (&[], server::path),
        (&["server"], server::own_paths),
        (&["server", "node"], server::addresses),
        (&[], server::names),
        (&[], limits::positive),
        (&["limits"], limits::bodies),
        (&[], pools::pools),
        (&["discovery"], discovery),
        (&[], logging),
        (&["telemetry"], telemetry),
        (&["audit", "telemetry"], audit),
        (&["state_keys"], state_keys),
    ];
    let mut broken = Broken::default();
    for (reads, rule) in rules {
        if !reads.iter().any(|table| misread.contains(table)) {
            rule(settings, &mut broken);
        }
    }
    broken.0
}

type SettingRule = fn(&Settings, &mut Broken);

#[derive(Default)]
struct Broken(Vec<BrokenRule>);

impl Broken {
    fn add(&mut self, setting: impl Into<SettingPath>, reason: impl Into<String>) {
        self.0.push(BrokenRule {
            setting: setting.into(),
            reason: reason.into(),
        });
    }
}

pub(super) struct BrokenRule {
    setting: SettingPath,
    reason: String,
}

impl BrokenRule {
    /// A rule on `pools.<name>` itself concerns only the pool's name.
    pub(super) fn may_follow_from(&self, mistake: &SettingPath) -> bool {
        let keys = self.setting.0.iter();
        let keys = keys.filter(|step| matches!(step, PathStep::Key(_)));
        keys.count() > 2 && mistake.is_within(&self.setting)
    }

    pub(super) fn finding(self, layers: &Layers) -> Finding {
        Finding::of_setting(&self.setting, self.reason, layers)
    }
}

/// The files may be missing where an operator checks a configuration.
fn tls(settings: &Settings, broken: &mut Broken) {
    let server = &settings.server;
    for (table, port) in [
        ("server.tls", &server.tls),
        ("server.admin_tls", &server.admin_tls),
    ] {
        if let Err((setting, reason)) = port.files(table) {
            broken.add(format!("{table}.{setting}"), reason);
        }
    }
    if let Err((setting, reason)) = cluster_tls::files(&settings.cluster.tls) {
        broken.add(setting, reason);
    }
}

/// The file of rules may be missing where an operator checks the configuration.
fn policy(settings: &Settings, broken: &mut Broken) {
    let policy = &settings.policy;
    if policy.reread.get().is_zero() {
        broken.add("policy.reread", "it must be longer than 0");
    }
    let mut all_fit = true;
    for (at, rule) in policy.rules.iter().enumerate() {
        if let Err(error) = Policy::compile(slice::from_ref(rule)) {
            all_fit = false;
            broken.add(format!("policy.rules[{at}]"), error.to_string());
        }
    }
    if let (true, Err(error)) = (all_fit, Policy::compile(&policy.rules)) {
        broken.add("policy.rules", error.to_string());
    }
}

fn quotas(settings: &Settings, broken: &mut Broken) {
    let all = &settings.quotas;
    let mut all_fit = true;
    for (at, quota) in all.iter().enumerate() {
        let own = QuotaConfig::check_all(slice::from_ref(quota)).err();
        let twice = all[..at].iter().any(|other| other.name == quota.name);
        let twice = twice.then(|| format!("two quotas are called {:?}", quota.name));
        for reason in own.into_iter().chain(twice) {
            all_fit = false;
            broken.add(format!("quotas[{at}]"), reason);
        }
    }
    if let (true, Err(reason)) = (all_fit, QuotaConfig::check_all(all)) {
        broken.add("quotas", reason);
    }
    if let Err(reason) = TrustedProxies::parse(&settings.server.endpoint.trusted_proxies) {
        broken.add("server.trusted_proxies", reason);
    }
}

pub(super) fn wrong_with_pool(name: &str, pool: &Pool) -> Option<String> {
    let mut broken = Broken::default();
    pools::pool(name, pool, &mut broken);
    let first = broken.0.into_iter().next()?;
    let member = first.setting.below(&SettingPath::parse("pools").key(name));
    match member.map(|member| member.to_string()) {
        Some(member) if !member.is_empty() => Some(format!("{member}: {}", first.reason)),
        _ => Some(first.reason),
    }
}

fn discovery(settings: &Settings, broken: &mut Broken) {
    if let Err((setting, reason)) = settings.discovery.kubernetes.check() {
        broken.add(format!("discovery.kubernetes.{setting}"), reason);
    }
}

fn outbound(settings: &Settings, broken: &mut Broken) {
    if let Err(reason) = settings.outbound.check() {
        broken.add("outbound.allow", reason);
    }
}

fn logging(settings: &Settings, broken: &mut Broken) {
    if let Err(error) = shoal_telemetry::logging::check(&settings.logging.level) {
        broken.add("logging.level", error.to_string());
    }
}

fn audit(settings: &Settings, broken: &mut Broken) {
    let audit = &settings.audit;
    if audit.otlp && !settings.telemetry.sends_logs() {
        broken.add(
            "audit.otlp",
            "needs a collector that takes log records: set telemetry.endpoint and telemetry.logs.otlp = true",
        );
    }
    if let Err((setting, problem)) = audit.check() {
        broken.add(format!("audit.{setting}"), problem);
    }
}

fn telemetry(settings: &Settings, broken: &mut Broken) {
    if let Err(wrong) = settings.telemetry.check() {
        broken.add(format!("telemetry.{}", wrong.setting), wrong.problem);
    }
}

fn state_keys(settings: &Settings, broken: &mut Broken) {
    for (at, key) in settings.state_keys.keys.iter().enumerate() {
        if let Err(reason) = key.read() {
            broken.add(format!("state_keys.keys[{at}]"), reason);
        }
    }
}
