//! What a node keeps of one worker, whatever becomes of the links to it.

mod links;
mod subscriptions;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use shoal_ports::{
    Announcement, AskId, BusEvent, CallFailure, LedgerNumber, SessionId, WorkerId, WorkerLoad,
};
use shoal_protocol::{Outcome, RpcError};
use tokio::sync::{broadcast, watch};
use tokio_util::sync::CancellationToken;

use self::subscriptions::Request;
use super::flight::{Begin, Flight, Holder, Left};
use super::gauge::Gauge;
use crate::LinkConfig;
use crate::convert::outcome::answer_out;
use crate::link::outbox::Outbox;
use crate::proto::worker::v1::node_frame::Frame;
use crate::proto::worker::v1::{Answer, AnswerTaken, Cancel, NodeFrame};

/// News that may wait for the dispatcher.
const NEWS: usize = 1024;
/// When to come back to a link that has too much to send.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// What a node keeps of one worker.
pub(super) struct WorkerPeer {
    pub(super) id: WorkerId,
    pub(super) incarnation: u64,
    pub(super) config: LinkConfig,
    pub(super) announcement: watch::Sender<Announcement>,
    pub(super) news: broadcast::Sender<BusEvent>,
    pub(super) gauge: Gauge,
    /// How far its ledger is, as it has said; `None` where it keeps no numbers.
    ledger: Mutex<Option<u64>>,
    /// Names this memory to the worker.
    memory: u64,
    table: Mutex<Table>,
}

struct Table {
    way: Way,
    /// How many links there have been.
    links: u64,
    flights: HashMap<u64, Arc<Flight>>,
    /// The last number given to a flight or a request.
    last: u64,
    requests: HashMap<u64, Request>,
    subscribed: BTreeSet<String>,
    /// What the worker has to be told when it is back.
    unsubscribed: BTreeSet<String>,
    ended_sessions: Vec<SessionId>,
}

/// The way to the worker.
enum Way {
    Up(Link),
    Down,
    /// It has said goodbye, and takes nothing new.
    Parting(Link),
    /// It will not come back.
    Gone,
}

struct Link {
    number: u64,
    outbox: Arc<Outbox<NodeFrame>>,
    stop: CancellationToken,
}

impl WorkerPeer {
    pub(super) fn new(id: WorkerId, incarnation: u64, config: LinkConfig) -> Arc<Self> {
        let nothing = Announcement {
            worker: id.clone(),
            pool: Arc::from(""),
            catalog: None,
            detail: None,
        };
        Arc::new(Self {
            id,
            incarnation,
            config,
            announcement: watch::Sender::new(nothing),
            news: broadcast::Sender::new(NEWS),
            gauge: Gauge::default(),
            ledger: Mutex::default(),
            memory: rand::random(),
            table: Mutex::new(Table {
                way: Way::Down,
                links: 0,
                flights: HashMap::new(),
                last: 0,
                requests: HashMap::new(),
                subscribed: BTreeSet::new(),
                unsubscribed: BTreeSet::new(),
                ended_sessions: Vec::new(),
            }),
        })
    }

    /// How busy the worker is; nothing can be run on one that is away.
    pub(super) fn load(&self) -> WorkerLoad {
        match self.table.lock().way {
            Way::Up(_) => self.gauge.read(),
            _ => WorkerLoad::default(),
        }
    }

    /// How far its ledger is, as far as this node has heard.
    pub(super) fn ledger(&self) -> Option<LedgerNumber> {
        let number = (*self.ledger.lock())?;
        Some(LedgerNumber {
            incarnation: self.incarnation,
            number,
        })
    }

    /// It says how far its ledger is.
    pub(super) fn counts(&self, number: Option<u64>) {
        *self.ledger.lock() = number;
    }

    /// Whether it may still come back.
    pub(super) fn is_gone(&self) -> bool {
        matches!(self.table.lock().way, Way::Gone)
    }

    /// Whether it is linked.
    pub(super) fn is_up(&self) -> bool {
        matches!(self.table.lock().way, Way::Up(_))
    }

