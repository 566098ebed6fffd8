//! What a worker keeps for one node, whatever becomes of the link to it.

mod events;

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use futures::FutureExt as _;
use shoal_ports::{AskId, Call, CallFailure, CallId, Worker};
use shoal_protocol::{Outcome, TraceContext};
use tokio::time::Instant;

use super::Joining;
use super::chores::{Chores, Done};
use super::flight::{Flight, Opening};
use crate::error::TooLong;
use crate::link::outbox::Outbox;
use crate::link::ready::ReadySet;
use crate::link::versions::Peer;
use crate::proto::worker::v1::worker_frame::Frame;
use crate::proto::worker::v1::{self as wire, WorkerFrame};

/// Calls that have ended of which the fates of answers are remembered.
const FATES: usize = 256;

/// Who attaches to what.
pub(super) struct Attaching {
    pub(super) call: CallId,
    pub(super) after: u64,
    pub(super) trace: Option<TraceContext>,
}

/// What a worker keeps for one node.
pub(super) struct NodePeer {
    pub(super) joining: Arc<Joining>,
    pub(super) ready: ReadySet,
    /// The way to the node, while there is one.
    outbox: Option<Arc<Outbox<WorkerFrame>>>,
    credit: i64,
    /// The version that the present link speaks; 0 before the first.
    version: u32,
    /// Names what the node remembers of this worker.
    memory: u64,
    flights: HashMap<u64, Flight>,
    /// Flights of which nothing was said, and when it should be.
    quiet: VecDeque<(Instant, u64)>,
    /// What became of the answers to calls that have just ended.
    fates: VecDeque<(u64, Vec<(AskId, bool)>)>,
    pub(super) chores: Chores,
    /// Set when nothing may be started any more.
    pub(super) parted: bool,
}

impl NodePeer {
    pub(super) fn new(joining: Arc<Joining>) -> Self {
        Self {
            chores: Chores::new(Arc::clone(&joining)),
            joining,
            ready: ReadySet::default(),
            outbox: None,
            credit: 0,
            version: 0,
            memory: 0,
            flights: HashMap::new(),
            quiet: VecDeque::new(),
            fates: VecDeque::new(),
            parted: false,
        }
    }

    fn worker(&self) -> Arc<dyn Worker> {
        Arc::clone(&self.joining.worker)
    }

    /// Goes on with a new link.
    pub(super) fn link(&mut self, outbox: Arc<Outbox<WorkerFrame>>, peer: &Peer, memory: u64) {
        self.outbox = Some(outbox);
        self.memory = memory;
        self.credit = peer.credit;
        self.version = peer.version;
    }

    /// Goes on without a link: the flights wait.
    pub(super) fn unlink(&mut self) {
        self.outbox = None;
        self.quiet.clear();
        for flight in self.flights.values_mut() {
            flight.park();
        }
    }

    /// Keeps the named flights only.
    pub(super) fn keep(&mut self, flights: &[u64]) {
        let named: HashSet<u64> = flights.iter().copied().collect();
        self.flights.retain(|number, _| named.contains(number));
    }

    /// Forgets the node.
    pub(super) fn clear(&mut self) {
        self.flights.clear();
        self.fates.clear();
        self.chores.unsubscribe_all();
    }

    /// Whether nobody waits for anything.
    pub(super) fn is_idle(&self) -> bool {
        !self.flights.values().any(Flight::is_read)
    }

    /// Whether nothing runs any more that this node could ask for. A call that another node began is one: the
    /// session that it belongs to may be handed over to this one, and so is one that waits for its client, which may
    /// answer here.
    pub(super) fn is_done(&self) -> bool {
        self.is_idle() && self.joining.worker.open_calls() == 0
    }

    /// Runs a call; a known flight goes on from its beginning.
    pub(super) fn start(&mut self, number: u64, call: Call, accept: Instant) {
        if self.parted {
            let reason = "the worker has left".to_owned();
            self.refuse(number, CallFailure::NotExecuted { reason });
            return;
        }
        let (worker, id) = (self.worker(), call.id);
        let opening = move || -> Opening { Box::pin(async move { worker.start(call).await }) };
        self.open(number, id, 0, opening, accept);
    }

    /// Attaches to a call; a known flight goes on from there.
    pub(super) fn attach(&mut self, number: u64, said: Attaching, accept: Instant) {
        let worker = self.worker();
        let Attaching { call, after, trace } = said;
        let opening = move || attaching(worker, call, after, trace);
        self.open(number, call, after, opening, accept);
    }

    fn open(
        &mut self,
        number: u64,
        call: CallId,
        after: u64,
        opening: impl FnOnce() -> Opening,
        accept: Instant,
    ) {
        if let Some(flight) = self.flights.get_mut(&number) {
            if !flight.resume(after, self.credit, opening) {
                self.lost(number);
                return;
            }
        } else {
            let bell = self.ready.bell(number);
            let readers = self.joining.readers.of(self.memory, number);
            let flight = Flight::new(call, opening(), after, self.credit, bell, readers);
            flight.ring();
            self.flights.insert(number, flight);
        }
        self.quiet.push_back((accept, number));
    }

