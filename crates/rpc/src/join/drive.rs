mod telling;

use std::pin::Pin;
use std::sync::Arc;

use futures::{StreamExt as _, stream};
use shoal_ports::{
    Announcement, AskId, LedgerNumber, NodeInfo, OwnLists, ResourceUpdated, SessionId, WorkerLoad,
};
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior, Sleep, interval, sleep_until, timeout};
use tokio_stream::wrappers::errors::BroadcastStreamRecvError;
use tokio_stream::wrappers::{BroadcastStream, IntervalStream, WatchStream};
use tokio_util::sync::CancellationToken;

use super::chores::Chores;
use super::connect::NodeInbox;
use super::served_calls::ServedCalls;
use crate::LinkConfig;
use crate::convert::call::{attach_in, call_in, id_in};
use crate::convert::node::node_in;
use crate::convert::outcome::answer_in;
use crate::error::LinkError;
use crate::link::events::LinkEvents;
use crate::link::outbox::Outbox;
use crate::proto::worker::v1::node_frame::Frame;
use crate::proto::worker::v1::worker_frame::Frame as WorkerKind;
use crate::proto::worker::v1::{self as wire, NodeFrame, WorkerFrame};

pub(super) struct JoinDrive<'a> {
    pub(super) flights: ServedCalls,
    pub(super) chores: &'a mut Chores,
    pub(super) config: &'a LinkConfig,
    pub(super) nodes: &'a watch::Sender<Vec<NodeInfo>>,
    pub(super) stop: &'a CancellationToken,
    pub(super) leave: watch::Receiver<Option<Instant>>,
    pub(super) inbox: NodeInbox,
    pub(super) outbox: Arc<Outbox<WorkerFrame>>,
    announcement: watch::Receiver<Announcement>,
    own_lists: watch::Receiver<OwnLists>,
    told_own_lists: Option<OwnLists>,
    events: LinkEvents<JoinEvent>,
    reported: Option<(WorkerLoad, Option<LedgerNumber>)>,
    /// Reused, because a new timer may cost more than a call.
    accept: Pin<Box<Sleep>>,
    accepting: bool,
}

enum JoinEvent {
    Stop,
    Announce,
    Report,
    OwnLists,
    ResourceUpdated(Result<ResourceUpdated, BroadcastStreamRecvError>),
    Pulse(Result<(), LinkError>),
}

pub(super) enum JoinEnd {
    Broke(LinkError),
    Stopped,
    Left(bool),
}

impl<'a> JoinDrive<'a> {
    pub(super) fn new(
        flights: ServedCalls,
        chores: &'a mut Chores,
        config: &'a LinkConfig,
        nodes: &'a watch::Sender<Vec<NodeInfo>>,
        stop: &'a CancellationToken,
        leave: watch::Receiver<Option<Instant>>,
        inbox: NodeInbox,
    ) -> Self {
        let worker = &flights.joining.worker;
        let announcement = worker.announcement();
        let own_lists = worker.own_lists();
        let mut ticks = interval(config.load_interval);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let events = LinkEvents::new()
            .or(stream::once(stop.clone().cancelled_owned()).map(|()| JoinEvent::Stop))
            .or(IntervalStream::new(ticks).map(|_| JoinEvent::Report))
            .or(WatchStream::from_changes(announcement.clone()).map(|_| JoinEvent::Announce))
            .or(WatchStream::from_changes(leave.clone()).map(|_| JoinEvent::Announce))
            .or(WatchStream::from_changes(own_lists.clone()).map(|_| JoinEvent::OwnLists))
            .or(BroadcastStream::new(worker.resource_updates()).map(JoinEvent::ResourceUpdated))
            .or(inbox.pulse(config).map(JoinEvent::Pulse));
        Self {
            outbox: Arc::clone(&flights.outbox),
            flights,
            chores,
            config,
            nodes,
            stop,
            leave,
            inbox,
            announcement,
            own_lists,
            told_own_lists: None,
            events,
            reported: None,
            accept: Box::pin(sleep_until(Instant::now())),
            accepting: false,
        }
    }

    pub(super) async fn run(mut self) -> JoinEnd {
        // The load goes first, because a node refuses calls until it knows the worker's capacity.
        self.report();
        self.announce();
        self.tell_own_lists();
        loop {
            let leaving = *self.leave.borrow();
            if let Some(deadline) = leaving
                && (self.flights.is_done() || Instant::now() >= deadline)
            {
                return self.part().await;
            }
            if let Err(end) = self.step(leaving).await {
                return end;
            }
        }
    }

