//! Checks what no single setting can say of itself.

use shoal_edge::TrustedProxies;
use shoal_policy::Policy;
use shoal_ports::{Principal, QuotaConfig};

use super::error::Error;
use super::layers::Layers;
use super::{AuthMode, Backend, Role, Settings};

mod server;

/// Characters of a name (2025-11-25 and later, Tools, Tool Names).
const LONGEST_NAME: usize = 128;
/// Leaves room for the backend's own names.
const LONGEST_PREFIX: usize = 64;

/// Checks settings that go together, and what they name outside of the configuration.
pub(super) fn check(settings: &Settings, layers: &Layers) -> Result<(), Error> {
    for rule in [
        roles,
        cluster,
        tls,
        store,
        anonymous,
        tokens,
        oauth,
        policy,
        quotas,
        outbound,
        console,
        server::path,
        server::own_paths,
        server::addresses,
        server::names,
        positive,
        bodies,
        pools,
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

fn roles(settings: &Settings) -> Result<(), BrokenRule> {
    let (node, cluster) = (&settings.node, &settings.cluster);
    let (edge, session) = (node.is(Role::Edge), node.is(Role::Session));
    let broken = |reason: &str| Err(BrokenRule::new("node.roles", reason));
    if node.roles.is_empty() {
        return broken("name at least one of edge, session and worker");
    }
    if !edge && !session {
        if cluster.join.is_empty() {
            return broken(
                "a process with workers alone needs nodes to work for: give --join HOST:PORT of an edge or \
                 session node (cluster.join)",
            );
        }
        return Ok(());
    }
    if edge != session && node.store.is_memory() {
        return broken(
            "an edge without sessions, or sessions without an edge, share them with other processes through \
             Redis: give --store redis://HOST:PORT, or both roles",
        );
    }
    if cluster.listen.is_none() {
        if edge != session {
            return broken(
                "edges and session nodes reach one another: give --cluster-listen ADDRESS:PORT \
                 (cluster.listen)",
            );
        }
        if !node.is(Role::Worker) {
            return broken(
                "without the role worker, workers of other processes must be able to join: give \
                 --cluster-listen ADDRESS:PORT (cluster.listen)",
            );
        }
    }
    Ok(())
}

fn cluster(settings: &Settings) -> Result<(), BrokenRule> {
    let cluster = &settings.cluster;
    let unspecified = cluster
        .listen
        .is_some_and(|address| address.ip().is_unspecified());
    if unspecified && cluster.advertise.is_none() {
        return Err(BrokenRule::new(
            "cluster.advertise",
            "other processes cannot dial 0.0.0.0 or [::]: say where they reach this one, as HOST:PORT",
        ));
    }
    if let Some(address) = cluster.plaintext_to_others()
        && !cluster.insecure
    {
        return Err(BrokenRule::new(
            "cluster.listen",
            format!(
                "{address} can be reached by other machines, and without TLS whoever is there can act as a node or a worker: \
                 set certificate, key and authority of [cluster.tls], or listen on 127.0.0.1, or accept it with \
                 cluster.insecure = true"
            ),
        ));
    }
    let newest = shoal_rpc::LinkConfig::default().max_version;
    if !(1..=newest).contains(&cluster.protocol) {
        return Err(BrokenRule::new(
            "cluster.protocol",
            format!("this release speaks the versions 1 to {newest}"),
        ));
    }
    let addresses = cluster.join.iter().map(|address| ("cluster.join", address));
    let advertised = cluster.advertise.iter();
    for (setting, address) in addresses.chain(advertised.map(|a| ("cluster.advertise", a))) {
        let fit = address.rsplit_once(':').is_some_and(|(host, port)| {
            !host.is_empty() && !host.contains('/') && port.parse::<u16>().is_ok()
        });
        if !fit {
            let reason = format!("{address:?} is no HOST:PORT");
            return Err(BrokenRule::new(setting, reason));
        }
    }
    Ok(())
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

fn store(settings: &Settings) -> Result<(), BrokenRule> {
    let store = &settings.node.store;
    if store.is_memory() {
        return Ok(());
    }
    shoal_store_redis::check_url(store.expose())
        .map_err(|error| BrokenRule::new("node.store", format!("{error}; or \"memory\"")))
}

fn anonymous(settings: &Settings) -> Result<(), BrokenRule> {
    let auth = &settings.auth;
    let open = auth.mode == AuthMode::None && !settings.server.listen.ip().is_loopback();
    if !open || auth.allow_anonymous {
        return Ok(());
    }
    Err(BrokenRule::new(
        "server.listen",
        format!(
            "{} can be reached by other machines, and auth.mode = \"none\" would let everybody there call \
             every tool: set auth.mode = \"tokens\", listen on 127.0.0.1, or accept it with \
             auth.allow_anonymous = true",
            settings.server.listen
        ),
    ))
}

fn tokens(settings: &Settings) -> Result<(), BrokenRule> {
    let auth = &settings.auth;
    if auth.mode == AuthMode::Tokens && auth.tokens.is_empty() && auth.tokens_file.is_none() {
        return Err(BrokenRule::new(
            "auth.mode",
            "\"tokens\" needs at least one entry in auth.tokens, or auth.tokens_file, or nobody can call",
        ));
    }
    if auth.mode == AuthMode::None && auth.tokens_file.is_some() {
        return Err(BrokenRule::new(
            "auth.tokens_file",
            "tokens are given but not asked for: set auth.mode = \"tokens\"",
        ));
    }
    if auth.mode == AuthMode::None && !auth.tokens.is_empty() {
        return Err(BrokenRule::new(
            "auth.tokens",
            "tokens are given but not asked for: set auth.mode = \"tokens\"",
        ));
    }
    for (at, token) in auth.tokens.iter().enumerate() {
        if token.name.is_empty() {
            return Err(BrokenRule::new("auth.tokens", "a token needs a name"));
        }
        if Principal::new(token.name.as_str()).is_reserved() {
            let name = &token.name;
            let reserved = format!("the name {name:?} is reserved for Shoal itself: use another");
            return Err(BrokenRule::new("auth.tokens", reserved));
        }
        let twice = auth.tokens[..at]
            .iter()
            .find(|earlier| earlier.sha256 == token.sha256);
        if let Some(earlier) = twice {
            return Err(BrokenRule::new(
                "auth.tokens",
                format!(
                    "{:?} and {:?} have the same token: each needs its own",
                    earlier.name, token.name
                ),
            ));
        }
    }
    Ok(())
}

fn oauth(settings: &Settings) -> Result<(), BrokenRule> {
    let checked = settings.auth.check();
    checked.map_err(|bad| BrokenRule::new(format!("auth.{}", bad.setting), bad.reason))
}

fn outbound(settings: &Settings) -> Result<(), BrokenRule> {
    let checked = settings.outbound.check();
    checked.map_err(|reason| BrokenRule::new("outbound.allow", reason))
}

fn console(settings: &Settings) -> Result<(), BrokenRule> {
    let token = settings.server.admin_token.as_ref();
    token
        .map_or(Ok(()), |token| token.read_token().map(drop))
        .map_err(|reason| BrokenRule::new("server.admin_token", reason))?;
    let operators = &settings.server.operators;
    for (at, operator) in operators.iter().enumerate() {
        let wrong = |problem| Err(BrokenRule::new(format!("server.operators[{at}]"), problem));
        if operator.name.trim().is_empty() {
            return wrong("needs a name, which logs and the audit trail give");
        }
        if operators[..at]
            .iter()
            .any(|other| other.sha256 == operator.sha256)
        {
            return wrong("has the token of one before: nobody could tell who does something");
        }
    }
    Ok(())
}

/// The first of these settings, by its name, of which something is so.
macro_rules! first {
    ($settings:ident: [$($($part:ident).+),+ $(,)?], |$value:ident| $is:expr) => {
        [$((stringify!($($part).+), { let $value = &$settings.$($part).+; $is })),+]
            .into_iter()
            .find_map(|(setting, is)| is.then_some(setting))
    };
}

fn positive(settings: &Settings) -> Result<(), BrokenRule> {
    let none = first!(
        settings: [
            server.tls.handshakes,
            server.admin_tls.handshakes,
            limits.connections,
            limits.requests_per_connection,
            limits.requests,
            limits.requests_per_principal,
            limits.answers_waiting_bytes,
            limits.answers_waiting_bytes_per_principal,
            limits.headers,
            limits.body_bytes,
            limits.streams,
            limits.nesting,
            limits.sessions_per_node,
            limits.sessions_per_principal,
            limits.calls_per_session,
            limits.messages_per_session,
            redis.commands,
            streams.buffer,
            streams.events_per_stream,
            streams.bytes_per_session,
            streams.bytes,
            catalog.page_size,
            tasks.result_bytes,
            calls.attempts,
        ],
        |count| *count == 0
    );
    if let Some(setting) = none {
        return Err(BrokenRule::new(setting, "must be at least 1"));
    }
    let no_time = first!(
        settings: [
            server.header_timeout,
            server.write_timeout,
            server.tls.reread,
            server.tls.handshake_timeout,
            server.admin_tls.reread,
            server.admin_tls.handshake_timeout,
            node.lease,
            cluster.patience,
            cluster.silence,
            cluster.tls.reread,
            redis.response_timeout,
            redis.connect_timeout,
            session.idle,
            tasks.after,
            tasks.ttl,
            tasks.poll_interval,
            session.sweep_every,
            streams.keep_alive,
            calls.timeout,
            reload.watch_every,
            shutdown.report_every,
        ],
        |period| period.get().is_zero()
    );
    match no_time {
        Some(setting) => Err(BrokenRule::new(setting, "must be longer than 0")),
        None => Ok(()),
    }
}

fn bodies(settings: &Settings) -> Result<(), BrokenRule> {
    let limits = &settings.limits;
    let one = limits.body_bytes;
    let all = [
        (
            "limits.bodies_in_flight_bytes",
            limits.bodies_in_flight_bytes,
        ),
        (
            "limits.bodies_in_flight_bytes_per_principal",
            limits.bodies_in_flight_bytes_per_principal,
        ),
    ];
    match all.iter().find(|(_, all)| *all < one) {
        None => Ok(()),
        Some((setting, all)) => Err(BrokenRule::new(
            *setting,
            format!(
                "{all} is less than one message may have (limits.body_bytes = {one}), which would never find \
                 room: raise this, or lower that"
            ),
        )),
    }
}

fn pools(settings: &Settings) -> Result<(), BrokenRule> {
    for (name, pool) in &settings.pools {
        let setting = |member: &str| format!("pools.{name}.{member}");
        let fit = name
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' || b == b'_')
            && !name.contains("__")
            && !name.is_empty();
        if !fit {
            return Err(BrokenRule::new(
                format!("pools.{name}"),
                "a pool's name is made of a-z, 0-9, - and single _",
            ));
        }
        if pool.concurrency == 0 {
            return Err(BrokenRule::new(
                setting("concurrency"),
                "must be at least 1",
            ));
        }
        if let Backend::Stdio(stdio) = &pool.backend
            && stdio.processes == Some(0)
        {
            let setting = setting("backend.stdio.processes");
            return Err(BrokenRule::new(setting, "must be at least 1"));
        }
        let is_fit = |part: &str| {
            let fits = |b: u8| b.is_ascii_alphanumeric() || b"-_./".contains(&b);
            part.bytes().all(fits)
        };
        if pool.prefix.len() > LONGEST_PREFIX {
            let reason = format!("a prefix has at most {LONGEST_PREFIX} characters");
            return Err(BrokenRule::new(setting("prefix"), reason));
        }
        if !is_fit(&pool.prefix) {
            return Err(BrokenRule::new(
                setting("prefix"),
                "a prefix is made of letters, digits, - _ . and /, as clients take them in names",
            ));
        }
        for (member, renamed) in [
            ("tools.rename", &pool.tools.rename),
            ("prompts.rename", &pool.prompts.rename),
        ] {
            let too_long = |to: &str| pool.prefix.len() + to.len() > LONGEST_NAME;
            if let Some((own, _)) = renamed.iter().find(|(_, to)| too_long(to)) {
                let reason = format!(
                    "what {own:?} is called is longer than {LONGEST_NAME} characters, with the prefix"
                );
                return Err(BrokenRule::new(setting(member), reason));
            }
            let unfit = renamed.iter().find(|(_, to)| to.is_empty() || !is_fit(to));
            if let Some((own, to)) = unfit {
                let reason = format!(
                    "{own:?} cannot be called {to:?}: a name is made of letters, digits, - _ . and /"
                );
                return Err(BrokenRule::new(setting(member), reason));
            }
        }
        let (tools, prompts) = (&pool.tools, &pool.prompts);
        for (member, mut named) in [
            ("tools.rename", tools.rename.keys().collect::<Vec<_>>()),
            ("tools.describe", tools.describe.keys().collect()),
            ("tools.hints", tools.hints.keys().collect()),
            ("prompts.rename", prompts.rename.keys().collect()),
            ("prompts.describe", prompts.describe.keys().collect()),
        ] {
            named.retain(|name| name.contains('*'));
            if let Some(pattern) = named.first() {
                let reason = format!(
                    "{pattern:?} is no name: name each one by itself; * stands for any characters in `allow` and `deny` only"
                );
                return Err(BrokenRule::new(setting(member), reason));
            }
        }
        if pool.backend.is_unset() {
            return Err(BrokenRule::new(
                setting("backend.stdio.command"),
                "`command` must name a program, or the `backend` be \"demo\", \"conformance\" or \"handler\"",
            ));
        }
        if let Backend::Http(http) = &pool.backend {
            let checked = http.check();
            checked.map_err(|(member, reason)| {
                BrokenRule::new(setting(&format!("backend.http.{member}")), reason)
            })?;
        }
        if let Backend::OpenApi(openapi) = &pool.backend {
            let checked = openapi.check();
            checked.map_err(|(member, reason)| {
                BrokenRule::new(setting(&format!("backend.openapi.{member}")), reason)
            })?;
        }
    }
    Ok(())
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
