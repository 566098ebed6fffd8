use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};
use shoal_testkit::cluster::Cluster;
use shoal_testkit::redis::Redis;
use shoal_testkit::redis_sentinel::{Newest, RedisSentinel};

use crate::client::{Client, Events, progress_of, text_of, within};
use crate::session::owner;
use crate::{small, start};

/// With a shorter lease, another node would claim sessions whose journal is lost.
const LONG_LEASE: Duration = Duration::from_secs(30);

async fn remember(redis: &Redis) {
    let script = "for _, key in ipairs(redis.call('KEYS', 'shoal:*')) do \
        redis.call('HSET', 'before', key, redis.call('DUMP', key)) \
        redis.call('HSET', 'lives', key, redis.call('PTTL', key)) end return 0";
    redis.command(&["EVAL", script, "0"]).await.unwrap();
}

async fn forget(redis: &Redis) {
    let script = "for _, key in ipairs(redis.call('KEYS', 'shoal:*')) do redis.call('DEL', key) end \
        local before = redis.call('HGETALL', 'before') \
        for i = 1, #before, 2 do \
        local life = tonumber(redis.call('HGET', 'lives', before[i])) \
        redis.call('RESTORE', before[i], math.max(life, 0), before[i + 1]) end return 0";
    redis.command(&["EVAL", script, "0"]).await.unwrap();
}

async fn steps(client: &Client, id: u64, nonce: &str, count: u64, ms: u64) -> Events {
    let arguments = json!({ "nonce": nonce, "count": count, "ms": ms });
    client.stream_patiently(id, "steps_once", &arguments).await
}

fn assert_own(messages: &[Value], id: u64, nonce: &str, count: u64) {
    let tokens = messages
        .iter()
        .filter_map(|message| message["params"]["progressToken"].as_u64());
    assert!(
        tokens.clone().all(|token| token == id),
        "{nonce} got another call's events: {messages:?}"
    );
    assert_eq!(
        progress_of(messages),
        (1..=count).collect::<Vec<_>>(),
        "{nonce}: {messages:?}"
    );
    let answer = messages.last().unwrap();
    assert_eq!(text_of(answer), nonce);
    assert_eq!(answer["id"], id);
}

fn executed(cluster: &Cluster) -> BTreeMap<String, usize> {
    let ledger = std::fs::read_to_string(cluster.ledger()).unwrap();
    let mut deeds = BTreeMap::new();
    for line in ledger.lines() {
        *deeds.entry(line.to_owned()).or_default() += 1;
    }
    deeds
}

/// Each call must get its own events and answer. `lose` may lose the writes since `before`.
async fn nothing_mixes(
    cluster: &Cluster,
    before: impl Future<Output = ()>,
    lose: impl Future<Output = ()>,
) -> (Client, Events) {
    let client = Client::open(cluster.url()).await;
    let mut known = steps(&client, 1, "known", 50, 100).await;
    let mut heard = BTreeMap::from([(1, vec![known.next().await.unwrap()])]);
    before.await;
    let mut ended = steps(&client, 2, "ended", 2, 10).await;
    assert_own(&ended.rest().await, 2, "ended", 2);
    let mut forgotten = Vec::new();
    for id in 3..6 {
        let nonce = format!("forgotten-{id}");
        let mut events = steps(&client, id, &nonce, 30, 100).await;
        heard.insert(id, vec![events.next().await.unwrap()]);
        forgotten.push((id, nonce, events));
    }
    let more = known.next().await.unwrap();
    heard.entry(1).or_default().push(more);
    lose.await;

    let mut anew = Vec::new();
    for id in 6..10 {
        let nonce = format!("anew-{id}");
        anew.push((id, nonce.clone(), steps(&client, id, &nonce, 5, 20).await));
    }
    for (id, nonce, mut events) in anew {
        assert_own(&events.rest().await, id, &nonce, 5);
    }
    let mut all = |id: u64, rest: Vec<Value>| {
        let mut messages = heard.remove(&id).unwrap();
        messages.extend(rest);
        messages
    };
    for (id, nonce, mut events) in forgotten {
        let messages = all(id, events.rest().await);
        assert_own(&messages, id, &nonce, 30);
    }
    assert_own(&all(1, known.rest().await), 1, "known", 50);
    assert!(executed(cluster).values().all(|count| *count == 1));
    (client, ended)
}

#[tokio::test]
async fn calls_do_not_mix_when_redis_forgets_its_newest_writes() {
    let cluster = start(small()).await;
    let redis = cluster.redis().unwrap();
    let (client, ended) = nothing_mixes(&cluster, remember(redis), forget(redis)).await;
    // Redis has forgotten this id, which must not lead to another stream's events.
    assert_eq!(client.resume_status(&ended.last_id).await, 400);

    owner(&cluster).await.kill().await.unwrap();
    client.echo_patiently(10).await;
    let mut last = within(steps(&client, 11, "last", 3, 10)).await;
    assert_own(&last.rest().await, 11, "last", 3);
}

async fn fails_over(newest: Newest) {
    let redis = RedisSentinel::start().await.unwrap();
    let cluster = start(small().store(&redis.url()).lease(LONG_LEASE)).await;
    let before = async {
        if newest == Newest::Lost {
            redis.cut_replica_off().await.unwrap();
        }
    };
    let lose = async { redis.fail_over(newest).await.unwrap() };
    let (client, ended) = nothing_mixes(&cluster, before, lose).await;
    let expected = match newest {
        Newest::Kept => 200,
        Newest::Lost => 400,
    };
    assert_eq!(client.resume_status(&ended.last_id).await, expected);
}

#[tokio::test]
async fn calls_do_not_mix_when_a_replica_that_lagged_behind_is_promoted() {
    fails_over(Newest::Lost).await;
}

#[tokio::test]
async fn calls_go_on_when_a_replica_that_has_everything_is_promoted() {
    fails_over(Newest::Kept).await;
}
