//! One process and a cluster must answer the same odd requests in the same way. A difference
//! reveals a check that only one of them makes.
//!
//! Requests are random with a fixed seed. `TEST_DIFFERENTIAL_REQUESTS` sets their number and picks a new seed, which is
//! printed; `TEST_DIFFERENTIAL_SEED` repeats a seed.
//!
//! Allowed differences: ids, retry times, the order of answers to a batch, and whether a slow answer is JSON or a stream.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a failed step is the report"
)]

#[path = "differential/answer.rs"]
mod answer;
#[path = "differential/body.rs"]
mod body;
#[path = "differential/conversation.rs"]
mod conversation;
#[path = "differential/headers.rs"]
mod headers;
#[path = "differential/pick.rs"]
mod pick;
#[path = "differential/shape.rs"]
mod shape;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use futures::StreamExt as _;
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use shoal_testkit::cluster::{Builder, Cluster};

use crate::conversation::Conversation;

const REQUESTS: usize = 2_400;
const SEED: u64 = 20_260_728;
const LENGTH: usize = 25;
const AT_ONCE: usize = 6;
const SHOWN: usize = 12;

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var_os(variable)?;
    Some(text.to_str().unwrap().parse().unwrap())
}

fn address(cluster: &Cluster) -> SocketAddr {
    let url = cluster.edges()[0].mcp_url().unwrap();
    let (_, rest) = url.split_once("//").unwrap();
    rest.split('/').next().unwrap().parse().unwrap()
}

fn like(builder: Builder) -> Builder {
    builder
        .setting("limits.body_bytes", "65536")
        .setting("limits.bodies_in_flight_bytes", "16777216")
        // A long lease, so that a busy machine does not cause differences.
        .lease(Duration::from_secs(60))
        .setting("redis.connect_timeout", "20s")
        .setting("redis.response_timeout", "20s")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_process_and_a_cluster_answer_the_same() {
    let requests = number("TEST_DIFFERENTIAL_REQUESTS");
    let fresh = requests.map(|_| rand::random::<u64>());
    let seed = number("TEST_DIFFERENTIAL_SEED").or(fresh).unwrap_or(SEED);
    let count = usize::try_from(requests.unwrap_or(REQUESTS as u64)).unwrap();
    eprintln!("TEST_DIFFERENTIAL_SEED={seed}: {count} requests");

    let (one, many) = tokio::join!(
        like(Cluster::builder().one_process()).start(),
        like(Cluster::builder()).start(),
    );
    let (one, many) = (one.unwrap(), many.unwrap());
    let servers = [address(&one), address(&many)];

    let conversations = (0..count.div_ceil(LENGTH) as u64).map(|number| {
        let random = StdRng::seed_from_u64(seed.wrapping_add(number));
        Conversation::new(number, random, servers).hold(LENGTH)
    });
    let found: Vec<_> = futures::stream::iter(conversations)
        .buffer_unordered(AT_ONCE)
        .collect()
        .await;
    let mut seen = BTreeMap::<u16, usize>::new();
    for status in found.iter().flat_map(|found| &found.statuses) {
        *seen.entry(*status).or_default() += 1;
    }
    eprintln!("answers by status: {seen:?}");
    let differences: Vec<_> = found
        .into_iter()
        .flat_map(|found| found.differences)
        .collect();
    for difference in differences.iter().take(SHOWN) {
        eprintln!("{difference}\n");
    }
    assert!(
        differences.is_empty(),
        "{} of {count} requests were answered differently (TEST_DIFFERENTIAL_SEED={seed})",
        differences.len()
    );
    // The comparison cannot see differences in answers that did not come.
    for status in [200, 202, 204, 400, 403, 404, 405, 406, 413, 415] {
        assert!(
            seen.contains_key(&status),
            "nothing was answered with {status}"
        );
    }
    tokio::join!(one.end(), many.end());
}
