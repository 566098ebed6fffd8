use std::time::Duration;

use serde_json::json;
use shoal_ports::{Call, CallFailure, CallOutcome, Repeat, ResourceUpdated};
use shoal_protocol::{Method, RawJson};

use super::harness::{
    Client, SOON, Scratch, TestBackend, eventually, failure, fixture, scratch, signal, text,
};
use crate::{EraChoice, Isolation, StdioBackend, StdioConfig};

#[tokio::test]
async fn a_modern_server_gets_the_callers_own_metadata() {
    let running = TestBackend::start(fixture("modern.py", &[])).await;
    let catalog = running.catalog_where(|_| true).await;
    assert_eq!(catalog.instructions.as_deref(), Some("Be brief."));
    assert_eq!(catalog.ttl_ms, [Some(2_500), None, None, None]);
    assert_eq!(
        catalog.server_info.as_ref().unwrap().as_str(),
        r#"{"name": "modern", "version": "1"}"#
    );
    let legacy = Client::askable("legacy");
    let params = text(&running.call(&legacy, "params", json!({ "n": 1 })).await);
    let meta = &params["_meta"];
    assert_eq!(
        meta["io.modelcontextprotocol/protocolVersion"],
        "2026-07-28"
    );
    assert_eq!(meta["io.modelcontextprotocol/clientInfo"]["name"], "legacy");
    assert!(meta["io.modelcontextprotocol/clientCapabilities"]["elicitation"].is_object());
    assert_eq!(params["arguments"], json!({ "n": 1 }));
}

