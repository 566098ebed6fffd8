//! Whose message it is that goes through a peer.

use serde_json::json;
use shoal_demo::DemoServer;
use shoal_ports::{CallOutcome, Worker};

use super::client::{Client, Said, ended, said, text, until};
use super::probe::{Probe, progress};

#[tokio::test]
async fn peers_can_be_told_to_be_unused() {
    // Not needed for correctness, but the hot path is several times as fast with it: look here when
    // a new tokio or rmcp fails this.
    let client = Client::of(DemoServer::new()).await;
    assert!(client.backend.peers.can_reuse());
}

#[tokio::test]
async fn a_peer_is_lent_again_when_nothing_of_its_call_is_left() {
    let client = Client::of(Probe::default()).await;
    let idle = || client.backend.peers.idle();
    for tool in ["whoami", "progress", "whoami", "progress"] {
        client.text(tool, json!({})).await;
        until(|| client.worker.load().running == 0).await;
        assert_eq!(idle(), 1, "{tool}");
    }
    client.text("keep_peer", json!({})).await;
    until(|| client.worker.load().running == 0).await;
    assert_eq!(idle(), 0, "the tool may still send something");
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
    assert_eq!(client.backend.peers.idle(), 0, "rmcp keeps something of it");
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
async fn kept_peer_reaches_nobody_after_its_call() {
    let probe = Probe::default();
    let client = Client::of(probe.clone()).await;
    let first = client.tool("keep_peer", json!({}));
    let first_id = first.id;
    assert_eq!(text(&ended(&mut client.start(first).await).await), "kept");

    let second = client.tool("stop", json!({}));
    let mut running = client.start(second).await;
    until(|| client.worker.load().running == 1).await;
    let stray = probe.state.kept.lock().clone().expect("the tool kept it");
    stray.notify_progress(progress(1)).await.ok();
    #[expect(deprecated, reason = "roots remain part of every revision")]
    let asked = stray.list_roots().await;
    assert!(asked.is_err(), "there is nobody to ask");

    running.control.cancel("end");
    let Said::Ended(CallOutcome::Failed(_)) = said(&mut running).await else {
        panic!("expected nothing but the end");
    };
    let mut first = client.worker.attach(first_id, 0, None).await.unwrap();
    assert!(matches!(
        said(&mut first).await,
        Said::Ended(CallOutcome::Result(_))
    ));
    assert!(first.events.next().await.is_none());
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
