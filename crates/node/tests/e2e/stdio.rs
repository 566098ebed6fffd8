use nix::sys::signal::Signal;
use serde_json::json;

use crate::client::{call, initialize, initialized, modern, modern_call, request, text};
use crate::process::Bridge;
use crate::serve::FIXTURE;

#[tokio::test]
async fn a_legacy_client_is_served() {
    let mut bridge = Bridge::start(&["--demo"]);
    bridge.send(initialize(0, "2025-06-18")).await;
    let opened = bridge.next().await.unwrap();
    assert_eq!(opened["result"]["protocolVersion"], "2025-06-18");
    bridge.send(initialized()).await;
    bridge
        .send(call(1, "echo", json!({ "text": "hello" })))
        .await;
    assert_eq!(text(&bridge.response(1).await), "hello");
    // The change arrives on the standalone stream.
    bridge.send(call(2, "toggle_bonus_tool", json!({}))).await;
    bridge.of_method("notifications/tools/list_changed").await;
    bridge.close();
    assert_eq!(bridge.end().await.0, 0);
}

#[tokio::test]
async fn progress_comes_before_the_response() {
    let mut bridge = Bridge::start(&["--demo"]);
    bridge.send(initialize(0, "2025-11-25")).await;
    bridge.response(0).await;
    bridge.send(initialized()).await;
    let mut job = call(1, "long_job", json!({ "steps": 3, "interval_ms": 10 }));
    job["params"]["_meta"] = json!({ "progressToken": "p" });
    bridge.send(job).await;
    for step in 1..=3 {
        let progress = bridge.next().await.unwrap();
        assert_eq!(
            progress["params"]["progressToken"], "p",
            "{step}: {progress}"
        );
    }
    assert!(bridge.next().await.unwrap().get("result").is_some());
}

#[tokio::test]
async fn a_tool_can_ask_a_legacy_client() {
    let mut bridge = Bridge::start(&["--demo"]);
    let mut opening = initialize(0, "2025-11-25");
    opening["params"]["capabilities"] = json!({ "roots": {} });
    bridge.send(opening).await;
    bridge.response(0).await;
    bridge.send(initialized()).await;
    bridge.send(call(1, "list_roots", json!({}))).await;
    let asked = bridge.of_method("roots/list").await;
    let roots = json!({ "roots": [{ "uri": "file:///home", "name": "home" }] });
    bridge
        .send(json!({ "jsonrpc": "2.0", "id": asked["id"], "result": roots }))
        .await;
    let answer = bridge.response(1).await;
    assert!(answer.to_string().contains("file:///home"), "{answer}");
}

#[tokio::test]
async fn a_modern_client_is_served() {
    let mut bridge = Bridge::start(&["--demo"]);
    bridge.send(modern(0, "server/discover", json!({}))).await;
    let discovered = bridge.next().await.unwrap();
    assert_eq!(discovered["result"]["supportedVersions"][0], "2026-07-28");
    bridge
        .send(modern_call(1, "echo", json!({ "text": "hello" })))
        .await;
    assert_eq!(text(&bridge.response(1).await), "hello");
    bridge.close();
    assert_eq!(bridge.end().await, (0, vec![]));
}

#[tokio::test]
async fn a_modern_client_hears_of_changes() {
    let mut bridge = Bridge::start(&["--demo"]);
    let listen = json!({ "notifications": { "toolsListChanged": true } });
    bridge.send(modern(7, "subscriptions/listen", listen)).await;
    let first = bridge.next().await.unwrap();
    assert_eq!(first["method"], "notifications/subscriptions/acknowledged");
    bridge
        .send(modern_call(8, "toggle_bonus_tool", json!({})))
        .await;
    let changed = bridge.of_method("notifications/tools/list_changed").await;
    let tag = &changed["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"];
    assert_eq!(tag, 7);
    bridge.close();
    assert_eq!(bridge.end().await.0, 0);
}

#[tokio::test]
async fn nothing_is_said_of_a_cancelled_request() {
    let mut bridge = Bridge::start(&["--demo"]);
    let job = json!({ "steps": 600, "interval_ms": 100 });
    bridge.send(modern_call(1, "long_job", job)).await;
    bridge
        .send(
            json!({ "jsonrpc": "2.0", "method": "notifications/cancelled",
            "params": { "requestId": 1 } }),
        )
        .await;
    bridge
        .send(modern_call(2, "echo", json!({ "text": "next" })))
        .await;
    assert_eq!(text(&bridge.next().await.unwrap()), "next");
    bridge.close();
    assert_eq!(bridge.end().await, (0, vec![]));
}

#[tokio::test]
async fn answers_on_their_way_arrive_after_the_input_has_ended() {
    let mut bridge = Bridge::start(&["--demo"]);
    let job = json!({ "steps": 3, "interval_ms": 100 });
    bridge.send(modern_call(1, "long_job", job)).await;
    bridge.close();
    let (code, messages) = bridge.end().await;
    assert_eq!((code, messages.len()), (0, 1), "{messages:?}");
    assert_eq!(messages[0]["id"], 1);
}