    async fn step(&mut self, leaving: Option<Instant>) -> Result<(), JoinEnd> {
        tokio::task::consume_budget().await;
        if self.stop.is_cancelled() {
            self.outbox.close(Some("the worker stops"));
            return Err(JoinEnd::Stopped);
        }
        let full = self.outbox.is_full();
        if let Some(due) = self.flights.accept_due()
            && !std::mem::replace(&mut self.accepting, true)
        {
            self.accept.as_mut().reset(due);
        }
        tokio::select! {
            biased;
            number = self.flights.ready.next(), if !full => self.flights.look(number),
            frame = self.inbox.next() => {
                let handled = frame.and_then(|frame| self.handle(frame));
                handled.map_err(JoinEnd::Broke)?;
            }
            () = self.outbox.room(), if full => {}
            said = self.chores.next() => {
                if let Some(said) = said {
                    self.flights.say(WorkerKind::Subscribed(said));
                }
            }
            flight = self.flights.stopping.next(), if !full => self.flights.stopped(flight),
            () = &mut self.accept, if self.accepting => {
                self.accepting = false;
                self.flights.accept(Instant::now());
            }
            happened = self.events.next() => self.happened(happened)?,
            () = until(leaving) => {}
        }
        Ok(())
    }

    fn happened(&mut self, happened: JoinEvent) -> Result<(), JoinEnd> {
        match happened {
            JoinEvent::Stop => {}
            JoinEvent::Announce => self.announce(),
            JoinEvent::Report => self.report(),
            JoinEvent::OwnLists => self.tell_own_lists(),
            JoinEvent::ResourceUpdated(update) => self.tell(update),
            JoinEvent::Pulse(lives) => return lives.map_err(JoinEnd::Broke),
        }
        Ok(())
    }

    fn handle(&mut self, frame: NodeFrame) -> Result<(), LinkError> {
        let Some(frame) = frame.frame else {
            return Ok(());
        };
        match frame {
            Frame::Start(said) => {
                let now = Instant::now();
                let call = said
                    .call
                    .ok_or_else(|| LinkError::protocol("a start of no call"))?;
                let accept = now + self.config.accept_after;
                (self.flights).start(said.flight, call_in(call, now)?, accept);
            }
            Frame::Attach(said) => {
                let accept = Instant::now() + self.config.accept_after;
                let flight = said.flight;
                self.flights.attach(flight, attach_in(said)?, accept);
            }
            Frame::Answer(said) => {
                let outcome = answer_in(said.outcome)?;
                if let Some(flight) = self.flights.steered(said.flight) {
                    flight.answer(AskId(said.ask), outcome);
                }
            }
            Frame::Credit(said) => {
                if let Some(flight) = self.flights.flight(said.flight) {
                    flight.grant(said.bytes);
                }
            }
            Frame::Cancel(said) => {
                if let Some(flight) = self.flights.steered(said.flight) {
                    flight.cancel(&said.reason);
                }
            }
            Frame::Detach(said) => self.detach(said),
            Frame::Nodes(said) => {
                let nodes = said.nodes.into_iter().map(node_in).collect();
                self.nodes.send_replace(nodes);
            }
            Frame::Subscribe(said) => self.chores.subscribe(said.request, said.uri),
            Frame::Unsubscribe(said) => self.chores.unsubscribe(said.uri),
            Frame::EndSession(said) => {
                self.chores.end_session(SessionId::new(said.session));
            }
            Frame::Acknowledge(said) => {
                for call in &said.calls {
                    self.flights.joining.worker.acknowledge(id_in(call)?);
                }
            }
            Frame::Welcome(_) => return Err(LinkError::protocol("a second welcome")),
            Frame::Batch(_)
            | Frame::Fragment(_)
            | Frame::Ping(_)
            | Frame::Pong(_)
            | Frame::Close(_) => {}
        }
        Ok(())
    }

    fn detach(&mut self, said: wire::Detach) {
        if !said.steering {
            self.flights.drop_flight(said.flight);
        } else if let Some(flight) = self.flights.flight(said.flight) {
            flight.stop_reading();
        }
    }

    async fn part(mut self) -> JoinEnd {
        let idle = self.flights.is_idle();
        self.flights.parted = true;
        self.outbox.push_now(WorkerKind::Goodbye(wire::Goodbye {}));
        // A failure is harmless: the node gives up unanswered calls.
        let _ = timeout(self.config.handshake_timeout, self.last_words()).await;
        self.outbox.close(None);
        JoinEnd::Left(idle)
    }

    /// The node must have read everything, because the worker's process may exit afterwards.
    async fn last_words(&mut self) {
        let end = loop {
            if let Err(end) = self.step(None).await {
                break end;
            }
        };
        if let JoinEnd::Broke(LinkError::Closed(_)) = end {
            self.outbox.close(None);
            tokio::select! {
                () = self.inbox.ended() => {}
                () = self.stop.cancelled() => {}
            }
        }
    }
}

async fn until(due: Option<Instant>) {
    match due {
        Some(due) => sleep_until(due).await,
        None => std::future::pending().await,
    }
}