    /// Opens a flight.
    ///
    /// # Errors
    /// When it cannot be sent now; then nothing was.
    pub(super) fn open(&self, begin: Begin) -> Result<Arc<Flight>, CallFailure> {
        // Only this worker will do: worth waiting for.
        let waits = match &begin {
            Begin::Start(call) => call.worker.as_ref() == Some(&self.id),
            Begin::Attach(..) => true,
        };
        let mut table = self.table.lock();
        let (link, outbox) = match &table.way {
            Way::Up(link) => (link.number, Some(Arc::clone(&link.outbox))),
            Way::Down if waits => (0, None),
            _ => return Err(self.unreachable(&begin)),
        };
        let start = matches!(begin, Begin::Start(_));
        if start && outbox.as_ref().is_some_and(|outbox| outbox.is_full()) {
            return Err(CallFailure::Overloaded {
                reason: format!("the link to worker {} is backed up", self.id),
                retry_after: RETRY_AFTER,
            });
        }
        table.last += 1;
        let flight = Arc::new(Flight::new(table.last, begin, link));
        table.flights.insert(flight.number, Arc::clone(&flight));
        drop(table);
        if start {
            self.gauge.started();
        }
        // Outside of the lock, since encoding a long call takes its time. Should the link be replaced
        // meanwhile, the flight has been sent on the new one and the old one takes nothing any more.
        if let Some(outbox) = outbox
            && let Some(frame) = flight.opening_frame()
            && let Err(too_long) = outbox.push(flight.number, frame)
        {
            self.forget(&flight);
            return Err(CallFailure::NotExecuted {
                reason: too_long.to_string(),
            });
        }
        Ok(flight)
    }

    fn unreachable(&self, begin: &Begin) -> CallFailure {
        let reason = format!("worker {} cannot be reached", self.id);
        match begin {
            Begin::Start(_) => CallFailure::NotExecuted { reason },
            Begin::Attach(..) => CallFailure::OutcomeUnknown { reason },
        }
    }

    /// Says something of a flight, if the worker is there; else it is said when it is back.
    pub(super) fn send(&self, flight: u64, frame: Frame) {
        if let Some(outbox) = self.outbox() {
            push(&outbox, flight, frame);
        }
    }

    /// Says something that need not keep its place.
    pub(super) fn send_now(&self, frame: Frame) {
        if let Some(outbox) = self.outbox() {
            outbox.push_now(frame);
        }
    }

    fn outbox(&self) -> Option<Arc<Outbox<NodeFrame>>> {
        match &self.table.lock().way {
            Way::Up(link) | Way::Parting(link) => Some(Arc::clone(&link.outbox)),
            Way::Down | Way::Gone => None,
        }
    }

    /// What the reader of a flight may be behind: what the worker was granted before and after a break,
    /// and the frame that went beyond it.
    pub(super) fn most_unread(&self) -> u64 {
        (self.config.credit.saturating_mul(2)).saturating_add(self.config.max_frame as u64)
    }

    /// A flight that is open.
    pub(super) fn flight(&self, number: u64) -> Option<Arc<Flight>> {
        self.table.lock().flights.get(&number).map(Arc::clone)
    }

    /// Drops a flight that is over.
    pub(super) fn forget(&self, flight: &Flight) {
        let known = self.table.lock().flights.remove(&flight.number).is_some();
        if known && flight.is_start {
            self.gauge.ended();
        }
    }

    /// Somebody lets go of a flight.
    pub(super) fn leave(&self, flight: &Flight, holder: Holder) {
        match flight.leave(holder) {
            Left::Held => {}
            Left::Steered => self.send(flight.number, flight.detach_frame(true)),
            // One that was cancelled while the worker is away still has to be, when it is back.
            Left::Empty if flight.is_cancelled() && !self.is_up() => {}
            Left::Empty => self.let_go(flight),
        }
    }

    /// Ends a flight that nobody holds.
    pub(super) fn let_go(&self, flight: &Flight) {
        self.send(flight.number, flight.detach_frame(false));
        self.forget(flight);
    }

    /// An answer has arrived.
    pub(super) fn answer_taken(&self, said: AnswerTaken) {
        if let Some(flight) = self.flight(said.flight)
            && flight.answer_taken(AskId(said.ask), said.open)
        {
            self.let_go(&flight);
        }
    }
}

/// Sends a frame. An answer that is too long becomes an error, since the tool waits for something, and a
/// cancel loses its reason.
fn push(outbox: &Outbox<NodeFrame>, flight: u64, frame: Frame) {
    let needed = match &frame {
        Frame::Answer(answer) => Some(Frame::Answer(Answer {
            outcome: None,
            ..*answer
        })),
        Frame::Cancel(_) => Some(Frame::Cancel(Cancel {
            flight,
            reason: String::new(),
        })),
        _ => None,
    };
    let Err(too_long) = outbox.push(flight, frame) else {
        return;
    };
    let Some(mut frame) = needed else {
        tracing::warn!(flight, %too_long, "a frame could not be sent to a worker");
        return;
    };
    if let Frame::Answer(answer) = &mut frame {
        let what = format!("the client's answer was not passed on: {too_long}");
        answer.outcome = Some(answer_out(Outcome::Error(RpcError::internal(what))));
    }
    let _ = outbox.push(flight, frame);
}
