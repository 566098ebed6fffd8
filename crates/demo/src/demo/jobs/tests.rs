use rmcp::{
    model::{CallToolRequest, ClientRequest},
    service::PeerRequestOptions,
};
use serde_json::json;

use crate::{
    DemoServer,
    tests::{Client, Session, Told, params, text},
};

async fn plain() -> Session<DemoServer> {
    Client::plain().connect(DemoServer::new()).await
}

#[tokio::test]
async fn long_job_reports_every_step() {
    let mut session = plain().await;
    let done = session
        .text("long_job", json!({ "steps": 3, "interval_ms": 0 }))
        .await;
    assert_eq!(done, "done after 3 steps");
    for step in 1..=3 {
        let Told::Progress(progress) = session.told().await else {
            panic!("expected progress")
        };
        assert_eq!(
            (progress.progress, progress.total),
            (f64::from(step), Some(3.0))
        );
        assert_eq!(progress.message, Some(format!("step {step} of 3")));
    }
}

#[tokio::test]
async fn long_job_without_a_progress_token_is_silent() {
    let mut session = plain().await;
    let context = session.context(Default::default());
    let job = json!({ "steps": 3, "interval_ms": 1 });
    let result = session
        .call_directly("long_job", job, context)
        .await
        .expect("completes");
    assert_eq!(text(&result), "done after 3 steps");
    session.call("increment_counter", json!({})).await;
    assert_eq!(
        session.told().await,
        Told::Updated("demo://counter".to_owned())
    );
}

#[tokio::test]
async fn long_job_rejects_arguments_out_of_range() {
    let session = plain().await;
    for (steps, interval_ms) in [(0, 0), (10_001, 0), (1, 60_001)] {
        let job = json!({ "steps": steps, "interval_ms": interval_ms });
        assert_eq!(session.call("long_job", job).await.is_error, Some(true));
    }
}

#[tokio::test]
async fn long_job_stops_when_its_request_is_cancelled() {
    let session = plain().await;
    let context = session.context(Default::default());
    context.ct.cancel();
    let job = json!({ "steps": 10_000, "interval_ms": 60_000 });
    let result = session
        .call_directly("long_job", job, context)
        .await
        .expect("completes");
    assert_eq!(text(&result), "cancelled in step 1");
}

#[tokio::test]
async fn cancelling_a_call_leaves_the_session_usable() {
    let mut session = plain().await;
    let job = params("long_job", json!({ "steps": 10_000, "interval_ms": 5 }));
    let request = ClientRequest::CallToolRequest(CallToolRequest::new(job));
    let options = PeerRequestOptions::no_options();
    let call = session
        .client
        .send_cancellable_request(request, options)
        .await
        .expect("is sent");
    assert!(matches!(session.told().await, Told::Progress(_)));
    call.cancel(Some("enough".to_owned()))
        .await
        .expect("is cancelled");
    assert_eq!(
        session.text("echo", json!({ "text": "still here" })).await,
        "still here"
    );
}
