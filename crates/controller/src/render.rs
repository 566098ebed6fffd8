//! The texts that are published.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;
use shoal_ports::Secret;
use shoal_telemetry::metrics::DiscoveryRefusal as Reason;
use toml::Table;

use crate::plan::{Plan, Refused};
use crate::translate::{Pool, Refusal, SecretKey};

/// Bytes that are put into the ConfigMap, and into the Secret, at most: the API server takes 1 MiB of each with all its metadata.
pub(crate) const MOST_BYTES: usize = 900 << 10;

/// The key under which the ConfigMap and the Secret have the pools.
pub const POOLS_KEY: &str = "pools.toml";

/// The data of the ConfigMap and of the Secret: files by name.
#[derive(Default)]
pub(crate) struct Texts {
    /// For edges and session nodes: the pools without tokens.
    pub(crate) config_map: BTreeMap<String, String>,
    /// For workers: the pools and their tokens.
    pub(crate) secret: BTreeMap<String, Secret>,
}

/// A pool as the configuration has it.
#[derive(Serialize)]
struct Entry<'a> {
    backend: Backend<'a>,
    prefix: &'a str,
    /// Nobody knows whether the server keeps something in a session, so its calls stay with one worker.
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

/// The table of a pool in the configuration; with `directory`, that of a worker, which finds the token there.
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

/// The key of the Secret with the headers of a pool.
fn headers_key(pool: &str) -> String {
    format!("{pool}.headers")
}

/// The texts of a plan. Pools that do not fit any more are refused, those of the youngest objects.
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
    // It is made of texts alone, which TOML has.
    format!("\n{}", toml::to_string(&whole).unwrap_or_default())
}
