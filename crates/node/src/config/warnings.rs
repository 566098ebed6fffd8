//! Valid but dangerous settings. `config check` prints the warnings, and a serving process logs them.

use shoal_policy::RulesInForce;

use super::finding::Finding;
use super::layers::Layers;
use super::{AuthMode, Pool, Role, Settings, cluster_tls};

pub(super) fn of(settings: &Settings, layers: &Layers) -> Vec<Finding> {
    let rules: [(&str, WarningRule); 10] = [
        ("server.listen", anonymous),
        ("server.allowed_origins", any_origin),
        ("server.allowed_hosts", any_host),
        ("server.admin_hosts", any_admin_host),
        ("auth.issuers", plain_issuers),
        ("policy.rules", allowing_nothing),
        ("state_keys.keys", own_keys),
        ("cluster.listen", open_cluster),
        ("pools", unshared_places),
        ("session.doze_after", dozing),
    ];
    let warned = rules.iter().filter_map(|(setting, rule)| {
        let text = rule(settings)?;
        Some(Finding::of_setting(&(*setting).into(), text, layers))
    });
    warned.collect()
}

type WarningRule = fn(&Settings) -> Option<String>;

/// With open origins, any page in a caller's browser could act as the caller.
fn any_origin(settings: &Settings) -> Option<String> {
    let origins = &settings.server.endpoint.allowed_origins;
    origins.iter().any(|origin| origin == "*").then(|| {
        "ANY WEB PAGE that a user opens may call the server from the user's browser: list the origins of your pages instead \
         of \"*\""
            .to_owned()
    })
}

/// On loopback, the host check is the protection against DNS rebinding.
fn any_host(settings: &Settings) -> Option<String> {
    let server = &settings.server;
    let any = server.endpoint.allowed_hosts.iter().any(|host| host == "*");
    (any && server.listen.ip().is_loopback()).then(|| rebound("clients"))
}

fn any_admin_host(settings: &Settings) -> Option<String> {
    let any = settings.server.admin_hosts.iter().any(|host| host == "*");
    any.then(|| rebound("operators"))
}

fn rebound(who: &str) -> String {
    format!(
        "ANY NAME is accepted, so a web page can point a name of its own at this address and act as your {who} do (DNS \
         rebinding): list the names that {who} use instead of \"*\""
    )
}

fn anonymous(settings: &Settings) -> Option<String> {
    let address = settings.server.listen;
    let open = settings.node.is(Role::Edge) && settings.auth.mode == AuthMode::None;
    (open && !address.ip().is_loopback()).then(|| {
        format!(
            "NO AUTHENTICATION: everybody who reaches {address} (server.listen) may call every tool \
             (auth.allow_anonymous = true); set auth.mode = \"tokens\" or \"oauth\" to change that"
        )
    })
}

/// Over plain HTTP, anyone on the path can forge tokens.
fn plain_issuers(settings: &Settings) -> Option<String> {
    let plain = settings
        .auth
        .issuers
        .iter()
        .filter(|issuer| issuer.allow_http);
    let plain: Vec<&str> = plain.map(|issuer| issuer.issuer.as_str()).collect();
    (!plain.is_empty()).then(|| {
        format!(
            "KEYS OVER PLAIN HTTP: whoever is on the way to {} can make tokens that are taken here (allow_http = true in \
             auth.issuers); use https",
            plain.join(", ")
        )
    })
}

/// Warns about rules that only deny, because Shoal then denies everything. There is no warning if the file of
/// `policy.file` is missing, because its rules may allow something.
fn allowing_nothing(settings: &Settings) -> Option<String> {
    let policy = &settings.policy;
    let applies = settings.node.is(Role::Edge) || settings.node.is(Role::Session);
    if !applies {
        return None;
    }
    let rules = RulesInForce::open(policy).ok().flatten()?;
    let of_file = match &policy.file {
        Some(file) => format!(" (also those in {})", file.display()),
        None => String::new(),
    };
    rules.current().only_denies().then(|| {
        format!(
            "NOBODY CAN USE ANYTHING: Shoal denies what no rule allows, and all rules{of_file} deny; add a rule with effect = \"allow\""
        )
    })
}

/// Other edges cannot decrypt a `requestState` that this edge encrypts with random keys.
fn own_keys(settings: &Settings) -> Option<String> {
    let shared = !settings.node.store.is_memory();
    let own = settings.node.is(Role::Edge) && settings.state_keys.keys.is_empty();
    (shared && own).then(|| {
        "state_keys.keys is not set: a modern client's retry with input is only understood by the edge that asked \
         for it; give all edges the same key"
            .to_owned()
    })
}

/// Without mutual TLS, the cluster trusts every process that joins.
fn open_cluster(settings: &Settings) -> Option<String> {
    let address = settings.cluster.listen?;
    let tls = cluster_tls::files(&settings.cluster.tls).ok().flatten();
    let how = match tls {
        Some(tls) if !tls.allow_plaintext => return None,
        Some(_) => "cluster.tls.allow_plaintext = true; set it to false once every process has TLS",
        None => {
            "cluster.insecure = true; set cluster.tls, or listen where only this cluster's processes reach it"
        }
    };
    (!address.ip().is_loopback()).then(|| {
        format!(
            "NO TLS BETWEEN PROCESSES: whoever reaches {address} (cluster.listen) can join as a worker, gets callers' \
             requests and answers them as it likes, or can act as another node; {how}"
        )
    })
}

/// Without limits per principal, one principal's slow calls could use all places.
fn unshared_places(settings: &Settings) -> Option<String> {
    let several = match settings.auth.mode {
        AuthMode::None => false,
        // The file may name further principals at any time.
        AuthMode::Tokens => settings.auth.tokens.len() > 1 || settings.auth.tokens_file.is_some(),
        AuthMode::OAuth => true,
    };
    let unshared = |Pool { limits, .. }: &Pool| {
        limits.concurrency_per_principal == 0 && limits.concurrency > 1
    };
    let pools = settings.pools.iter().filter(|(_, pool)| unshared(pool));
    let pools: Vec<&str> = pools.map(|(name, _)| name.as_str()).collect();
    (several && !pools.is_empty()).then(|| {
        format!(
            "slow calls of one principal may take all places of {}, and nobody else's calls run: set \
             concurrency_per_principal to a part of concurrency in pools.*",
            pools.join(", ")
        )
    })
}

fn dozing(settings: &Settings) -> Option<String> {
    let named = settings.session.doze_after.is_some();
    named.then(|| {
        "session.doze_after has no effect any more, and will be refused by the next release: take it out".to_owned()
    })
}
