use futures::future::join_all;
use nix::sys::signal::Signal;
use serde_json::json;

use super::load::under_load;
use super::setting::{ConfigFile, Seen, fixture, until};
use crate::client::{Session, call, modern_call, post_modern, response, text};

/// Calls in each era. All of them together are more than can run at once.
const EACH: u64 = 4;

#[tokio::test]
async fn calls_of_a_removed_pool_end_well_those_too_that_wait_for_a_place() {
    let same = fixture("same", "");
    let slow = format!("{}concurrency = 4\nqueue_age = '1m'\n", fixture("slow", ""));
    let config = ConfigFile::new(&[&*same, &*slow].concat());
    let server = super::serve(&config).await;
    let seen = Seen::of(&server).await;
    let process = seen.call("slow_process", "").await;
    let file = config.beside("go");
    let said = json!({ "text": file.to_str().unwrap() });
    under_load(&server.mcp, &["same_shout", "same_shout"], async || {
        let legacy = (0..EACH).map(async |id| {
            let session = Session::open(&server.mcp).await;
            session.ask(&call(id, "slow_wait", said.clone())).await
        });
        let modern = (0..EACH).map(async |id| {
            let call = modern_call(id, "slow_wait", said.clone());
            response(post_modern(&server.mcp, &call).send().await.unwrap()).await
        });
        let change = async {
            let is = async |running: u64, queued: u64| {
                let status = server.status().await;
                let pools = status["pools"].as_array().unwrap();
                let slow = pools.iter().find(|pool| pool["name"] == "slow").unwrap();
                let worker = &slow["workers"][0];
                worker["running"] == running && worker["queued"] == queued
            };
            until(async || is(EACH, EACH).await).await;
            config.write(&same);
            server.signal(Signal::SIGHUP);
            seen.offers("slow_shout", false).await;
            assert_eq!(seen.refusal("slow_shout").await, -32602);
            config.write(&[&*same, &*slow].concat());
            server.signal(Signal::SIGHUP);
            seen.offers("slow_shout", true).await;
            assert_ne!(seen.call("slow_process", "").await, process);
            std::fs::write(&file, "").unwrap();
        };
        let (legacy, modern, ()) = tokio::join!(join_all(legacy), join_all(modern), change);
        for answer in legacy.iter().chain(&modern) {
            assert_eq!(text(answer), process);
        }
    })
    .await;
}
