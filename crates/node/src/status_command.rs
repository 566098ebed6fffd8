//! `shoal status`: a node's report about itself and its cluster.

mod table;

use std::time::Duration;

use anyhow::Context as _;
use http::StatusCode;
use serde_json::Value;

use crate::cli::Status;
use crate::exit::{Code, Failure};
use crate::print::{Output, json, plain, print};
use table::TextTable;

const PATIENCE: Duration = Duration::from_secs(5);

/// Prints the report of a node's admin port.
///
/// # Errors
/// If the node cannot be reached, or its store is unavailable; with `--ready` if the node is not ready.
pub async fn run(command: &Status) -> Result<(), Failure> {
    if command.ready {
        return ready(command).await;
    }
    let (_, status) = ask(&command.admin, "/status").await?;
    let text = match command.output {
        Output::Json => json(&status)?,
        Output::Text => render(&status),
    };
    print(&text)?;
    match trouble(&status["store"]) {
        Some(trouble) => Err(Failure::new(Code::Failed, store_away(trouble)).after_output()),
        None => Ok(()),
    }
}

fn store_away(trouble: &str) -> String {
    format!(
        "{}; new sessions and journaled calls get 503 until the store is back",
        plain(trouble)
    )
}

/// Serves health checks in images without a shell or curl.
async fn ready(command: &Status) -> Result<(), Failure> {
    let asked = ask(&command.admin, "/readyz").await;
    // Supervisors expect one exit code for every failure.
    let not_there = |failure: Failure| Failure::new(Code::Failed, failure.to_string());
    let (code, readiness) = asked.map_err(not_there)?;
    let status = show(&readiness["status"]);
    if code != StatusCode::OK {
        let reasons: Vec<String> = readiness["reasons"]
            .as_array()
            .into_iter()
            .flatten()
            .map(show)
            .collect();
        let reasons = reasons.join("; ");
        return Err(anyhow::anyhow!("the node is {status}: {reasons}").into());
    }
    let text = match command.output {
        Output::Json => json(&readiness)?,
        Output::Text => match readiness["store"]["trouble"].as_str() {
            Some(trouble) => format!("{status}, but {}\n", store_away(trouble)),
            None => format!("{status}\n"),
        },
    };
    Ok(print(&text)?)
}

/// Returns answers of success and 503 (not ready).
pub(crate) async fn ask(admin: &str, path: &str) -> Result<(StatusCode, Value), Failure> {
    let base = match admin.contains("://") {
        true => admin.trim_end_matches('/').to_owned(),
        false => format!("http://{admin}"),
    };
    let url = format!("{base}{path}");
    let client = reqwest::Client::builder()
        .timeout(PATIENCE)
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .build()
        .context("cannot make an HTTP client")?;
    let answer = client.get(&url).send().await;
    let answer = answer.map_err(|error| {
        let reason = format!("{:#}", anyhow::Error::from(error));
        let hint =
            "is it the admin address (server.admin) of a node that runs? Name one with --admin";
        Failure::new(
            Code::Unreachable,
            format!("cannot reach {url}: {hint}: {reason}"),
        )
    })?;
    let code = answer.status();
    if !code.is_success() && code != StatusCode::SERVICE_UNAVAILABLE {
        let refused =
            format!("{url} answers {code}: it is no admin port, or does not serve this host");
        return Err(Failure::new(Code::Refused, refused));
    }
    let body = answer.json().await;
    let body = body.with_context(|| format!("{url} did not answer as an admin port does"))?;
    Ok((code, body))
}

/// Reads JSON without types, because the node may be of another release.
fn render(status: &Value) -> String {
    let mut text = format!(
        "node {}  version {}  roles {}  up {} s{}\n",
        show(&status["node"]),
        show(&status["version"]),
        list(&status["roles"]),
        show(&status["uptime_seconds"]),
        if status["draining"] == true {
            "  DRAINING"
        } else {
            ""
        },
    );
    if status["clock_skew_ms"].is_number() {
        let skew = show(&status["clock_skew_ms"]);
        text.push_str(&format!(
            "clocks    {skew} ms from the furthest of its peers\n"
        ));
    }
    let cluster = &status["cluster"];
    if cluster.is_object() {
        text.push('\n');
        text.push_str(&nodes(cluster));
        text.push('\n');
        if has_lease(status) {
            text.push_str(&lease(&cluster["lease"]));
        }
    }
    if status["store"].is_object() {
        text.push_str(&store(&status["store"]));
    }
    if status["sessions"].is_object() {
        let sessions = &status["sessions"];
        text.push_str(&format!(
            "sessions  {} live, {} asleep; {} requests in flight, {} streams; {} taken over, {} handed over\n",
            show(&sessions["live"]),
            show(&sessions["passive"]),
            show(&sessions["in_flight"]),
            show(&sessions["streams"]),
            show(&sessions["taken_over"]),
            show(&sessions["handed_over"]),
        ));
    }
    text.push('\n');
    text.push_str(&pools(&status["pools"]));
    for conflict in status["conflicts"].as_array().into_iter().flatten() {
        text.push_str(&claimed_twice(conflict));
    }
    text
}

