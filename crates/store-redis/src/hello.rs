//! Looks at who answers before anything is entrusted to it.

use redis::Value;

use crate::error::text;
use crate::link::Link;

/// The first release whose scripts have flags.
const OLDEST: (u32, u32) = (7, 0);

/// Makes sure that a server can serve: it is a master, and knows what the scripts need.
///
/// # Errors
/// Why it cannot, in short.
pub(crate) async fn check(link: &mut Link) -> Result<(), String> {
    let hello = link.ask(None, redis::cmd("HELLO"), None).await;
    let said = facts(hello.map_err(|error| text(&error))?);
    let fact = |name: &str| {
        let found = said.iter().find(|(known, _)| known == name);
        found.map_or("", |(_, value)| value.as_str())
    };
    let version = fact("version");
    let mut numbers = version.split('.').map_while(|part| part.parse().ok());
    let release = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    if release < OLDEST {
        return Err(format!("Redis {version} is too old: 7.0 is needed"));
    }
    // A cluster's client finds the masters itself.
    if !link.is_cluster() && fact("role") != "master" {
        return Err(format!("the server is a {}, not a master", fact("role")));
    }
    Ok(())
}

/// Eviction takes sessions away from under their clients: says so once, where it can be seen.
pub(crate) async fn warn_of_eviction(link: &mut Link) {
    let mut asking = redis::cmd("CONFIG");
    asking.arg("GET").arg("maxmemory-policy");
    // Most deployments do not let everybody ask; then nobody is warned.
    let Ok(reply) = link.ask(None, asking, None).await else {
        return;
    };
    for (_, policy) in facts(reply) {
        if policy != "noeviction" {
            tracing::warn!(%policy, "Redis evicts keys when it is full: set maxmemory-policy noeviction");
        }
    }
}

/// A map, in whichever way this protocol version writes it.
fn facts(reply: Value) -> Vec<(String, String)> {
    let flat = match reply {
        Value::Map(pairs) => pairs.into_iter().flat_map(|(k, v)| [k, v]).collect(),
        Value::Array(flat) => flat,
        _ => Vec::new(),
    };
    let text = |value: &Value| match value {
        Value::BulkString(text) => String::from_utf8_lossy(text).into_owned(),
        Value::SimpleString(text) => text.clone(),
        _ => String::new(),
    };
    flat.chunks_exact(2)
        .map(|pair| (text(&pair[0]), text(&pair[1])))
        .collect()
}
