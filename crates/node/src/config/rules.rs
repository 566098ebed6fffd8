//! Checks what no single setting can say of itself.

use shoal_edge::TrustedProxies;
use shoal_policy::Policy;
use shoal_ports::QuotaConfig;

use super::error::Error;
use super::layers::Layers;
use super::{AuthMode, Backend, Role, Settings};

mod auth;
mod cluster;
mod limits;
mod pools;
mod server;

/// Checks settings that go together, and what they name outside of the configuration.
pub(super) fn check(settings: &Settings, layers: &Layers) -> Result<(), Error> {
    for rule in [
        cluster::roles,
        cluster::cluster,
        tls,
        cluster::store,
        auth::anonymous,
        auth::tokens,
        auth::oauth,
        policy,
        quotas,
        outbound,
        auth::console,
        server::path,
        server::own_paths,
        server::addresses,
        server::names,
        limits::positive,
        limits::bodies,
        pools::pools,
        logging,
        telemetry,
        audit,
    ] {
        rule(settings).map_err(|broken| broken.into_error(layers))?;
    }
    settings
        .state_keys
        .key_ring()
        .map(drop)
        .map_err(|reason| BrokenRule::new("state_keys.keys", reason).into_error(layers))
}

/// A broken rule: the setting to change, and why.
struct BrokenRule {
    setting: String,
    reason: String,
}

impl BrokenRule {
    fn new(setting: impl Into<String>, reason: impl Into<String>) -> Self {
        Self {
            setting: setting.into(),
            reason: reason.into(),
        }
    }

    fn into_error(self, layers: &Layers) -> Error {
        let path: Vec<String> = self.setting.split('.').map(str::to_owned).collect();
        Error::Rule {
            origin: layers.source_of(&path),
            setting: self.setting,
            reason: self.reason,
        }
    }
}

/// Its shape alone: where a configuration is checked, the files of the machine that it is for need not be.
fn tls(settings: &Settings) -> Result<(), BrokenRule> {
    let server = &settings.server;
    for (table, port) in [
        ("server.tls", &server.tls),
        ("server.admin_tls", &server.admin_tls),
    ] {
        port.files(table)
            .map_err(|(setting, reason)| BrokenRule::new(format!("{table}.{setting}"), reason))?;
    }
    let checked = settings.cluster.tls.files().map(drop);
    checked.map_err(|(setting, reason)| BrokenRule::new(setting, reason))
}

/// The rules themselves: where a configuration is checked, the file of the machine that it is for need not be.
fn policy(settings: &Settings) -> Result<(), BrokenRule> {
    let policy = &settings.policy;
    if policy.reread.get().is_zero() {
        return Err(BrokenRule::new("policy.reread", "it must be longer than 0"));
    }
    let compiled = Policy::compile(&policy.rules).map(drop);
    compiled.map_err(|error| BrokenRule::new("policy.rules", error.to_string()))
}

fn quotas(settings: &Settings) -> Result<(), BrokenRule> {
    QuotaConfig::check_all(&settings.quotas).map_err(|why| BrokenRule::new("quotas", why))?;
    let proxies = TrustedProxies::parse(&settings.server.trusted_proxies);
    let proxies = proxies.map_err(|why| BrokenRule::new("server.trusted_proxies", why));
    proxies.map(drop)
}

fn outbound(settings: &Settings) -> Result<(), BrokenRule> {
    let checked = settings.outbound.check();
    checked.map_err(|reason| BrokenRule::new("outbound.allow", reason))
}

fn logging(settings: &Settings) -> Result<(), BrokenRule> {
    shoal_telemetry::logging::check(&settings.logging.level)
        .map_err(|error| BrokenRule::new("logging.level", error.to_string()))
}

fn audit(settings: &Settings) -> Result<(), BrokenRule> {
    let audit = &settings.audit;
    if audit.otlp && !settings.telemetry.sends_logs() {
        return Err(BrokenRule::new(
            "audit.otlp",
            "needs a collector that takes log records: set telemetry.endpoint and telemetry.logs.otlp = true",
        ));
    }
    let checked = audit.check();
    checked.map_err(|(setting, problem)| BrokenRule::new(format!("audit.{setting}"), problem))
}

fn telemetry(settings: &Settings) -> Result<(), BrokenRule> {
    let checked = settings.telemetry.check();
    checked.map_err(|wrong| BrokenRule::new(format!("telemetry.{}", wrong.setting), wrong.problem))
}
