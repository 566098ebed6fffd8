use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;
use shoal_ports::Secret;
use shoal_telemetry::metrics::DiscoveryRefusal as Reason;
use toml::Table;

use crate::plan::{Plan, Refused};
use crate::translate::{Pool, Refusal, SecretKey};

/// Maximum bytes of the data of the ConfigMap and of the Secret. The API server limits each object to 1 MiB with its metadata.
pub(crate) const MOST_BYTES: usize = 900 << 10;

/// The key under which the ConfigMap and the Secret contain the pools.
pub const POOLS_KEY: &str = "pools.toml";

/// The data of the ConfigMap and of the Secret, by key.
#[derive(Default)]
pub(crate) struct Texts {
    /// The pools without tokens, for edges and session nodes.
    pub(crate) config_map: BTreeMap<String, String>,
    /// The pools and their tokens, for workers.
    pub(crate) secret: BTreeMap<String, Secret>,
}

#[derive(Serialize)]
struct Entry<'a> {
    backend: Backend<'a>,
    prefix: &'a str,
    /// Keeps a session's calls at one worker, because the server may keep session state.
    affinity: &'static str,
}

#[derive(Serialize)]
struct Backend<'a> {
    http: Http<'a>,
}

#[derive(Serialize)]
struct Http<'a> {
    url: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    headers_file: Option<String>,
}

/// Returns a pool's table of settings. With `directory`, it is the table for workers, which read the pool's token in
/// that directory.
pub(crate) fn table(pool: &Pool, directory: Option<&Path>) -> Table {
    let file = directory.filter(|_| pool.token.is_some());
    let file = file.map(|directory| directory.join(headers_key(&pool.name)));
    let entry = Entry {
        backend: Backend {
            http: Http {
                url: pool.url.as_str(),
                headers_file: file.map(|file| file.display().to_string()),
            },
        },
        prefix: &pool.prefix,
        affinity: "session",
    };
    Table::try_from(entry).unwrap_or_default()
}

/// Returns the key under which the Secret contains a pool's headers.
fn headers_key(pool: &str) -> String {
    format!("{pool}.headers")
}

/// Renders a plan, from the oldest object to the youngest. Refuses each pool that does not fit beside the pools before
/// it.
pub(crate) fn texts(
    plan: &mut Plan<'_>,
    tokens: &BTreeMap<SecretKey, Secret>,
    directory: &Path,
) -> Texts {
    let mut texts = Texts::default();
    let (mut for_nodes, mut for_workers) = (String::new(), String::new());
    let mut headers_bytes = 0;
    let mut kept = Vec::new();
    for it in std::mem::take(&mut plan.pools) {
        let pool = &it.pool;
        let node = section(&pool.name, table(pool, None));
        let worker = section(&pool.name, table(pool, Some(directory)));
        let headers = pool.token.as_ref().and_then(|key| tokens.get(key));
        let headers = headers.map(|token| format!("Authorization: Bearer {}\n", token.expose()));
        let more = headers
            .as_ref()
            .map_or(0, |headers| headers.len() + pool.name.len());
        let bytes = for_workers.len() + worker.len() + headers_bytes + more;
        if bytes.max(for_nodes.len() + node.len()) > MOST_BYTES {
            plan.refused.push(Refused {
                object: it.object,
                refusal: Refusal::of(
                    Reason::LimitReached,
                    format!(
                        "the pools of older objects take the {MOST_BYTES} bytes that there are"
                    ),
                ),
            });
            continue;
        }
        for_nodes.push_str(&node);
        for_workers.push_str(&worker);
        headers_bytes += more;
        if let Some(headers) = headers {
            let key = headers_key(&pool.name);
            texts.secret.insert(key, Secret::new(headers));
        }
        kept.push(it);
    }
    plan.pools = kept;
    let head = "# The pools that `shoal controller` found. It replaces this text.\n";
    let (config_map, secret) = (&mut texts.config_map, &mut texts.secret);
    config_map.insert(POOLS_KEY.to_owned(), format!("{head}{for_nodes}"));
    let for_workers = Secret::new(format!("{head}{for_workers}"));
    secret.insert(POOLS_KEY.to_owned(), for_workers);
    texts
}

fn section(name: &str, table: Table) -> String {
    let pools = Table::from_iter([(name.to_owned(), table.into())]);
    let whole = Table::from_iter([("pools".to_owned(), pools.into())]);
    // This does not fail, because the tables contain only text.
    format!("\n{}", toml::to_string(&whole).unwrap_or_default())
}
