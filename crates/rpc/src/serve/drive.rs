use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures::{StreamExt as _, stream};
use shoal_telemetry::metrics::LinkKind;
use tonic::Streaming;

use super::GatewayLinksInner;
use super::answering::Answering;
use super::served_request::{ServedRequest, ServedRequests};
use crate::convert::gateway::{event_id_in, open_in};
use crate::convert::post::{deliver_in, session_in};
use crate::convert::task::{adopt_in, ask_in};
use crate::convert::until_over::until_over_in;
use crate::error::LinkError;
use crate::link::events::LinkEvents;
use crate::link::inbox::Inbox;
use crate::link::meter::Up;
use crate::link::outbox::Outbox;
use crate::link::versions::{self, PeerHello};
use crate::proto::node::v1::edge_frame::Frame;
use crate::proto::node::v1::{EdgeFrame, SessionFrame};

pub(super) type EdgeInbox = Inbox<Streaming<EdgeFrame>, EdgeFrame, SessionFrame>;

pub(super) struct ServeDrive {
    shared: Arc<GatewayLinksInner>,
    from: String,
    version: u32,
    credit: i64,
    outbox: Arc<Outbox<SessionFrame>>,
    flights: Arc<ServedRequests>,
}

impl ServeDrive {
    pub(super) fn new(
        shared: Arc<GatewayLinksInner>,
        from: String,
        peer: &PeerHello,
        outbox: Arc<Outbox<SessionFrame>>,
    ) -> Self {
        shared.connected.fetch_add(1, Ordering::Relaxed);
        Self {
            shared,
            from,
            version: peer.version,
            credit: peer.credit,
            outbox,
            flights: Arc::default(),
        }
    }

    /// When the link ends, requests that a session has accepted run on. Other requests and streams
    /// are dropped.
    pub(super) async fn run(self, mut inbox: EdgeInbox) {
        let up = Up::new(LinkKind::Gateway);
        let closing = stream::once(self.shared.closing.clone().cancelled_owned());
        let mut events = LinkEvents::new()
            .or(inbox.pulse(&self.shared.config))
            .or(closing.map(|()| Err(LinkError::Left("the node is leaving"))));
        let ended = loop {
            tokio::task::consume_budget().await;
            let goes_on = tokio::select! {
                biased;
                frame = inbox.next() => frame.and_then(|frame| self.handle(frame)),
                goes_on = events.next() => goes_on,
            };
            if let Err(error) = goes_on {
                break error;
            }
        };
        tracing::info!(from = %self.from, reason = %ended, "the link of an edge ended");
        up.ended(&ended);
        self.outbox.close(Some(&ended.to_string()));
    }

