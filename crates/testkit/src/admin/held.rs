use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::ensure;
use serde_json::Value;

use super::Admin;
use crate::wait::until;

const COUNTS: [&str; 8] = [
    "/sessions/in_flight",
    "/sessions/journaled",
    "/sessions/waiting",
    "/sessions/subscriptions",
    "/sessions/streams",
    "/edge/requests",
    "/edge/streams",
    "/parked",
];

const OF_WORKERS: [&str; 2] = ["running", "queued"];

impl Admin {
    /// Returns the nonzero counts in `/status` of what the process holds for clients, such as
    /// calls, streams and sessions.
    pub async fn held(&self) -> anyhow::Result<BTreeMap<String, u64>> {
        Ok(held(&self.status().await?))
    }

    /// Waits until the process holds nothing for clients.
    ///
    /// # Errors
    ///
    /// The counts that remain.
    pub async fn wait_until_it_holds_nothing(&self, within: Duration) -> anyhow::Result<()> {
        until(within, async || {
            let held = self.held().await?;
            ensure!(held.is_empty(), "{} holds {held:?}", self.address());
            Ok(())
        })
        .await
    }
}

fn held(status: &Value) -> BTreeMap<String, u64> {
    let mut held = BTreeMap::new();
    let mut note = |what: String, count: Option<&Value>| match count.and_then(Value::as_u64) {
        None | Some(0) => {}
        Some(count) => drop(held.insert(what, count)),
    };
    for what in COUNTS {
        note(what.to_owned(), status.pointer(what));
    }
    let pools = status["pools"].as_array().into_iter().flatten();
    for worker in pools.flat_map(|pool| pool["workers"].as_array().into_iter().flatten()) {
        for count in OF_WORKERS {
            let what = format!("{} of worker {}", count, worker["id"]);
            note(what, worker.get(count));
        }
    }
    let sessions = |count: &str| status["sessions"][count].as_u64().unwrap_or(0);
    let (places, entered) = (sessions("reserved"), sessions("live") + sessions("passive"));
    if places != entered {
        let what = format!("/sessions/reserved, beside {entered} sessions,");
        held.insert(what, places);
    }
    held
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::held;

    #[test]
    fn every_count_is_looked_at_and_only_what_is_held_is_named() {
        let status = json!({
            "edge": { "requests": 1, "streams": 0 },
            "sessions": { "live": 9, "passive": 1, "reserved": 10, "in_flight": 2, "journaled": 6, "waiting": 0 },
            "parked": 3,
            "pools": [{ "workers": [{ "id": "w", "running": 4, "queued": 5, "capacity": 8 }] }]
        });
        let held: Vec<_> = held(&status).into_iter().collect();
        let expected = [
            ("/edge/requests", 1),
            ("/parked", 3),
            ("/sessions/in_flight", 2),
            ("/sessions/journaled", 6),
            ("queued of worker \"w\"", 5),
            ("running of worker \"w\"", 4),
        ];
        assert_eq!(held, expected.map(|(what, count)| (what.to_owned(), count)));
    }

    #[test]
    fn a_place_without_a_session_is_held_and_a_session_without_a_place_is_shown() {
        for (reserved, live) in [(u64::MAX, 0), (2, 1), (0, 1)] {
            let sessions = json!({ "live": live, "passive": 0, "reserved": reserved });
            let found = held(&json!({ "sessions": sessions, "pools": [] }));
            assert_eq!(found.into_values().collect::<Vec<_>>(), [reserved]);
        }
    }

    #[test]
    fn a_process_without_the_roles_holds_nothing() {
        let status = json!({ "edge": null, "sessions": null, "pools": [] });
        assert!(held(&status).is_empty());
    }
}
