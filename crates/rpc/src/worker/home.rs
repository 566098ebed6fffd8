//! What a node keeps of one worker, whatever becomes of the links to it.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use shoal_ports::{Announcement, AskId, BusEvent, CallFailure, SessionId, WorkerId, WorkerLoad};
use shoal_protocol::{RawJson, RpcError};
use tokio::sync::{broadcast, oneshot, watch};
use tokio_util::sync::CancellationToken;

use super::flight::{Begin, Flight, Holder, Left};
use super::gauge::Gauge;
use crate::LinkConfig;
use crate::error::TooLong;
use crate::link::outbox::Outbox;
use crate::proto::types::v1::{Outcome, RpcError as WireError, outcome};
use crate::proto::worker::v1::node_frame::Frame;
use crate::proto::worker::v1::{self as wire, NodeFrame};

/// News that may wait for the dispatcher.
const NEWS: usize = 1024;
/// Ends of sessions that are remembered for a worker that is away.
const ENDED_SESSIONS: usize = 4096;
/// When to come back to a link that has too much to send.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// What a node keeps of one worker.
pub(super) struct Home {
    pub(super) id: WorkerId,
    pub(super) incarnation: u64,
    pub(super) config: LinkConfig,
    pub(super) announcement: watch::Sender<Announcement>,
    pub(super) news: broadcast::Sender<BusEvent>,
    pub(super) gauge: Gauge,
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
    /// It will not come back.
    Gone,
}

struct Link {
    number: u64,
    outbox: Arc<Outbox<NodeFrame>>,
    stop: CancellationToken,
}

struct Request {
    uri: String,
    done: oneshot::Sender<Result<(), RpcError>>,
}