fn claimed_twice(conflict: &Value) -> String {
    let [kind, name, kept, hidden] =
        ["kind", "name", "kept", "hidden"].map(|member| show(&conflict[member]));
    let advice = match kind.as_str() {
        "tool" | "prompt" => "give one of the pools a prefix, or rename it in one of them",
        _ => "deny it in one of the pools",
    };
    let kind = kind.replace('_', " ");
    format!(
        "conflict: the {kind} {name:?} of pool {hidden} is hidden by that of pool {kept}; {advice}\n"
    )
}

fn nodes(cluster: &Value) -> String {
    let mut table = TextTable::new(&[
        "NODE",
        "ADDRESS",
        "ROLES",
        "STATE",
        "SESSIONS",
        "IN FLIGHT",
        "VERSION",
    ]);
    for node in cluster["nodes"].as_array().into_iter().flatten() {
        let roles: Vec<&str> = ["edge", "session"]
            .into_iter()
            .filter(|role| node[role] == true)
            .collect();
        let state = match () {
            () if node["present"] == false => "gone",
            () if node["starting"] == true => "starting",
            () if node["draining"] == true => "draining",
            () if node["reachable"] == false => "unreachable",
            () => "ready",
        };
        let me = if node["id"] == cluster["node"] {
            "*"
        } else {
            ""
        };
        table.row([
            format!("{}{me}", show(&node["id"])),
            show(&node["address"]),
            roles.join(","),
            state.to_owned(),
            show(&node["sessions"]),
            show(&node["in_flight"]),
            show(&node["version"]),
        ]);
    }
    table.finish()
}

/// Only session nodes have a lease. Earlier releases report a lease for edges too, as not held.
fn has_lease(status: &Value) -> bool {
    let roles = status["roles"].as_array();
    status["cluster"]["lease"].is_object()
        && roles.is_some_and(|roles| roles.iter().any(|role| role == "session"))
}

/// Returns why the store is unavailable. Earlier releases report only outages of the connection to Redis.
fn trouble(store: &Value) -> Option<&str> {
    let outage = || store["redis"]["outage"].as_str();
    store["trouble"].as_str().or_else(outage)
}

fn store(store: &Value) -> String {
    // Only Redis has a place; the embedded store has only a kind.
    let place = match store["redis"]["place"].as_str() {
        Some(place) => plain(place),
        None => show(&store["kind"]),
    };
    match trouble(store) {
        Some(trouble) => format!("store     {place}: NOT AVAILABLE: {}\n", plain(trouble)),
        None => format!("store     {place}: available\n"),
    }
}

fn lease(lease: &Value) -> String {
    let held = match lease["held"] == true {
        true => format!("held, {} ms left", show(&lease["remaining_ms"])),
        false => "not held".to_owned(),
    };
    format!(
        "lease     {held}; lapsed {} times\n",
        show(&lease["lapses"])
    )
}

fn pools(pools: &Value) -> String {
    let mut table = TextTable::new(&[
        "POOL", "TOOLS", "WORKER", "STATE", "RUNNING", "QUEUED", "CAPACITY", "DETAIL",
    ]);
    // A pool without workers can still have tools, for example while it is scaled to zero.
    let none = [serde_json::json!({ "ready": false, "detail": "no worker" })];
    for pool in pools.as_array().into_iter().flatten() {
        let workers = pool["workers"].as_array().filter(|all| !all.is_empty());
        for worker in workers.map_or(&none[..], Vec::as_slice) {
            table.row([
                show(&pool["name"]),
                show(&pool["tools"]),
                show(&worker["id"]),
                state_of(worker),
                show(&worker["running"]),
                show(&worker["queued"]),
                show(&worker["capacity"]),
                show(&worker["detail"]),
            ]);
        }
    }
    let mut text = table.finish();
    for pool in pools.as_array().into_iter().flatten() {
        for (member, what) in [
            ("left_out", "left out (`shoal tools --left-out`)"),
            ("cut", "tools listed in less detail (`shoal tools --cut`)"),
        ] {
            if let Some(first) = pool[member].as_array().and_then(|all| all.first()) {
                let name = show(&pool["name"]);
                text.push_str(&format!("pool {name}: {what}: {}", plain(&show(first))));
                let more = pool[member].as_array().map_or(0, Vec::len) - 1;
                text.push_str(match more {
                    0 => "\n",
                    _ => ", and others\n",
                });
            }
        }
    }
    text
}

