//! The settings, credentials, files and the collector that a case's features need.

use std::fs;
use std::io::Write as _;
use std::time::Duration;

use http::HeaderValue;
use serde_json::json;
use shoal_auth::fixture::{AuthorizationServer, SigningKey, now};
use tempfile::NamedTempFile;
use tokio::time::sleep;

use crate::engine::call::POLL_INTERVAL_MS;
use crate::mcp::{bearer, token_entry};
use crate::servers::collector::{Collector, Conduct};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Authentication {
    Off,
    /// Clients use one of this many tokens.
    Tokens(usize),
    Jwt,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Features {
    pub(crate) validation: bool,
    pub(crate) authentication: Authentication,
    pub(crate) policy: bool,
    pub(crate) quotas: bool,
    pub(crate) audit: bool,
    pub(crate) metrics: bool,
    /// The share of traced calls, and what the collector does.
    pub(crate) traces: Option<(f64, Conduct)>,
    /// Calls of clients that support tasks become tasks.
    pub(crate) tasks: bool,
}

impl Features {
    pub(crate) const NONE: Self = Self {
        validation: false,
        authentication: Authentication::Off,
        policy: false,
        quotas: false,
        audit: false,
        metrics: false,
        traces: None,
        tasks: false,
    };

    /// Those of Shoal's default settings, without telemetry.
    pub(crate) const DEFAULT: Self = Self {
        validation: true,
        ..Self::NONE
    };
}

/// A tool that the policy hides.
pub(super) const HIDDEN: &str = "add";

/// A tool that a quota limits to one call.
pub(super) const RARE: &str = "echo_once";

const OTHERS: [&str; 7] = [
    "book_table",
    "connect_account",
    "increment_counter",
    "list_roots",
    "long_job",
    "summarize",
    "write_log",
];

const QUOTAS: &str = r#"
[[quotas]]
name = "addresses"
per = "address"
rate = "100000/s"

[[quotas]]
name = "principals"
per = "principal"
rate = "100000/s"
concurrent = 10000

[[quotas]]
name = "echo"
per = "principal"
tools = ["echo"]
rate = "100000/s"

[[quotas]]
name = "everybody"
per = "all"
rate = "100000/s"

[[quotas]]
name = "rare"
per = "all"
tools = ["echo_once"]
rate = "1/h"
burst = 1
"#;

const RESOURCE: &str = "https://mcp.example.com/mcp";

const TENANT: &str = "loadtest";

const LIFETIME: u64 = 86_400;

const LOOKS: usize = 100;

const BETWEEN: Duration = Duration::from_millis(20);

pub(crate) struct Setup {
    /// Overrides inherited OpenTelemetry variables too.
    pub(crate) settings: Vec<(&'static str, String)>,
    pub(crate) authorization: Option<HeaderValue>,
    pub(crate) collector: Option<Collector>,
    trail: Option<NamedTempFile>,
    _quotas: Option<NamedTempFile>,
    _issuer: Option<AuthorizationServer>,
}

impl Setup {
    /// `core` is that of the collector.
    pub(crate) async fn of(features: &Features, core: Option<usize>) -> anyhow::Result<Self> {
        let traces = features.traces;
        let collector = traces.map(|(_, conduct)| Collector::start(conduct, core));
        let telemetry = features.metrics || traces.is_some();
        let mut setup = Self {
            settings: Vec::new(),
            authorization: None,
            collector: collector.transpose()?,
            trail: features.audit.then(NamedTempFile::new).transpose()?,
            _quotas: None,
            _issuer: None,
        };
        for (name, is_on) in [
            ("catalog.validate_arguments", features.validation),
            ("telemetry.enabled", telemetry),
            ("telemetry.metrics.prometheus", features.metrics),
            ("telemetry.metrics.otlp", false),
            ("telemetry.logs.otlp", false),
            ("telemetry.traces.enabled", traces.is_some()),
        ] {
            setup.set(name, is_on);
        }
        if let (Some((ratio, _)), Some(collector)) = (traces, &setup.collector) {
            let endpoint = collector.endpoint.clone();
            setup.set("telemetry.endpoint", endpoint);
            setup.set("telemetry.protocol", "grpc");
            setup.set("telemetry.traces.ratio", ratio);
        }
        match features.authentication {
            Authentication::Off => {}
            Authentication::Tokens(count) => setup.know_tokens(count),
            Authentication::Jwt => setup.trust_an_issuer().await,
        }
        if features.policy {
            let has_claims = features.authentication == Authentication::Jwt;
            setup.set("policy.rules", rules(has_claims));
        }
        if features.quotas {
            let mut file = tempfile::Builder::new().suffix(".toml").tempfile()?;
            file.write_all(QUOTAS.as_bytes())?;
            setup.set("config", file.path().display());
            setup._quotas = Some(file);
        }
        if let Some(trail) = &setup.trail {
            let path = trail.path().display().to_string();
            setup.set("audit.file", path);
        }
        if features.tasks {
            setup.set("tasks.after", "1ms");
            let poll_interval = format!("{POLL_INTERVAL_MS}ms");
            setup.set("tasks.poll_interval", poll_interval);
            // With these times, a task is unloaded and forgotten within a run. Tasks that live for an hour would
            // exceed the limit of sessions.
            setup.set("session.sweep_every", "1s");
            setup.set("session.passivate_after", "1s");
            setup.set("tasks.ttl", "5s");
        }
        Ok(setup)
    }

    fn set(&mut self, name: &'static str, value: impl ToString) {
        self.settings.push((name, value.to_string()));
    }

    fn know_tokens(&mut self, count: usize) {
        let tokens: Vec<String> = (0..count).map(|_| random_token()).collect();
        let entries = tokens.iter().map(|token| token_entry("loadtest", token));
        let entries = entries.collect::<Vec<_>>().join(",");
        self.set("auth.mode", "tokens");
        self.set("auth.tokens", format!("[{entries}]"));
        self.authorization = tokens.last().map(|token| bearer(token));
    }

    async fn trust_an_issuer(&mut self) {
        let key = SigningKey::es256("loadtest");
        let issuer = AuthorizationServer::start(&[&key]).await;
        let mut claims = issuer.claims(RESOURCE);
        claims["exp"] = json!(now() + LIFETIME);
        claims["tenant"] = json!(TENANT);
        let trusted = format!(r#"[{{issuer="{}",allow_http=true}}]"#, issuer.issuer);
        self.set("auth.mode", "oauth");
        self.set("auth.resource", RESOURCE);
        self.set("auth.issuers", trusted);
        self.authorization = Some(bearer(&key.token(&claims)));
        self._issuer = Some(issuer);
    }

    pub(super) async fn expect_a_trail(&self) -> anyhow::Result<()> {
        let Some(trail) = &self.trail else {
            return Ok(());
        };
        for _ in 0..LOOKS {
            if fs::read_to_string(trail.path())?.contains("shoal.audit.call") {
                return Ok(());
            }
            sleep(BETWEEN).await;
        }
        anyhow::bail!("the server has recorded no call in its audit trail")
    }
}

pub(super) fn random_token() -> String {
    let (first, second): (u128, u128) = rand::random();
    format!("{first:032x}{second:032x}")
}

/// Ten rules are a realistic number. The rule that allows the measured calls has a condition on the claims or,
/// without `claims`, on the tool.
fn rules(claims: bool) -> String {
    let condition = match claims {
        true => format!("has(claims.tenant) && claims.tenant == '{TENANT}'"),
        false => "!target.open_world || target.name != ''".to_owned(),
    };
    let mut rules = vec![
        format!(r#"{{name="calls",effect="allow",tools=["echo*"],when="{condition}"}}"#),
        r#"{name="reads",effect="allow",hints=["read-only","closed-world"]}"#.to_owned(),
        format!(r#"{{name="hidden",effect="deny",tools=["{HIDDEN}"]}}"#),
    ];
    rules.extend(OTHERS.map(|tool| {
        format!(
            r#"{{name="{tool}",effect="allow",tools=["{tool}"],when="principal.startsWith('ops-')"}}"#
        )
    }));
    format!("[{}]", rules.join(","))
}
