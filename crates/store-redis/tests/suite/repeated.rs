use bytes::Bytes;
use shoal_ports::{Evidence, Renewal, StoreError};

use crate::fixture::{
    LONG, append, config, connect, ending, entry, new_session, node, opening, session,
};
use crate::server::{IN_MEMORY, Server};

#[tokio::test]
async fn steps_of_the_directory() {
    let server = Server::on_socket(&IN_MEMORY).await;
    let (_, store) = connect(config(&server.url())).await;
    let directory = &store.directory;
    let (id, epoch) = session(&store).await;
    assert_eq!(directory.create(new_session(&id, "a")).await, Ok(epoch));
    let other = directory.create(new_session(&id, "b")).await;
    assert_eq!(other, Err(StoreError::Held), "another's is not taken over");

    let claim = directory.claim(&id, &node("a")).await.unwrap();
    let again = directory.claim(&id, &node("a")).await.unwrap();
    assert!(again.epoch > claim.epoch);
    let epoch = again.epoch;
    for _ in 0..2 {
        let record = Bytes::from_static(b"two");
        directory
            .save(&id, epoch, record.clone(), LONG)
            .await
            .unwrap();
        directory.release(&id, epoch, record, LONG).await.unwrap();
    }
    for _ in 0..2 {
        directory.remove(&id, epoch).await.unwrap();
        directory.end_lease(&node("a")).await.unwrap();
    }
}

#[tokio::test]
async fn a_lapse_is_learnt_of_though_a_reply_was_lost() {
    let server = Server::on_socket(&IN_MEMORY).await;
    let config = config(&server.url());
    let (_, store) = connect(config.clone()).await;
    let (_, lost) = connect(config).await;
    let directory = &store.directory;
    let a = node("a");
    let renew = || directory.renew_lease(&a, LONG);
    assert_eq!(renew().await, Ok(Renewal::Begun));
    assert_eq!(renew().await, Ok(Renewal::Kept));
    let _: redis::Value = server.ask(&["FLUSHALL"]).await;
    lost.directory.renew_lease(&node("a"), LONG).await.unwrap();
    assert_eq!(renew().await, Ok(Renewal::Begun));
    assert_eq!(renew().await, Ok(Renewal::Kept));
}

#[tokio::test]
async fn a_contested_lease_is_learnt_of_though_a_reply_was_lost() {
    let server = Server::on_socket(&IN_MEMORY).await;
    let config = config(&server.url());
    let (_, store) = connect(config.clone()).await;
    let (_, lost) = connect(config).await;
    let (id, _) = session(&store).await;
    let evidence = Evidence {
        against: node("a"),
        lease: LONG,
    };
    let directory = &store.directory;
    directory
        .claim_on_evidence(&id, &node("b"), &evidence)
        .await
        .unwrap();
    lost.directory.renew_lease(&node("a"), LONG).await.unwrap();
    let a = node("a");
    let renew = || directory.renew_lease(&a, LONG);
    assert_eq!(renew().await, Ok(Renewal::Contested));
    assert_eq!(renew().await, Ok(Renewal::Kept));
}

#[tokio::test]
async fn steps_of_the_journal() {
    let server = Server::on_socket(&IN_MEMORY).await;
    let (_, store) = connect(config(&server.url())).await;
    let (id, epoch) = session(&store).await;
    let journal = &store.journal;
    let call = entry();
    let opening = opening(&call);
    let begun = journal
        .begin(&id, epoch, opening.clone())
        .await
        .unwrap()
        .id();
    let again = journal
        .begin(&id, epoch, opening.clone())
        .await
        .unwrap()
        .id();
    assert_eq!(begun, again);
    let one = append(begun, &[b"1"]);
    let appended = store.log.append(&id, epoch, one.clone()).await.unwrap();
    assert_eq!(store.log.append(&id, epoch, one).await.unwrap(), appended);
    let later = journal.begin(&id, epoch, opening).await.unwrap().id();
    assert_eq!(later, appended.last, "where the stream stands now");
    assert_eq!(journal.running(&id, epoch).await.unwrap().len(), 1);

    let end = ending(later, &[b"2"], call.call);
    let ended = store.log.append(&id, epoch, end.clone()).await.unwrap();
    assert_eq!(store.log.append(&id, epoch, end).await.unwrap(), ended);
    let other = crate::fixture::binding("other");
    for _ in 0..2 {
        journal.rebind(&id, epoch, call.call, &other).await.unwrap();
    }
    let page = store.log.read(&id, begun, 10).await.unwrap();
    assert_eq!(page.events.len(), 2, "what has ended is not taken back");
    assert!(page.finished);
}