fn state_of(worker: &Value) -> String {
    let state = match () {
        () if worker["reachable"] == false => "unreachable",
        () if worker["ready"] == false => "not ready",
        () => "ready",
    };
    match worker["circuit"].as_str() {
        Some(circuit) if circuit != "closed" => format!("{state}, circuit {circuit}"),
        _ => state.to_owned(),
    }
}

fn show(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn list(value: &Value) -> String {
    let items: Vec<String> = value.as_array().into_iter().flatten().map(show).collect();
    items.join(",")
}

#[cfg(test)]
mod tests {
    use super::render;
    use serde_json::json;

    #[test]
    fn nodes_pools_sessions_and_leases_are_shown() {
        let text = render(&json!({
            "node": "a-1", "version": "1.0", "roles": ["edge", "session"], "uptime_seconds": 7, "draining": false,
            "clock_skew_ms": 12,
            "cluster": {
                "node": "a-1",
                "nodes": [
                    {"id": "a-1", "address": "h:1", "edge": true, "session": true, "draining": false,
                     "present": true, "reachable": true, "sessions": 3, "in_flight": 1, "version": "1.0"},
                    {"id": "b-2", "address": "h:2", "edge": false, "session": true, "draining": true,
                     "present": true, "reachable": true, "sessions": 0, "in_flight": 0, "version": "1.1"},
                    {"id": "c-3", "address": "h:3", "edge": true, "session": false, "draining": false, "starting": true,
                     "present": true, "reachable": true, "sessions": 0, "in_flight": 0, "version": "1.1"}
                ],
                "lease": {"held": true, "remaining_ms": 4000, "lapses": 0}
            },
            "store": {"kind": "redis", "trouble": "Redis is away: refused", "redis": {"place": "Redis at h:6379"}},
            "sessions": {"live": 2, "passive": 1, "in_flight": 1, "streams": 4, "taken_over": 0, "handed_over": 0},
            "pools": [
                {"name": "demo", "tools": 11, "workers": [
                    {"id": "demo@w", "running": 1, "queued": 0, "capacity": 64, "detail": null, "ready": true}
                ], "left_out": ["GET /a: why"], "cut": ["b: how", "c: how"]},
                {"name": "idle", "tools": 2, "workers": []}
            ],
            "conflicts": [{"kind": "resource_template", "name": "a", "kept": "one", "hidden": "two"}]
        }));
        for part in [
            "node a-1  version 1.0  roles edge,session",
            "a-1*  h:1      edge,session  ready     3",
            "clocks    12 ms from the furthest of its peers",
            "draining",
            "c-3   h:3      edge          starting",
            "lease     held, 4000 ms left; lapsed 0 times",
            "store     Redis at h:6379: NOT AVAILABLE: Redis is away: refused",
            "2 live, 1 asleep",
            "demo  11     demo@w  ready      1        0       64        -",
            "idle  2      -       not ready  -        -       -         no worker",
            "pool demo: left out (`shoal tools --left-out`): GET /a: why\n",
            "pool demo: tools listed in less detail (`shoal tools --cut`): b: how, and others\n",
            "conflict: the resource template \"a\" of pool two is hidden by that of pool one; deny it",
        ] {
            assert!(text.contains(part), "{part:?} is missing in\n{text}");
        }
    }

    #[test]
    fn a_node_without_sessions_has_no_lease() {
        let text = render(&json!({
            "node": "a-1", "version": "1.0", "roles": ["edge"], "uptime_seconds": 7, "draining": false,
            "cluster": {"node": "a-1", "nodes": [], "lease": {"held": false, "remaining_ms": 0, "lapses": 0}},
            "store": {"kind": "memory", "trouble": null}, "pools": []
        }));
        assert!(!text.contains("lease"), "{text}");
        assert!(text.contains("store     memory: available"), "{text}");
    }
}