    /// Goes on with a flight whose events ended only because it was read by another link to the same node; `false` where
    /// they ended otherwise.
    fn goes_on(&mut self, number: u64) -> bool {
        let worker = self.worker();
        let flight = self.flights.get_mut(&number);
        let Some((flight, (call, after))) =
            flight.and_then(|flight| flight.goes_on().map(|from| (flight, from)))
        else {
            return false;
        };
        flight.reopen(attaching(worker, call, after, None));
        true
    }

    /// A flight that is open.
    pub(super) fn flight(&mut self, number: u64) -> Option<&mut Flight> {
        self.flights.get_mut(&number)
    }

    /// Drops a flight; its call goes on.
    pub(super) fn drop_flight(&mut self, number: u64) {
        self.flights.remove(&number);
    }

    /// When the next flight of which nothing was said should be accepted.
    pub(super) fn accept_due(&self) -> Option<Instant> {
        self.quiet.front().map(|(due, _)| *due)
    }

    /// Accepts the flights of which nothing was said for long enough.
    pub(super) fn accept(&mut self, now: Instant) {
        while self.accept_due().is_some_and(|due| due <= now) {
            let Some((_, number)) = self.quiet.pop_front() else {
                return;
            };
            if let Some(flight) = self.flights.get_mut(&number)
                && flight.is_to_be_accepted(true)
            {
                self.say(Frame::Accepted(wire::Accepted { flight: number }));
            }
        }
    }

    /// Passes an answer on, and acknowledges it once its fate is known.
    pub(super) fn answer(&mut self, number: u64, ask: AskId, outcome: Outcome) {
        let Some(flight) = self.flights.get_mut(&number) else {
            return self.answer_again(number, ask);
        };
        let Some(mut open) = flight.answer(ask, outcome) else {
            return;
        };
        // Nearly always known at once.
        match (&mut open).now_or_never() {
            Some(open) => self.done(Done::Answered(number, ask, open)),
            None => (self.chores).add(async move { Done::Answered(number, ask, open.await) }),
        }
    }

    /// Acknowledges an answer to a call that has ended since: its acknowledgement got lost with a link.
    fn answer_again(&mut self, flight: u64, ask: AskId) {
        let mut known = self.fates.iter().filter(|(known, ..)| *known == flight);
        let fates = known.next_back().map(|(_, fates)| fates.iter());
        if let Some((_, open)) = fates.and_then(|mut fates| fates.find(|(known, _)| *known == ask))
        {
            self.done(Done::Answered(flight, ask, *open));
        }
    }

    /// Drops a flight whose call has ended, except for what became of its answers.
    fn remember(&mut self, number: u64) {
        let fates = (self.flights.remove(&number)).map(Flight::into_fates);
        if let Some(fates) = fates.filter(|fates| !fates.is_empty()) {
            if self.fates.len() >= FATES {
                self.fates.pop_front();
            }
            self.fates.push_back((number, fates));
        }
    }

    /// Says what came of a chore.
    pub(super) fn done(&mut self, done: Done) {
        match done {
            Done::Answered(flight, ask, open) => {
                if let Some(known) = self.flights.get_mut(&flight) {
                    known.answered(ask, open);
                }
                let ask = ask.0;
                self.say(Frame::AnswerTaken(wire::AnswerTaken { flight, ask, open }));
            }
            Done::Subscribed(said) => self.say(Frame::Subscribed(said)),
            Done::Nothing => {}
        }
    }

    /// What goes on without a link: starts and chores. Never returns. Cancellation safe.
    pub(super) async fn idle(&mut self) {
        loop {
            tokio::select! {
                number = self.ready.next() => self.look(number),
                done = self.chores.next() => self.done(done),
            }
        }
    }

    /// Says something short that belongs to the order of its flight, if there is anybody to hear it.
    pub(super) fn say(&self, frame: Frame) {
        let flight = match &frame {
            Frame::Refused(said) => said.flight,
            Frame::Lost(said) => said.flight,
            Frame::Accepted(said) => said.flight,
            Frame::AnswerTaken(said) => said.flight,
            _ => 0,
        };
        if let Err(too_long) = self.push(flight, frame) {
            tracing::warn!(%too_long, "a frame was not sent");
        }
    }

    fn push(&self, flight: u64, frame: Frame) -> Result<(), TooLong> {
        match &self.outbox {
            Some(outbox) => outbox.push(flight, frame),
            None => Ok(()),
        }
    }
}

/// Attaches to a call.
fn attaching(
    worker: Arc<dyn Worker>,
    call: CallId,
    after: u64,
    trace: Option<TraceContext>,
) -> Opening {
    Box::pin(async move { worker.attach(call, after, trace.as_ref()).await })
}
