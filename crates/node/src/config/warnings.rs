//! What can be used and is dangerous all the same: `config check` prints it, a serving process logs it.

use super::{AuthMode, Pool, Role, Settings};

/// What an operator should know of these settings, each in one line.
pub fn warnings(settings: &Settings) -> Vec<String> {
    [
        anonymous,
        plain_issuers,
        own_keys,
        open_cluster,
        unshared_places,
        dozing,
    ]
    .iter()
    .filter_map(|rule| rule(settings))
    .collect()
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

/// Whoever is on the way can make tokens.
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

/// What one edge seals another must open.
fn own_keys(settings: &Settings) -> Option<String> {
    let shared = !settings.node.store.is_memory();
    let own = settings.node.is(Role::Edge) && settings.state_keys.keys.is_empty();
    (shared && own).then(|| {
        "state_keys.keys is not set: a modern client's retry with input is only understood by the edge that asked \
         for it; give all edges the same key"
            .to_owned()
    })
}

/// Whoever can join is believed.
fn open_cluster(settings: &Settings) -> Option<String> {
    let address = settings.cluster.listen?;
    let tls = settings.cluster.tls.files().ok().flatten();
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

/// One principal's slow calls can keep all others out.
fn unshared_places(settings: &Settings) -> Option<String> {
    let several = match settings.auth.mode {
        AuthMode::None => false,
        AuthMode::Tokens => settings.auth.tokens.len() > 1,
        AuthMode::OAuth => true,
    };
    let unshared = |pool: &Pool| pool.concurrency_per_principal == 0 && pool.concurrency > 1;
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

/// What an earlier release knew.
fn dozing(settings: &Settings) -> Option<String> {
    let named = settings.session.doze_after.is_some();
    named.then(|| {
        "session.doze_after has no effect any more, and will be refused by the next release: take it out".to_owned()
    })
}
