use bytes::Bytes;
use futures::future::join_all;
use shoal_ports::{LogError, StoreError};
use shoal_protocol::EventId;

use crate::fixture::{append, begin, config, connect, session};
use crate::server::{IN_MEMORY, Server};

const MANY: usize = 200;

#[tokio::test]
async fn each_command_gets_its_own_reply() {
    let server = Server::on_socket(&IN_MEMORY).await;
    let (_, store) = connect(config(&server.url())).await;
    let sessions = join_all((0..MANY).map(|_| session(&store))).await;
    let _: redis::Value = server.ask(&["SCRIPT", "FLUSH"]).await;
    let streams = sessions.iter().map(|(id, epoch)| begin(&store, id, *epoch));
    let streams: Vec<EventId> = join_all(streams).await.into_iter().map(|it| it.0).collect();

    let texts: Vec<String> = (0..MANY).map(|at| format!("event {at}")).collect();
    let appends = sessions.iter().zip(&streams).zip(&texts).enumerate();
    let appends = appends.map(|(at, (((id, epoch), stream), text))| {
        let mut event = append(*stream, &[text.as_bytes()]);
        event.after.sequence += (at % 2) as u64;
        store.log.append(id, *epoch, event)
    });
    for (at, appended) in join_all(appends).await.into_iter().enumerate() {
        match at % 2 {
            0 => assert_eq!(appended.map(|appended| appended.last.sequence), Ok(1)),
            _ => assert_eq!(appended, Err(LogError::Store(StoreError::Forgotten))),
        }
    }

    let reads = sessions.iter().zip(&streams);
    let reads = reads.map(|((id, _), stream)| store.log.read(id, *stream, 9));
    for (at, page) in join_all(reads).await.into_iter().enumerate() {
        let events = page.unwrap().events.into_iter().map(|event| event.data);
        let expected = (at % 2 == 0).then(|| Bytes::from(texts[at].clone()));
        assert!(events.eq(expected), "stream {at}");
    }
}
