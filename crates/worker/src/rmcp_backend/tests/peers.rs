use futures::FutureExt as _;
use serde_json::json;
use shoal_ports::{Attach, CallOutcome, Caller, Principal, SessionId, Worker};
use shoal_protocol::RawJson;

use super::client::{Client, Said, ended, said, text, until};
use super::probe::{Probe, progress};
use crate::rmcp_backend::peers::{KEPT, SHARDS};

fn in_session(name: impl Into<String>) -> impl FnOnce(&mut Caller) {
    let id = SessionId::new(name.into());
    move |caller| caller.session = Some(id)
}

#[tokio::test]
async fn a_peer_is_lent_again_to_its_own_caller() {
    let client = Client::of(Probe::default()).await;
    let kept = || client.backend.peers.kept();
    for tool in ["whoami", "progress", "whoami", "progress"] {
        client.text(tool, json!({})).await;
        until(|| client.worker.load().running == 0).await;
        assert_eq!(kept(), (1, 1), "{tool}");
    }
    for (others, session) in [(1, "one"), (1, "one"), (2, "two"), (2, "one")] {
        let call = client.tool_for("whoami", in_session(session));
        ended(&mut client.start(call).await).await;
        until(|| client.worker.load().running == 0).await;
        assert_eq!(kept(), (1 + others, 1 + others), "{session}");
    }
}

#[tokio::test]
async fn peers_are_kept_up_to_a_limit() {
    let client = Client::of(Probe::default()).await;
    let limit = SHARDS * KEPT;
    for number in 0..limit + 200 {
        let call = client.tool_for("whoami", in_session(number.to_string()));
        ended(&mut client.start(call).await).await;
    }
    until(|| client.worker.load().running == 0).await;
    let (kept, _) = client.backend.peers.kept();
    assert!((limit / 2..=limit).contains(&kept), "{kept} of {limit}");
}

#[tokio::test]
async fn a_peer_that_is_lent_again_reports_to_the_call_that_has_it() {
    let client = Client::of(Probe::default()).await;
    for _ in 0..3 {
        let mut running = client.start(client.tool("progress", json!({}))).await;
        for step in 1..=3 {
            let Said::Told(_, params) = said(&mut running).await else {
                panic!("expected a report");
            };
            assert_eq!(params["progress"], json!(f64::from(step)));
        }
        assert_eq!(text(&ended(&mut running).await), "done");
    }
}

#[tokio::test]
async fn a_peer_that_has_asked_is_not_lent_again() {
    let client = Client::of(Probe::default()).await.that_cannot_be_asked();
    client.text("roots", json!({})).await;
    until(|| client.worker.load().running == 0).await;
    assert_eq!(
        client.backend.peers.kept(),
        (1, 0),
        "rmcp keeps something of it"
    );
}

#[tokio::test]
async fn a_peer_of_a_call_that_was_cancelled_is_not_lent_again() {
    let client = Client::of(Probe::default()).await;
    for tool in ["stop", "hang"] {
        let mut running = client.start(client.tool(tool, json!({}))).await;
        running.control.cancel("enough");
        ended(&mut running).await;
        until(|| client.worker.load().running == 0).await;
        let (_, again) = client.backend.peers.kept();
        assert_eq!(again, 0, "{tool} may have left a message on its way");
    }
}

#[tokio::test]
async fn peer_describes_each_client_in_turn() {
    let client = Client::of(Probe::default()).await;
    client.text("whoami", json!({})).await;
    let client = client.that_cannot_be_asked();
    let told = client.text("roots", json!({})).await;
    assert!(told.contains("roots"), "{told}");
}

#[tokio::test]
async fn a_peer_that_was_kept_reaches_no_other_caller() {
    let probe = Probe::default();
    let client = Client::of(probe.clone()).await;
    for first in [
        client.tool("keep_peer", json!({})),
        client.tool_for("keep_peer", in_session("first")),
    ] {
        let first_id = first.id;
        assert_eq!(text(&ended(&mut client.start(first).await).await), "kept");
        until(|| client.worker.load().running == 0).await;
        let stray = probe.state.kept.lock().clone().expect("the tool kept it");

        let mut others = Vec::new();
        for call in [
            client.tool_for("stop", in_session("second")),
            client.tool_for("stop", |caller| caller.principal = Principal::new("other")),
            client.tool_for("stop", |caller| {
                caller.capabilities = RawJson::from_static(r#"{"roots":{}}"#);
            }),
        ] {
            others.push(client.start(call).await);
        }
        until(|| client.worker.load().running == others.len()).await;
        stray.notify_progress(progress(1)).await.ok();
        #[expect(deprecated, reason = "roots remain part of every revision")]
        let asked = stray.list_roots().await;
        assert!(asked.is_err(), "there is nobody to ask");

        for mut running in others {
            running.control.cancel("end");
            let Said::Ended(CallOutcome::Failed(_)) = said(&mut running).await else {
                panic!("expected nothing but the end");
            };
        }
        let mut first = client
            .worker
            .attach(Attach::new(first_id, 0))
            .await
            .unwrap();
        assert!(matches!(
            said(&mut first).await,
            Said::Ended(CallOutcome::Result(_))
        ));
        assert!(first.events.next().await.is_none());
        until(|| client.worker.load().running == 0).await;
    }
}

#[tokio::test]
async fn a_peer_that_spoke_while_no_call_had_it_is_not_lent_again() {
    let probe = Probe::default();
    let client = Client::of(probe.clone()).await;
    client.text("keep_peer", json!({})).await;
    until(|| client.worker.load().running == 0).await;
    assert_eq!(client.backend.peers.kept(), (1, 1));
    let stray = probe.state.kept.lock().clone().expect("the tool kept it");
    stray.notify_progress(progress(1)).await.ok();

    let mut running = client.start(client.tool("stop", json!({}))).await;
    until(|| client.worker.load().running == 1).await;
    stray.notify_progress(progress(2)).await.ok();
    assert!(running.events.next().now_or_never().is_none());
    running.control.cancel("end");
    ended(&mut running).await;
}

#[tokio::test]
async fn kept_peer_still_announces_changes() {
    let probe = Probe::default();
    let client = Client::of(probe.clone()).await;
    client.text("keep_peer", json!({})).await;
    until(|| client.worker.load().running == 0).await;
    let stray = probe.state.kept.lock().clone().expect("the tool kept it");
    stray.notify_tool_list_changed().await.unwrap();
    client.catalog_with(|it| it.generations == [1, 0, 0]).await;
}

#[tokio::test]
async fn peer_of_the_host_announces_changes() {
    let probe = Probe::default();
    let client = Client::of(probe.clone()).await;
    until(|| probe.state.host.lock().is_some()).await;
    let host = probe.state.host.lock().clone().expect("just seen");
    host.notify_prompt_list_changed().await.unwrap();
    client.catalog_with(|it| it.generations == [0, 0, 1]).await;
    host.notify_resource_list_changed().await.unwrap();
    client.catalog_with(|it| it.generations == [0, 1, 1]).await;
}