#[tokio::test]
async fn what_a_modern_server_needs_is_its_result() {
    let running = TestBackend::start(fixture("modern.py", &[])).await;
    let client = Client::modern("m", r#"{"elicitation":{}}"#);
    let CallOutcome::Result(result) = running.call(&client, "confirm", json!({})).await else {
        panic!()
    };
    assert!(
        result
            .as_str()
            .starts_with(r#"{"resultType": "input_required""#)
    );
    let call = client.call(json!({
        "name": "confirm", "inputResponses": { "sure": { "action": "accept" } }, "requestState": "opaque",
    }));
    let echoed = text(&running.run(&client, &call).await);
    assert_eq!(
        echoed,
        json!([{ "sure": { "action": "accept" } }, "opaque"])
    );
}

#[tokio::test]
async fn a_modern_server_reports_changes_on_one_stream() {
    let running = TestBackend::start(fixture("modern.py", &[])).await;
    let mut client = Client::modern("m", "{}");
    client.progress_token = Some(RawJson::from_static("7"));
    let mut updates = running.0.resource_updates();
    for uri in ["test://a", "test://b"] {
        running.0.subscribe(uri).await.unwrap();
    }
    let filters = async || text(&running.call(&client, "filters", json!({})).await);
    let both = json!([{
        "toolsListChanged": true, "promptsListChanged": true, "resourcesListChanged": true,
        "resourceSubscriptions": ["test://a", "test://b"],
    }]);
    while filters().await["open"] != both {}
    running
        .call(&client, "touch", json!({ "uri": "test://b" }))
        .await;
    let ResourceUpdated { uri, params } = updates.recv().await.unwrap();
    assert_eq!(
        (uri.as_str(), params.as_str()),
        ("test://b", r#"{"uri":"test://b"}"#)
    );
    running
        .call(&client, "change", json!({ "tool": "fresh" }))
        .await;
    running
        .catalog_where(|catalog| catalog.generations == [1, 0, 0])
        .await;
    running.call(&client, "progress", json!({})).await;
    assert_eq!(
        client.notes(&Method::Progress),
        [json!({ "progressToken": 7, "progress": 1 })]
    );
}

#[tokio::test]
async fn sessions_of_a_modern_server_share_one_process() {
    let mut config = fixture("modern.py", &[]);
    config.isolation = Isolation::Session;
    let running = TestBackend::start(config).await;
    let (a, b) = (Client::askable("a"), Client::askable("b"));
    let opened = async |client: &Client| text(&running.call(client, "params", json!({})).await);
    let (a, b) = tokio::join!(opened(&a), opened(&b));
    assert_eq!(a["name"], b["name"]);
}

#[tokio::test]
async fn a_modern_server_that_starts_slowly_is_still_modern() {
    let mut config = fixture("modern.py", &["--slow", "0.5"]);
    config.probe_timeout = Duration::from_millis(50).into();
    let running = TestBackend::start(config).await;
    assert_eq!(
        running
            .catalog_where(|_| true)
            .await
            .instructions
            .as_deref(),
        Some("Be brief.")
    );
}

#[tokio::test]
async fn a_server_of_unknown_versions_is_reported_and_not_taken_for_legacy() {
    let running = TestBackend(std::sync::Arc::new(StdioBackend::start(fixture(
        "modern.py",
        &["--only", "2099-01-01"],
    ))));
    let told = |detail: &String| detail.contains("2099-01-01");
    let state = running
        .state_where(|state| state.detail.as_ref().is_some_and(told))
        .await;
    assert!(state.catalog.is_none());
}

#[tokio::test]
async fn a_legacy_server_is_never_asked_to_be_modern() {
    for flag in ["--silent-discover", "--die-on-discover"] {
        let running = TestBackend::start(fixture("legacy.py", &[flag])).await;
        let client = Client::named("a");
        let echoed = running.call(&client, "echo", json!({ "text": "x" })).await;
        assert_eq!(text(&echoed), "x");
        assert_eq!(running.0.restarts(), 0);
    }
}

#[tokio::test]
async fn a_modern_server_that_does_not_know_the_older_opening_is_reached_all_the_same() {
    for flag in ["--silent-initialize", "--die-on-initialize"] {
        let mut config = fixture("modern.py", &[flag]);
        config.probe_timeout = Duration::from_millis(200).into();
        let running = TestBackend::start(config).await;
        let catalog = running.catalog_where(|_| true).await;
        assert_eq!(catalog.instructions.as_deref(), Some("Be brief."));
    }
}

fn dual() -> (StdioConfig, Scratch) {
    let trace = scratch("dual");
    let config = fixture("dual.py", &["--trace", trace.to_str().unwrap()]);
    (config, trace)
}

fn traced(trace: &Scratch) -> Vec<String> {
    let text = std::fs::read_to_string(&**trace).unwrap();
    text.lines().map(str::to_owned).collect()
}

fn both() -> [Client; 2] {
    let modern = Client::modern("m", r#"{"elicitation":{}}"#);
    [Client::askable("a"), modern]
}

/// The Go SDK refuses requests to clients after `server/discover`.
#[tokio::test]
async fn a_server_that_was_asked_for_the_other_era_may_ask_by_requests() {
    let (mut config, _trace) = dual();
    config.args.push("--switch".to_owned());
    let running = TestBackend::start(config).await;
    let client = Client::askable("a");
    let answer = text(&running.call(&client, "greet", json!({})).await);
    assert_eq!(answer["action"], "accept", "{answer}");
}

/// When the server says that it has the modern era, its process already accepts calls.
#[tokio::test]
async fn a_server_that_says_late_that_it_has_the_other_era_may_ask_by_requests() {
    let (mut config, trace) = dual();
    let late = ["--switch", "--late", "1.5"].map(str::to_owned);
    config.args.extend(late);
    let running = TestBackend::start(config).await;
    running.catalog_where(|_| true).await;
    let starts = || traced(&trace).len();
    eventually("another process", || starts() == 3).await;
    assert_eq!(traced(&trace), ["legacy", "modern", "legacy"]);
    let client = Client::askable("a");
    let answer = text(&running.call(&client, "greet", json!({})).await);
    assert_eq!(answer["action"], "accept", "{answer}");
    assert_eq!(running.0.restarts(), 0);
}

#[tokio::test]
async fn a_call_in_a_retired_lead_leaves_its_place_to_the_next_one() {
    let (mut config, trace) = dual();
    config.isolation = Isolation::Shared;
    config.processes = Some(1);
    let late = ["--switch", "--late", "3"].map(str::to_owned);
    config.args.extend(late);
    let running = TestBackend::start(config).await;
    let client = Client::named("a");
    let held = running.spawn(&client, "hold", json!({}));
    eventually("the call runs", || traced(&trace).len() == 2).await;
    assert_eq!(traced(&trace), ["legacy", "legacy hold"]);
    eventually("another process", || traced(&trace).len() == 4).await;
    text(&running.call(&client, "lines", json!({})).await);
    let later = ["modern", "legacy", "legacy lines"];
    assert_eq!(traced(&trace)[2..], later);
    assert!(!held.is_finished());
    assert_eq!(running.0.restarts(), 0);
}

#[tokio::test]
async fn a_server_of_both_eras_that_is_slow_to_open_a_session_may_ask_by_requests() {
    let (mut config, _trace) = dual();
    config.probe_timeout = Duration::from_millis(500).into();
    config.args.extend(["--slow", "1"].map(str::to_owned));
    let running = TestBackend::start(config).await;
    let client = Client::askable("a");
    let answer = text(&running.call(&client, "greet", json!({})).await);
    assert_eq!(answer["action"], "accept", "{answer}");
}

#[tokio::test]
async fn a_server_of_both_eras_that_never_opens_a_session_is_modern_in_its_first_process() {
    let (mut config, trace) = dual();
    config.start_timeout = Duration::from_secs(5).into();
    config.probe_timeout = Duration::from_secs(2).into();
    config.args.extend(["--slow", "600"].map(str::to_owned));
    let running = TestBackend::start(config).await;
    running.catalog_where(|_| true).await;
    assert_eq!(traced(&trace), ["legacy"]);
    assert_eq!(running.0.restarts(), 0);
}

#[tokio::test]
async fn a_server_of_both_eras_may_ask_by_requests() {
    let (config, trace) = dual();
    let running = TestBackend::start(config).await;
    for client in both() {
        let answer = text(&running.call(&client, "greet", json!({})).await);
        assert_eq!(answer["action"], "accept", "{answer}");
        assert_eq!(client.asked().len(), 1);
    }
    assert_eq!(traced(&trace), ["legacy", "legacy greet", "legacy greet"]);
}

#[tokio::test]
async fn a_server_of_both_eras_may_ask_by_results() {
    for tool in ["greet_required", "greet_generic"] {
        let (config, trace) = dual();
        let running = TestBackend::start(config).await;
        for client in both() {
            let call = Call {
                repeat: Repeat::Safe,
                ..client.call(json!({ "name": tool, "arguments": {} }))
            };
            let CallOutcome::Result(result) = running.run(&client, &call).await else {
                panic!()
            };
            assert!(result.as_str().contains("input_required"), "{result:?}");
            let call = client.call(json!({
                "name": tool, "inputResponses": { "name": { "action": "accept" } },
                "requestState": "asked",
            }));
            let echoed = text(&running.run(&client, &call).await);
            assert_eq!(echoed, json!([{ "name": { "action": "accept" } }, "asked"]));
        }
        let (older, newer) = (format!("legacy {tool}"), format!("modern {tool}"));
        let newer = newer.as_str();
        let expected = ["legacy", &older, "modern", newer, newer, newer, newer];
        assert_eq!(traced(&trace), expected);
    }
}

fn one_of_the_modern_side(name: &str) -> Client {
    Client::modern(name, r#"{"elicitation":{}}"#)
}

#[tokio::test]
async fn a_caller_that_ends_the_modern_process_keeps_nobody_else_from_it() {
    let (mut config, _trace) = dual();
    config.isolation = Isolation::Shared;
    config.restart_delay = Duration::from_secs(10).into();
    config.max_restart_delay = Duration::from_secs(60).into();
    let running = TestBackend::start(config).await;
    let [mallory, alice] = ["mallory", "alice"].map(one_of_the_modern_side);
    for round in 0..4 {
        let died = failure(running.call(&mallory, "die_required", json!({})).await);
        match (&died, round) {
            (CallFailure::OutcomeUnknown { .. }, 0) => {}
            (CallFailure::Overloaded { retry_after, .. }, 1..) => {
                assert!(*retry_after > Duration::from_secs(1), "{died:?}");
            }
            other => panic!("{other:?}"),
        }
        for client in [&alice, &mallory] {
            text(&running.call(client, "pid_required", json!({})).await);
        }
    }
}

/// One call is half written, and another unwritten.
#[tokio::test]
async fn a_call_that_the_modern_process_never_read_runs_in_another_one() {
    for isolation in [Isolation::Shared, Isolation::Session] {
        let (mut config, _trace) = dual();
        config.isolation = isolation;
        let running = TestBackend::start(config).await;
        let client = one_of_the_modern_side("a");
        let pid = text(&running.call(&client, "pid_required", json!({})).await);
        signal(&pid, "-STOP");
        let long = "x".repeat(1 << 20);
        let half = running.spawn(&client, "pid_required", json!({ "pad": long }));
        tokio::time::sleep(SOON).await;
        let unread = running.spawn(&client, "pid_required", json!({}));
        tokio::time::sleep(SOON).await;
        signal(&pid, "-KILL");
        let half = failure(half.await.unwrap());
        assert!(
            matches!(half, CallFailure::OutcomeUnknown { .. }),
            "{half:?}"
        );
        assert_ne!(text(&unread.await.unwrap()), pid);
    }
}

#[tokio::test]
async fn what_may_be_a_fault_of_the_handler_repeats_no_call_that_must_not_be() {
    let (config, trace) = dual();
    let running = TestBackend::start(config).await;
    let [client, _] = both();
    let outcome = running.call(&client, "greet_generic", json!({})).await;
    assert!(
        matches!(&outcome, CallOutcome::Error(error) if error.message.contains("invalid result")),
        "{outcome:?}"
    );
    assert_eq!(traced(&trace), ["legacy", "legacy greet_generic"]);
    let outcome = running.call(&client, "greet_generic", json!({})).await;
    assert!(matches!(outcome, CallOutcome::Result(_)), "{outcome:?}");
    let later = ["modern", "modern greet_generic"];
    assert_eq!(traced(&trace)[2..], later);
}

#[tokio::test]
async fn whoever_cannot_be_asked_gets_what_the_legacy_process_says() {
    let (config, trace) = dual();
    let running = TestBackend::start(config).await;
    let outcome = running
        .call(&Client::named("a"), "greet_required", json!({}))
        .await;
    assert!(matches!(outcome, CallOutcome::Error(_)), "{outcome:?}");
    assert_eq!(traced(&trace), ["legacy", "legacy greet_required"]);
}

#[tokio::test]
async fn an_era_can_be_chosen() {
    for (era, works, fails) in [
        (EraChoice::Legacy, "greet", "greet_required"),
        (EraChoice::Modern, "greet_required", "greet"),
    ] {
        let (mut config, trace) = dual();
        config.era = era;
        let running = TestBackend::start(config).await;
        for client in both() {
            let outcome = running.call(&client, works, json!({})).await;
            assert!(matches!(outcome, CallOutcome::Result(_)), "{outcome:?}");
            let outcome = running.call(&client, fails, json!({})).await;
            assert!(matches!(outcome, CallOutcome::Error(_)), "{outcome:?}");
        }
        let starts = traced(&trace);
        let starts = starts.iter().filter(|line| !line.contains(' '));
        assert_eq!(starts.count(), 1);
    }
}

#[tokio::test]
async fn a_legacy_server_that_was_to_be_modern_is_reported() {
    let mut config = fixture("legacy.py", &[]);
    config.era = EraChoice::Modern;
    let running = TestBackend(std::sync::Arc::new(StdioBackend::start(config)));
    let told = |detail: &String| detail.contains("it does not speak 2026-07-28");
    let state = running.state_where(|state| state.detail.as_ref().is_some_and(told));
    assert!(state.await.catalog.is_none());
}

#[tokio::test]
async fn a_server_that_chooses_an_unknown_version_is_not_used() {
    let config = fixture("legacy.py", &["--version", "9999-01-01"]);
    let running = TestBackend(std::sync::Arc::new(StdioBackend::start(config)));
    let told =
        "it speaks protocol version 9999-01-01, which Shoal does not; Shoal speaks 2024-11-05, ";
    let says = |detail: &String| detail.contains(told);
    let state = running.state_where(|state| state.detail.as_ref().is_some_and(says));
    assert!(state.await.catalog.is_none());
}
