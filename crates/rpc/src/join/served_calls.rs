mod events;

use std::collections::VecDeque;
use std::sync::Arc;

use shoal_ports::{Attach, Call, LedgerNumber};
use tokio::time::Instant;

use super::Joining;
use super::served_call::{OpeningCall, ServedCall};
use super::stopping::Stopping;
use crate::error::TooLong;
use crate::link::ByFlight;
use crate::link::outbox::Outbox;
use crate::link::ready::ReadySet;
use crate::link::versions::PeerHello;
use crate::proto::worker::v1::worker_frame::Frame;
use crate::proto::worker::v1::{self as wire, WorkerFrame};

pub(super) struct ServedCalls {
    pub(super) joining: Arc<Joining>,
    pub(super) ready: ReadySet,
    pub(super) stopping: Stopping,
    pub(super) outbox: Arc<Outbox<WorkerFrame>>,
    credit: i64,
    version: u32,
    flights: ByFlight<ServedCall>,
    /// Calls without an event, by the time to report them as accepted.
    quiet: VecDeque<(Instant, u64)>,
    /// The worker has said goodbye, so no call may start.
    pub(super) parted: bool,
}

impl ServedCalls {
    pub(super) fn new(
        joining: Arc<Joining>,
        outbox: Arc<Outbox<WorkerFrame>>,
        peer: &PeerHello,
    ) -> Self {
        Self {
            joining,
            ready: ReadySet::default(),
            stopping: Stopping::default(),
            outbox,
            credit: peer.credit,
            version: peer.version,
            flights: ByFlight::default(),
            quiet: VecDeque::new(),
            parted: false,
        }
    }

    pub(super) fn is_idle(&self) -> bool {
        !self.flights.values().any(ServedCall::is_read)
    }

    /// Other nodes' calls count, because their sessions may move to the linked node.
    pub(super) fn is_done(&self) -> bool {
        self.is_idle() && self.joining.worker.open_calls() == 0
    }

    pub(super) fn start(
        &mut self,
        number: u64,
        (call, ledger): (Call, Option<LedgerNumber>),
        accept: Instant,
    ) {
        let worker = Arc::clone(&self.joining.worker);
        let parted = self.parted;
        let opening = Box::pin(async move {
            match parted {
                true => worker.start_known(call, ledger).await,
                false => worker.start(call, ledger).await,
            }
        });
        self.open(number, opening, accept);
    }

    pub(super) fn attach(&mut self, number: u64, attach: Attach, accept: Instant) {
        let worker = Arc::clone(&self.joining.worker);
        let opening = Box::pin(async move { worker.attach(attach).await });
        self.open(number, opening, accept);
    }

    fn open(&mut self, number: u64, opening: OpeningCall, accept: Instant) {
        let flight = ServedCall::new(opening, self.credit, self.ready.bell(number));
        flight.ring();
        self.flights.insert(number, flight);
        self.quiet.push_back((accept, number));
    }

    pub(super) fn flight(&mut self, number: u64) -> Option<&mut ServedCall> {
        self.flights.get_mut(&number)
    }

    pub(super) fn drop_flight(&mut self, number: u64) {
        self.flights.remove(&number);
    }

    pub(super) fn stopped(&self, flight: u64) {
        let replaced = false;
        self.say(Frame::Lost(wire::Lost { flight, replaced }));
    }

    pub(super) fn accept_due(&self) -> Option<Instant> {
        self.quiet.front().map(|(due, _)| *due)
    }

    pub(super) fn accept(&mut self, now: Instant) {
        while self.accept_due().is_some_and(|due| due <= now) {
            let Some((_, number)) = self.quiet.pop_front() else {
                return;
            };
            self.accept_if(number, true);
        }
    }

    /// Polls the call's start first, because a node of an earlier release controls a call right
    /// after attaching.
    pub(super) fn steered(&mut self, number: u64) -> Option<&mut ServedCall> {
        let flight = self.flights.get_mut(&number)?;
        flight.begin();
        Some(flight)
    }

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
        self.outbox.push(flight, frame).map(drop)
    }

    fn accept_if(&mut self, number: u64, is_late: bool) {
        if let Some(flight) = self.flights.get_mut(&number)
            && flight.is_to_be_accepted(is_late)
        {
            let reader = flight.introduce();
            self.say(Frame::Accepted(wire::Accepted {
                flight: number,
                reader,
            }));
        }
    }
}