impl Home {
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
            Way::Down | Way::Gone => WorkerLoad::default(),
        }
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
        let outbox = match &table.way {
            Way::Up(link) => Some(Arc::clone(&link.outbox)),
            Way::Down if waits => None,
            Way::Down | Way::Gone => return Err(self.unreachable(&begin)),
        };
        let start = matches!(begin, Begin::Start(_));
        if start && outbox.as_ref().is_some_and(|outbox| outbox.is_full()) {
            return Err(CallFailure::Overloaded {
                reason: format!("the link to worker {} is backed up", self.id),
                retry_after: RETRY_AFTER,
            });
        }
        table.last += 1;
        let flight = Arc::new(Flight::new(table.last, begin));
        table.flights.insert(flight.number, Arc::clone(&flight));
        drop(table);
        if start {
            self.gauge.started();
        }
        // Outside of the lock, since encoding a long call takes its time. Should the link be replaced
        // meanwhile, the flight has been sent on the new one and the old one takes nothing any more.
        if let (Some(outbox), Some(frame)) = (outbox, flight.opening_frame())
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
        // Only answers can be too long; they have a way of their own.
        let _ = self.try_send(flight, frame);
    }

    /// Says something that need not keep its place.
    pub(super) fn send_now(&self, frame: Frame) {
        if let Some(outbox) = self.outbox() {
            outbox.push_now(frame);
        }
    }

    /// Sends an answer; one that is too long becomes an error, since the tool waits for something.
    pub(super) fn send_answer(&self, flight: u64, frame: Frame) {
        let Frame::Answer(ref said) = frame else {
            return;
        };
        let ask = said.ask;
        if let Err(too_long) = self.try_send(flight, frame) {
            let error = WireError {
                code: shoal_protocol::code::INTERNAL_ERROR,
                message: format!("the client's answer was not passed on: {too_long}"),
                data: None,
            };
            let outcome = Some(Outcome {
                outcome: Some(outcome::Outcome::Error(error)),
            });
            let answer = wire::Answer {
                flight,
                ask,
                outcome,
            };
            self.send(flight, Frame::Answer(answer));
        }
    }

    fn try_send(&self, flight: u64, frame: Frame) -> Result<(), TooLong> {
        match self.outbox() {
            Some(outbox) => outbox.push(flight, frame),
            None => Ok(()),
        }
    }

    fn outbox(&self) -> Option<Arc<Outbox<NodeFrame>>> {
        match &self.table.lock().way {
            Way::Up(link) => Some(Arc::clone(&link.outbox)),
            Way::Down | Way::Gone => None,
        }
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
    pub(super) fn answer_taken(&self, said: wire::AnswerTaken) {
        if let Some(flight) = self.flight(said.flight)
            && flight.answer_taken(AskId(said.ask), said.open)
        {
            self.let_go(&flight);
        }
    }

    /// Asks for updates of a resource.
    pub(super) fn subscribe(&self, uri: &str) -> oneshot::Receiver<Result<(), RpcError>> {
        let (done, answer) = oneshot::channel();
        let mut table = self.table.lock();
        if let Way::Up(link) = &table.way {
            let outbox = Arc::clone(&link.outbox);
            table.last += 1;
            let (request, uri) = (table.last, uri.to_owned());
            let frame = wire::Subscribe {
                request,
                uri: uri.clone(),
            };
            table.requests.insert(request, Request { uri, done });
            outbox.push_now(Frame::Subscribe(frame));
        }
        answer
    }

    /// A subscription was answered.
    pub(super) fn subscribed(&self, request: u64, outcome: Result<(), RpcError>) {
        let mut table = self.table.lock();
        let Some(request) = table.requests.remove(&request) else {
            return;
        };
        if outcome.is_ok() {
            table.unsubscribed.remove(&request.uri);
            table.subscribed.insert(request.uri);
        }
        drop(table);
        let _ = request.done.send(outcome);
    }

    /// Ends a subscription.
    pub(super) fn unsubscribe(&self, uri: &str) {
        let uri = uri.to_owned();
        let mut table = self.table.lock();
        let known = table.subscribed.remove(&uri);
        match &table.way {
            Way::Up(link) => {
                let outbox = Arc::clone(&link.outbox);
                outbox.push_now(Frame::Unsubscribe(wire::Unsubscribe { uri }));
            }
            _ if known => {
                table.unsubscribed.insert(uri);
            }
            _ => {}
        }
    }

    /// A session is over.
    pub(super) fn end_session(&self, session: &SessionId) {
        let mut table = self.table.lock();
        match &table.way {
            Way::Up(link) => {
                let outbox = Arc::clone(&link.outbox);
                outbox.push_now(end_session_frame(session));
            }
            Way::Down if table.ended_sessions.len() < ENDED_SESSIONS => {
                table.ended_sessions.push(session.clone());
            }
            _ => {}
        }
    }

    /// Takes in a new link: welcomes the worker, and goes on with what was open. Replaces a link that
    /// is still there. The link's number; `None` when the worker was given up meanwhile.
    pub(super) fn join(
        &self,
        outbox: &Arc<Outbox<NodeFrame>>,
        stop: &CancellationToken,
        mut welcome: wire::Welcome,
    ) -> Option<u64> {
        self.broke(None);
        let mut table = self.table.lock();
        if matches!(table.way, Way::Gone) {
            return None;
        }
        let mut numbers: Vec<u64> = table.flights.keys().copied().collect();
        numbers.sort_unstable();
        welcome.memory = self.memory;
        welcome.flights.clone_from(&numbers);
        push(outbox, 0, Frame::Welcome(welcome));
        for number in numbers {
            let Some(flight) = table.flights.get(&number) else {
                continue;
            };
            let (frames, stays) = flight.resume();
            let is_start = flight.is_start;
            for frame in frames {
                push(outbox, number, frame);
            }
            if !stays && is_start {
                self.gauge.ended();
            }
            if !stays {
                table.flights.remove(&number);
            }
        }
        self.resume_subscriptions(&mut table, outbox);
        for session in std::mem::take(&mut table.ended_sessions) {
            outbox.push_now(end_session_frame(&session));
        }
        table.links += 1;
        let number = table.links;
        table.way = Way::Up(Link {
            number,
            outbox: Arc::clone(outbox),
            stop: stop.clone(),
        });
        Some(number)
    }

    fn resume_subscriptions(&self, table: &mut Table, outbox: &Arc<Outbox<NodeFrame>>) {
        for uri in std::mem::take(&mut table.unsubscribed) {
            outbox.push_now(Frame::Unsubscribe(wire::Unsubscribe { uri }));
        }
        for uri in &table.subscribed {
            table.last += 1;
            outbox.push_now(Frame::Subscribe(wire::Subscribe {
                request: table.last,
                uri: uri.clone(),
            }));
            // What it had to say meanwhile was said to nobody.
            let _ = self.news.send(BusEvent::ResourceUpdated {
                uri: uri.clone(),
                params: RawJson::of(&serde_json::json!({ "uri": uri })),
            });
        }
    }

    /// The link with this number (none: whichever) broke: calls that can be run elsewhere end. Whether
    /// it was the present one.
    pub(super) fn broke(&self, link: Option<u64>) -> bool {
        let mut table = self.table.lock();
        match &table.way {
            Way::Up(up) if link.is_none_or(|link| link == up.number) => {
                up.stop.cancel();
                table.way = Way::Down;
            }
            _ => return false,
        }
        table.requests.clear();
        let (ends, waits) = std::mem::take(&mut table.flights)
            .into_iter()
            .partition(|(_, flight)| flight.ends_with_link());
        table.flights = waits;
        drop(table);
        self.end(ends);
        true
    }

    /// Gives the worker up, if it has not come back since the link with this number (none: in any case).
    pub(super) fn give_up(&self, link: Option<u64>) -> bool {
        let mut table = self.table.lock();
        let current = match &table.way {
            Way::Up(up) => {
                if link.is_some() {
                    return false;
                }
                up.stop.cancel();
                true
            }
            Way::Down => link.is_none_or(|link| link == table.links),
            Way::Gone => false,
        };
        if !current {
            return false;
        }
        table.way = Way::Gone;
        table.requests.clear();
        let flights = std::mem::take(&mut table.flights);
        drop(table);
        self.end(flights);
        true
    }

    fn end(&self, flights: HashMap<u64, Arc<Flight>>) {
        for flight in flights.into_values() {
            flight.broken(self.id.as_str());
            if flight.is_start {
                self.gauge.ended();
            }
        }
    }
}

fn push(outbox: &Outbox<NodeFrame>, flight: u64, frame: Frame) {
    // What was sent once fits again, unless the worker takes less than before; then the flight waits
    // for an end that does not come, and its deadline ends it.
    if let Err(too_long) = outbox.push(flight, frame) {
        tracing::warn!(flight, %too_long, "a frame could not be sent again");
    }
}

fn end_session_frame(session: &SessionId) -> Frame {
    Frame::EndSession(wire::EndSession {
        session: session.to_string(),
    })
}
