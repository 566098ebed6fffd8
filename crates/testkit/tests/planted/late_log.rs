use std::sync::Arc;

use async_trait::async_trait;
use parking_lot::Mutex;
use shoal_ports::{Append, Appended, Epoch, EventLog, LogError, Page, SessionId};
use shoal_protocol::{EventId, StreamId};

/// Appends wait in their node, and are lost with the node.
pub(crate) struct LateLog {
    inner: Arc<dyn EventLog>,
    waiting: Mutex<Vec<(SessionId, Epoch, Append)>>,
}

impl LateLog {
    pub(crate) fn before(inner: Arc<dyn EventLog>) -> Arc<Self> {
        Arc::new(Self {
            inner,
            waiting: Mutex::default(),
        })
    }

    pub(crate) async fn catch_up(&self) {
        let waiting = std::mem::take(&mut *self.waiting.lock());
        for (session, epoch, append) in waiting {
            self.inner.append(&session, epoch, append).await.unwrap();
        }
    }
}

#[async_trait]
impl EventLog for LateLog {
    async fn append(
        &self,
        session: &SessionId,
        epoch: Epoch,
        append: Append,
    ) -> Result<Appended, LogError> {
        let stood = self.inner.last(session, append.after.stream).await?;
        let appended = Appended {
            last: EventId {
                sequence: append.after.sequence + append.events.len() as u64,
                ..stood
            },
            finished: append.progress.is_some_and(|progress| progress.ended),
            kept: 0,
        };
        let mut waiting = self.waiting.lock();
        waiting.push((session.clone(), epoch, append));
        Ok(appended)
    }

    async fn last(&self, session: &SessionId, stream: StreamId) -> Result<EventId, LogError> {
        self.inner.last(session, stream).await
    }

    async fn oldest(&self, session: &SessionId, stream: StreamId) -> Result<EventId, LogError> {
        self.inner.oldest(session, stream).await
    }

    async fn read(
        &self,
        session: &SessionId,
        cursor: EventId,
        limit: usize,
    ) -> Result<Page, LogError> {
        self.inner.read(session, cursor, limit).await
    }
}
