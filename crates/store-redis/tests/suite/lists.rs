use std::time::Duration;

use shoal_ports::{Principal, SessionId, Store};

use crate::fixture::{LONG, config, connect, eventually, node};
use crate::server::{IN_MEMORY, Server};

pub(crate) async fn keeps_lists(store: &Store) {
    let directory = &store.directory;
    let listed = |at: usize| {
        (
            SessionId::new(format!("t{at}")),
            Principal::new(format!("p {at}")),
        )
    };
    let all: Vec<_> = (0..5).map(listed).collect();
    assert!(directory.listing().await.unwrap().is_empty());
    assert!(directory.enlisted(&node("a"), 10).await.unwrap().is_empty());
    directory.enlist(&node("a"), &all[..4], LONG).await.unwrap();
    directory.enlist(&node("a"), &all[3..], LONG).await.unwrap();
    assert_eq!(directory.listing().await.unwrap(), [node("a")]);

    let some = directory.enlisted(&node("a"), 3).await.unwrap();
    assert!(
        some.len() == 3 && some.iter().all(|one| all.contains(one)),
        "{some:?}"
    );
    let over: Vec<_> = all[1..]
        .iter()
        .map(|(session, _)| session.clone())
        .collect();
    for _ in 0..2 {
        directory.delist(&node("a"), &over).await.unwrap();
        assert_eq!(directory.enlisted(&node("a"), 9).await.unwrap(), all[..1]);
    }
    let last = [all[0].0.clone()];
    directory.delist(&node("a"), &last).await.unwrap();
    assert!(directory.enlisted(&node("a"), 9).await.unwrap().is_empty());
    directory.forget_list(&node("a")).await.unwrap();
    assert!(directory.listing().await.unwrap().is_empty());
}

#[tokio::test]
async fn a_list_outlives_its_node_but_not_its_time() {
    let server = Server::on_socket(&IN_MEMORY).await;
    let (_, store) = connect(config(&server.url())).await;
    keeps_lists(&store).await;
    let task = [(SessionId::new("t"), Principal::new("p"))];
    let short = Duration::from_millis(50);
    store
        .directory
        .enlist(&node("a"), &task, short)
        .await
        .unwrap();
    eventually("the list has expired", || async {
        store
            .directory
            .enlisted(&node("a"), 9)
            .await
            .unwrap()
            .is_empty()
            && store.directory.listing().await.unwrap().is_empty()
    })
    .await;
}
