use bytes::Bytes;
use shoal_ports::{EventStream, LazySender, StreamItem, lazy_channel};
use shoal_protocol::{EventId, StreamId};
use tokio::sync::watch;

#[derive(Clone)]
pub(crate) struct Log {
    length: watch::Sender<Length>,
}

#[derive(Clone, Copy, Default)]
struct Length {
    events: u64,
    passed: u64,
    finished: bool,
}

impl Default for Log {
    fn default() -> Self {
        Self {
            length: watch::Sender::new(Length::default()),
        }
    }
}

impl Log {
    pub(crate) fn append(&self, events: u64) {
        self.length.send_modify(|length| length.events += events);
    }

    pub(crate) fn pass(&self) {
        self.length.send_modify(|length| length.passed += 1);
    }

    pub(crate) fn finish(&self) {
        self.length.send_modify(|length| length.finished = true);
    }

    pub(crate) fn readers(&self) -> usize {
        self.length.receiver_count()
    }

    pub(crate) fn read(
        &self,
        cursor: EventId,
        moved: watch::Receiver<u64>,
        dead: watch::Receiver<bool>,
    ) -> EventStream {
        let (sender, items) = lazy_channel(2);
        let length = self.length.subscribe();
        tokio::spawn(read(sender, cursor.sequence, length, moved, dead));
        EventStream {
            items: items.into(),
            cursor,
        }
    }

    pub(crate) fn id(sequence: u64) -> EventId {
        EventId {
            epoch: 1,
            stream: StreamId(1),
            sequence,
        }
    }
}

async fn read(
    sender: LazySender<StreamItem>,
    mut at: u64,
    mut length: watch::Receiver<Length>,
    mut moved: watch::Receiver<u64>,
    mut dead: watch::Receiver<bool>,
) {
    let prime = StreamItem::Prime { id: Log::id(at) };
    if sender.send(prime).await.is_err() {
        return;
    }
    let mut told = length.borrow().passed;
    loop {
        let Length {
            events,
            passed,
            finished,
        } = *length.borrow_and_update();
        while at < events && !moved.has_changed().unwrap_or(true) && !*dead.borrow() {
            at += 1;
            let event = StreamItem::Event {
                id: Log::id(at),
                data: Bytes::from(at.to_string()),
            };
            if sender.send(event).await.is_err() {
                return;
            }
            tokio::task::yield_now().await;
        }
        while told < passed {
            told += 1;
            let data = Bytes::from_static(b"in passing");
            if sender.send(StreamItem::Passing { data }).await.is_err() {
                return;
            }
        }
        if finished && at == events {
            return;
        }
        tokio::select! {
            _ = length.changed() => {}
            _ = moved.changed() => break,
            _ = dead.changed() => break,
            () = sender.closed() => return,
        }
    }
    let _ = sender.send(StreamItem::Moved).await;
}
