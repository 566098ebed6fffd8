use redis::Value;

use crate::error::text;
use crate::link::RedisLink;

/// The first Redis release with script flags.
const OLDEST: (u32, u32) = (7, 0);

/// Fails if the server is not a master, or too old to run the scripts.
pub(crate) async fn check(link: &mut RedisLink) -> Result<(), String> {
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
    // The client library finds a cluster's masters itself.
    if !link.is_cluster() && fact("role") != "master" {
        return Err(format!("the server is a {}, not a master", fact("role")));
    }
    Ok(())
}

/// Logs a warning if Redis may evict keys, which would remove sessions.
pub(crate) async fn warn_of_eviction(link: &mut RedisLink) {
    let mut asking = redis::cmd("CONFIG");
    asking.arg("GET").arg("maxmemory-policy");
    let Ok(reply) = link.ask(None, asking, None).await else {
        return;
    };
    for (_, policy) in facts(reply) {
        if policy != "noeviction" {
            tracing::warn!(%policy, "Redis evicts keys when it is full: set maxmemory-policy noeviction");
        }
    }
}

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
