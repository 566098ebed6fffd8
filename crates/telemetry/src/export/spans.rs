use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::{Notify, oneshot};
use tokio::time::{MissedTickBehavior, interval};

use super::{ExportStats, Sender};
use crate::config::Traces;
use crate::otlp::{self, Envelope};

/// Collectors accept 4 MiB per request.
const FULL: usize = 2 * 1024 * 1024;

#[derive(Debug)]
pub(crate) struct Spans {
    queue: Arc<SpanQueue>,
    ending: Mutex<Option<oneshot::Sender<EndSignal>>>,
}

type EndSignal = mpsc::Sender<()>;

#[derive(Debug)]
struct SpanQueue {
    waiting: Mutex<PendingSpans>,
    full: Notify,
    stats: Arc<ExportStats>,
    batch: usize,
}

#[derive(Debug, Default)]
struct PendingSpans {
    full: VecDeque<Batch>,
    open: Batch,
}

#[derive(Debug, Default)]
struct Batch {
    bytes: Vec<u8>,
    spans: usize,
}

impl Spans {
    pub(crate) fn start(
        traces: &Traces,
        envelope: Envelope,
        sender: Sender,
        stats: Arc<ExportStats>,
        runtime: &Handle,
    ) -> Self {
        let queue = Arc::new(SpanQueue {
            waiting: Mutex::default(),
            full: Notify::new(),
            stats,
            batch: traces.batch.min(traces.queue).max(1),
        });
        let (end, ending) = oneshot::channel();
        runtime.spawn(run(
            Arc::clone(&queue),
            envelope,
            sender,
            traces.delay,
            ending,
        ));
        Self {
            queue,
            ending: Mutex::new(Some(end)),
        }
    }

    /// If the queue is full, counts a loss.
    pub(crate) fn admit(&self) -> bool {
        self.queue.stats.admit()
    }

    pub(crate) fn add(&self, span: &[u8]) {
        let queue = &*self.queue;
        let mut waiting = queue.waiting.lock();
        let open = &mut waiting.open;
        otlp::append(&mut open.bytes, span);
        open.spans += 1;
        if open.spans >= queue.batch || open.bytes.len() >= FULL {
            let room = open.bytes.len();
            let next = Batch {
                bytes: Vec::with_capacity(room),
                spans: 0,
            };
            let batch = std::mem::replace(open, next);
            waiting.full.push_back(batch);
            drop(waiting);
            queue.full.notify_one();
        }
    }

    /// Blocks for at most `within`, after which unsent spans are lost.
    pub(crate) fn shut_down(&self, within: Duration) {
        self.queue.stats.close();
        let (ended, wait) = mpsc::channel();
        if let Some(end) = self.ending.lock().take()
            && end.send(ended).is_ok()
        {
            let _ = wait.recv_timeout(within);
        }
    }
}

async fn run(
    queue: Arc<SpanQueue>,
    envelope: Envelope,
    sender: Sender,
    delay: Duration,
    mut ending: oneshot::Receiver<EndSignal>,
) {
    let mut due = interval(delay.max(Duration::from_millis(1)));
    due.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let mut ended = None;
        let is_due = tokio::select! {
            () = queue.full.notified() => false,
            _ = due.tick() => true,
            it = &mut ending => {
                ended = it.ok();
                true
            }
        };
        if is_due {
            queue.close_batch();
        }
        while let Some(batch) = queue.next() {
            let (request, spans) = (envelope.request(&batch.bytes), batch.spans);
            drop(batch);
            sender.export(&queue.stats, request, spans).await;
        }
        if let Some(ended) = ended {
            let _ = ended.send(());
            return;
        }
    }
}

impl SpanQueue {
    fn close_batch(&self) {
        let mut waiting = self.waiting.lock();
        if waiting.open.spans > 0 {
            let batch = std::mem::take(&mut waiting.open);
            waiting.full.push_back(batch);
        }
    }

    fn next(&self) -> Option<Batch> {
        self.waiting.lock().full.pop_front()
    }
}
