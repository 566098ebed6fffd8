use std::time::Duration;

use shoal_ports::{CellRate, Principal, QuotaCells, QuotaKey, QuotaSubject, Taken};

use crate::fixture::{config, connect};
use crate::server::{IN_MEMORY, Server};

pub(crate) async fn counts_cells(cells: &dyn QuotaCells) {
    let rate = hourly(3);
    for number in 0..24 {
        let somebody = key("some", &format!("principal {number}"));
        assert_eq!(cells.take(&somebody, rate, 1, 3).await, Ok(Taken::Cells(3)));
        cells.give_back(&somebody, rate, 1).await.unwrap();
        assert_eq!(cells.take(&somebody, rate, 1, 3).await, Ok(Taken::Cells(1)));
        let none = cells.take(&somebody, rate, 1, 1).await;
        assert!(matches!(none, Ok(Taken::Later(_))), "{none:?}");
        cells.give_back(&somebody, rate, 3).await.unwrap();
    }
}

fn key(quota: &str, principal: &str) -> QuotaKey {
    QuotaKey {
        quota: quota.into(),
        subject: QuotaSubject::Principal(Principal::new(principal)),
    }
}

fn hourly(burst: u32) -> CellRate {
    CellRate::new("1/h".parse().unwrap(), burst)
}

#[tokio::test]
async fn a_bucket_is_shared_and_lets_no_more_through_than_it_holds() {
    let server = Server::on_socket(&IN_MEMORY).await;
    let shared = config(&server.url());
    let mut edges = Vec::new();
    for _ in 0..3 {
        edges.push(connect(shared.clone()).await.0);
    }
    let (alice, rate) = (key("some", "alice"), hourly(100));
    let taking = edges.iter().flat_map(|edge| (0..20).map(move |_| edge));
    let taking = taking.map(|edge| edge.take(&alice, rate, 1, 7));
    let mut taken = 0;
    for came in futures::future::join_all(taking).await {
        if let Taken::Cells(cells) = came.unwrap() {
            taken += cells;
        }
    }
    assert_eq!(taken, 100);
    let Ok(Taken::Later(wait)) = edges[0].take(&alice, rate, 1, 7).await else {
        panic!("it is empty");
    };
    let hour = Duration::from_secs(3600);
    assert!(wait <= hour && wait > hour / 2, "{wait:?}");
    for other in [key("some", "bob"), key("another", "alice")] {
        assert_eq!(edges[1].take(&other, rate, 1, 1).await, Ok(Taken::Cells(1)));
    }
    let keys: Vec<String> = server.ask(&["KEYS", "*q:some*"]).await;
    for key in &keys {
        let life: i64 = server.ask(&["PTTL", key]).await;
        assert!(life > 0, "{key} {life}");
        assert!(!key.contains("alice"), "{key}");
    }
    assert_eq!(keys.len(), 2);
}

#[tokio::test]
async fn what_is_given_back_can_be_taken_again_and_no_more() {
    let server = Server::on_socket(&IN_MEMORY).await;
    let (redis, _) = connect(config(&server.url())).await;
    let (alice, rate) = (key("some", "alice"), hourly(10));
    assert_eq!(redis.take(&alice, rate, 1, 8).await, Ok(Taken::Cells(8)));
    let more = redis.take(&alice, rate, 3, 3).await;
    assert!(matches!(more, Ok(Taken::Later(_))), "{more:?}");
    redis.give_back(&alice, rate, 3).await.unwrap();
    assert_eq!(redis.take(&alice, rate, 3, 9).await, Ok(Taken::Cells(5)));
    redis.give_back(&alice, rate, 1_000).await.unwrap();
    assert_eq!(redis.take(&alice, rate, 1, 99).await, Ok(Taken::Cells(10)));
}

#[tokio::test]
async fn another_rate_holds_at_once() {
    let server = Server::on_socket(&IN_MEMORY).await;
    let (redis, _) = connect(config(&server.url())).await;
    let alice = key("some", "alice");
    let slow = hourly(100);
    assert_eq!(
        redis.take(&alice, slow, 100, 100).await,
        Ok(Taken::Cells(100))
    );
    let fast = CellRate::new("1000/s".parse().unwrap(), 1_000);
    let Ok(Taken::Later(wait)) = redis.take(&alice, fast, 1_000, 1_000).await else {
        panic!("it is empty");
    };
    assert!(wait <= Duration::from_secs(1), "{wait:?}");
}