    fn handle(&self, frame: EdgeFrame) -> Result<(), LinkError> {
        let Some(frame) = frame.frame else {
            return Ok(());
        };
        match frame {
            Frame::Deliver(said) => {
                let (flight, relayed) = (said.flight, said.relayed);
                let (to, post) = deliver_in(said)?;
                let Some(answering) = self.answer(flight)? else {
                    return Ok(());
                };
                // An older edge sends requests about tasks as messages to the task's session.
                if self.version < versions::TASKS && to.session.is_task() {
                    answering.of_other_release();
                    return Ok(());
                }
                let gateway = self.shared.gateways.of(relayed);
                let (once, request) = (post.is_bound(), post.body.request_id());
                // Boxed, because a Tokio task's future moves several times before it runs.
                tokio::spawn(Box::pin(async move {
                    let delivered = answering.wait(gateway.deliver(&to, post)).await;
                    answering.delivered(delivered, request, once).await;
                }));
            }
            Frame::Listen(said) => {
                let to = session_in(said.session, said.principal, said.trace, said.hinted);
                let Some(answering) = self.answer(said.flight)? else {
                    return Ok(());
                };
                let gateway = self.shared.gateways.of(said.relayed);
                let cursor = said.cursor.map(event_id_in);
                tokio::spawn(async move {
                    let stream = answering.wait(gateway.listen(&to, cursor)).await;
                    answering.listening(stream);
                });
            }
            Frame::Open(said) => {
                let Some(answering) = self.answer(said.flight)? else {
                    return Ok(());
                };
                let gateway = self.shared.gateways.of(said.relayed);
                let open = open_in(said)?;
                tokio::spawn(async move {
                    let opened = answering.wait(gateway.open(open)).await;
                    answering.opened(opened);
                });
            }
            Frame::CloseSession(said) => {
                let to = session_in(said.session, said.principal, said.trace, said.hinted);
                let Some(answering) = self.answer(said.flight)? else {
                    return Ok(());
                };
                let gateway = self.shared.gateways.of(said.relayed);
                tokio::spawn(async move {
                    let closed = answering.wait(gateway.close(&to)).await;
                    answering.closed(closed);
                });
            }
            Frame::Adopt(said) => {
                let (flight, relayed) = (said.flight, said.relayed);
                let (to, call) = adopt_in(*said)?;
                let Some(answering) = self.answer(flight)? else {
                    return Ok(());
                };
                let gateway = self.shared.gateways.of(relayed);
                tokio::spawn(Box::pin(async move {
                    let task = answering.wait(gateway.adopt(&to, call)).await;
                    answering.adopted(task);
                }));
            }
            Frame::AskTask(said) => {
                let (flight, relayed) = (said.flight, said.relayed);
                let (to, request) = ask_in(said)?;
                let Some(answering) = self.answer(flight)? else {
                    return Ok(());
                };
                let gateway = self.shared.gateways.of(relayed);
                tokio::spawn(Box::pin(async move {
                    let task = answering.wait(gateway.ask_task(&to, request)).await;
                    answering.task(task);
                }));
            }
            Frame::ListTasks(said) => {
                let session = session_in(said.session, said.principal, said.trace, said.hinted);
                let Some(answering) = self.answer(said.flight)? else {
                    return Ok(());
                };
                let gateway = self.shared.gateways.of(said.relayed);
                tokio::spawn(async move {
                    let made = answering.wait(gateway.tasks_of(&session)).await;
                    answering.session_tasks(made);
                });
            }
            Frame::UntilOver(said) => {
                let (flight, relayed) = (said.flight, said.relayed);
                let (to, requests) = until_over_in(said)?;
                let Some(answering) = self.answer(flight)? else {
                    return Ok(());
                };
                let gateway = self.shared.gateways.of(relayed);
                tokio::spawn(async move {
                    let over = answering.wait(gateway.until_over(&to, requests.as_deref()));
                    let over = over.await;
                    answering.over(over);
                });
            }
            Frame::Detach(said) => {
                if let Some(flight) = self.flights.get(said.flight) {
                    flight.detach();
                }
            }
            Frame::Credit(said) => {
                if let Some(flight) = self.flights.get(said.flight) {
                    flight.grant(said.bytes);
                }
            }
            Frame::Hello(_) => return Err(LinkError::protocol("a second hello")),
            Frame::Batch(_)
            | Frame::Fragment(_)
            | Frame::Ping(_)
            | Frame::Pong(_)
            | Frame::Close(_) => {}
        }
        Ok(())
    }

    fn answer(&self, number: u64) -> Result<Option<Answering>, LinkError> {
        let flight = Arc::new(ServedRequest::new(self.credit));
        match self.flights.0.lock().entry(number) {
            // The earlier flight stays until the link ends.
            Entry::Occupied(_) => return Err(LinkError::protocol("a flight number used twice")),
            Entry::Vacant(free) => free.insert(Arc::clone(&flight)),
        };
        let (outbox, flights) = (Arc::clone(&self.outbox), Arc::clone(&self.flights));
        let answering = Answering::new((number, self.version), flight, outbox, flights);
        Ok((!answering.refused()).then_some(answering))
    }
}

impl Drop for ServeDrive {
    fn drop(&mut self) {
        self.shared.connected.fetch_sub(1, Ordering::Relaxed);
        for flight in self.flights.0.lock().values() {
            flight.detach();
        }
    }
}
