use std::time::Duration;

use serde_json::json;
use shoal_testkit::cluster::Tools;

use crate::client::{Client, text_of};
use crate::{small, start};

#[tokio::test]
async fn members_of_two_protocol_versions_work_together() {
    let cluster = start(small().workers(2).setting("cluster.protocol", "1")).await;
    let client = Client::open(cluster.url()).await;
    let call = async |id: u64| {
        client.echo_patiently(id).await;
        let arguments = json!({ "nonce": "once", "count": 5, "ms": 10 });
        let mut events = client.stream(id + 1, "steps_once", &arguments).await;
        assert_eq!(text_of(events.rest().await.last().unwrap()), "once");
    };
    call(1).await;
    let mut id = 3;
    for member in cluster.members() {
        member.terminate(Duration::from_secs(30)).await.unwrap();
        member.set("cluster.protocol", "6");
        member.start_again().await.unwrap();
        call(id).await;
        id += 2;
    }
}

#[tokio::test]
async fn session_state_is_refused_in_words_until_worker_and_node_know_it() {
    let builder = small().tools(Tools::Demo).setting("cluster.protocol", "2");
    let cluster = start(builder).await;
    let client = Client::open(cluster.url()).await;
    let arguments = json!({ "key": "k", "value": "v" });
    let refused = client.text(1, "remember", &arguments).await;
    assert!(refused.contains("speak version 2"), "{refused}");
    for member in cluster.members() {
        member.terminate(Duration::from_secs(30)).await.unwrap();
        member.set("cluster.protocol", "3");
        member.start_again().await.unwrap();
    }
    let kept = client.text(2, "remember", &arguments).await;
    assert_eq!(kept, "remembered k");
}