#[tokio::test]
async fn what_is_no_message_is_answered_and_does_no_harm() {
    let mut bridge = Bridge::start_with(&["--demo"], &[("SHOAL_LIMITS__BODY_BYTES", "2000")]);
    bridge.write("").await;
    bridge.write("nonsense").await;
    assert_eq!(bridge.next().await.unwrap()["error"]["code"], -32700);
    bridge.write(r#"{"jsonrpc":"2.0","id":5}"#).await;
    assert_eq!(bridge.next().await.unwrap()["id"], 5);
    bridge
        .write(&format!("{{\"a\":\"{}\"}}", "x".repeat(3000)))
        .await;
    let refused = bridge.next().await.unwrap();
    assert!(
        refused["error"]["message"]
            .as_str()
            .unwrap()
            .contains("2000 bytes")
    );
    bridge.send(request(6, "tools/list", json!({}))).await;
    let refused = bridge.next().await.unwrap();
    assert_eq!(
        (&refused["id"], refused["error"]["code"].is_i64()),
        (&json!(6), true)
    );
    bridge
        .send(modern_call(7, "echo", json!({ "text": "fine" })))
        .await;
    assert_eq!(text(&bridge.response(7).await), "fine");
}

#[tokio::test]
async fn a_ping_is_answered_before_there_is_a_session() {
    let mut bridge = Bridge::start(&["--demo"]);
    bridge.send(request(1, "ping", json!({}))).await;
    assert_eq!(bridge.response(1).await["result"], json!({}));
}

#[tokio::test]
async fn bytes_that_are_no_text_are_replaced_and_the_request_is_answered() {
    let mut bridge = Bridge::start(&["--demo"]);
    let call = modern_call(1, "echo", json!({ "text": "caf?" })).to_string();
    let call: Vec<u8> = call
        .bytes()
        .map(|byte| if byte == b'?' { 0xe9 } else { byte })
        .collect();
    bridge.write(call).await;
    assert_eq!(text(&bridge.response(1).await), "caf\u{fffd}");
}

#[tokio::test]
async fn versions_that_are_not_spoken_are_refused_with_those_that_are() {
    let mut bridge = Bridge::start(&["--demo"]);
    let mut discover = modern(1, "server/discover", json!({}));
    discover["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("1900-01-01");
    bridge.send(discover).await;
    let refused = bridge.next().await.unwrap();
    assert_eq!(refused["error"]["code"], -32022);
    let supported = refused["error"]["data"]["supported"].as_array().unwrap();
    assert!(supported.contains(&json!("2026-07-28")));
    bridge.send(request(2, "server/discover", json!({}))).await;
    assert_eq!(bridge.next().await.unwrap()["error"]["code"], -32602);
}

#[tokio::test]
async fn a_command_is_served_as_soon_as_it_is_ready() {
    let mut bridge = Bridge::start(&["--", "python3", FIXTURE]);
    bridge.send(initialize(0, "2025-11-25")).await;
    let opened = bridge.response(0).await;
    assert_eq!(opened["result"]["serverInfo"]["name"], "fixture");
    bridge.send(initialized()).await;
    bridge.send(request(1, "tools/list", json!({}))).await;
    assert_eq!(
        bridge.response(1).await["result"]["tools"][0]["name"],
        "shout"
    );
    bridge
        .send(call(2, "shout", json!({ "text": "hello" })))
        .await;
    assert_eq!(text(&bridge.response(2).await), "HELLO");
}

#[tokio::test]
async fn what_a_client_gives_as_environment_reaches_the_server() {
    let environment = [("API_KEY", "given-value"), ("SHOAL_CALLS__TIMEOUT", "30s")];
    let mut bridge = Bridge::start_with(&["--", "python3", FIXTURE], &environment);
    bridge.send(initialize(0, "2025-11-25")).await;
    bridge.response(0).await;
    bridge.send(initialized()).await;
    for (id, name, value) in [
        (1, "API_KEY", "given-value"),
        (2, "SHOAL_CALLS__TIMEOUT", "None"),
    ] {
        let asked = json!({ "text": name });
        bridge.send(call(id, "variable", asked)).await;
        assert_eq!(text(&bridge.response(id).await), value, "{name}");
    }
}

#[tokio::test]
async fn a_signal_ends_it_although_the_input_is_open() {
    let mut bridge = Bridge::start(&["--demo"]);
    bridge.send(modern(0, "server/discover", json!({}))).await;
    bridge.response(0).await;
    bridge.signal(Signal::SIGTERM);
    assert_eq!(bridge.end().await.0, 0);
}

async fn waiting_for_a_silent_server() -> Bridge {
    let server = "import sys, time; print('here', file=sys.stderr, flush=True); time.sleep(600)";
    let environment = [
        ("SHOAL_SHUTDOWN__CALLS", "1s"),
        ("SHOAL_LOGGING__LEVEL", "info,shoal::stdio=debug"),
    ];
    let bridge = Bridge::start_with(&["--", "python3", "-c", server], &environment);
    bridge.said("here").await;
    bridge
}

#[tokio::test]
async fn a_signal_ends_it_although_its_server_is_not_ready() {
    for signal in [Signal::SIGTERM, Signal::SIGINT] {
        let mut bridge = waiting_for_a_silent_server().await;
        bridge.send(initialize(0, "2025-11-25")).await;
        bridge.signal(signal);
        assert_eq!(bridge.end().await, (0, vec![]), "{signal}");
    }
}

#[tokio::test]
async fn the_end_of_its_input_ends_it_although_its_server_is_not_ready() {
    for asks in [false, true] {
        let mut bridge = waiting_for_a_silent_server().await;
        if asks {
            bridge.send(initialize(0, "2025-11-25")).await;
        }
        bridge.close();
        assert_eq!(bridge.end().await.0, 0, "{asks}");
    }
}
