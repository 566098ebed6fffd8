//! One link of a worker, as its node reads it.

use std::sync::Arc;

use shoal_ports::{AskId, BusEvent, NodeInfo};
use shoal_protocol::RawJson;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tonic::Streaming;

use super::link::Link;
use super::linked_call::{Arrived, LinkedCall};
use super::peer::WorkerPeer;
use crate::convert::catalog::load_in;
use crate::convert::node::node_out;
use crate::convert::outcome::{error_in, failure_in};
use crate::error::LinkError;
use crate::link::clocks;
use crate::link::frame::{Frame as _, LinkFrame};
use crate::link::inbox::Inbox;
use crate::link::pulse::{Beat, Pulse};
use crate::proto::worker::v1::node_frame::Frame as NodeKind;
use crate::proto::worker::v1::worker_frame::Frame;
use crate::proto::worker::v1::{self as wire, NodeFrame, WorkerFrame};

pub(super) type WorkerInbox = Inbox<Streaming<WorkerFrame>, WorkerFrame, NodeFrame>;

/// A link of a worker.
pub(super) struct Drive {
    pub(super) peer: Arc<WorkerPeer>,
    pub(super) link: Arc<Link>,
    pub(super) inbox: WorkerInbox,
    pub(super) nodes: watch::Receiver<Vec<NodeInfo>>,
    /// Ends all links.
    pub(super) closing: CancellationToken,
}

/// What a worker says that concerns more than its peer.
pub(super) enum Said {
    Announce(Box<wire::Announce>),
    Goodbye,
}

impl Drive {
    /// Reads until the worker says something of consequence.
    ///
    /// # Errors
    /// Why the link ended.
    pub(super) async fn next(&mut self, pulse: &mut Pulse) -> Result<Said, LinkError> {
        loop {
            // What arrives is not counted against the task's budget by itself.
            tokio::task::consume_budget().await;
            tokio::select! {
                biased;
                frame = self.inbox.next() => {
                    if let Some(said) = self.handle(frame?)? {
                        return Ok(said);
                    }
                }
                () = pulse.due() => match pulse.beat(self.inbox.take_heard()) {
                    Beat::Alive => self.peer.tell_acknowledged(),
                    Beat::Ask => self.link.outbox.push_now(NodeFrame::of_link(LinkFrame::Ping(clocks::now_us()))),
                    Beat::Dead => return Err(LinkError::Silent),
                },
                Ok(()) = self.nodes.changed() => self.tell_nodes(),
                () = self.link.replaced.cancelled() => {
                    return Err(LinkError::Left("a newer link of this worker replaces it"));
                }
                () = self.closing.cancelled() => {
                    return Err(LinkError::Left("the node is leaving"));
                }
            }
        }
    }

    fn tell_nodes(&mut self) {
        let nodes = self
            .nodes
            .borrow_and_update()
            .iter()
            .map(node_out)
            .collect();
        self.link.send(0, NodeKind::Nodes(wire::Nodes { nodes }));
    }

    fn handle(&mut self, frame: WorkerFrame) -> Result<Option<Said>, LinkError> {
        let Some(frame) = frame.frame else {
            return Ok(None);
        };
        match frame {
            Frame::Event(event) => self.event(event)?,
            Frame::Accepted(said) => {
                if let Some(flight) = self.link.flight(said.flight) {
                    flight.accepted(said.reader);
                }
            }
            Frame::Refused(said) => {
                self.end(said.flight, |flight| {
                    flight.refused(failure_in(said.failure))
                });
            }
            Frame::Lost(said) => self.end(said.flight, |flight| flight.broken(said.replaced)),
            Frame::AnswerTaken(said) => {
                if let Some(flight) = self.link.flight(said.flight) {
                    flight.answer_taken(AskId(said.ask), said.open);
                }
            }
            Frame::Load(load) => {
                self.peer.counts(load.ledger);
                self.peer.reports(load_in(load));
                self.peer.tell_acknowledged();
            }
            Frame::Subscribed(said) => {
                let outcome = said.error.map_or(Ok(()), |error| Err(error_in(error)));
                self.peer.subscribed(said.request, outcome);
            }
            Frame::News(news) => self.news(news)?,
            Frame::Announce(said) => return Ok(Some(Said::Announce(Box::new(said)))),
            Frame::Goodbye(wire::Goodbye {}) => return Ok(Some(Said::Goodbye)),
            Frame::Hello(_) => return Err(LinkError::protocol("a second hello")),
            // The link has seen to its own before.
            Frame::Batch(_)
            | Frame::Fragment(_)
            | Frame::Ping(_)
            | Frame::Pong(_)
            | Frame::Close(_) => {}
        }
        Ok(None)
    }

    fn event(&self, event: wire::Event) -> Result<(), LinkError> {
        let number = event.flight;
        let Some(flight) = self.link.flight(number) else {
            return Ok(());
        };
        match flight.event(event, self.link.most_unread()) {
            Arrived::More => {}
            Arrived::Last => self.link.forget(&flight),
            Arrived::TooMuch => {
                return Err(LinkError::protocol(format!(
                    "more on flight {number} than its credit allows"
                )));
            }
        }
        Ok(())
    }

    fn end(&self, flight: u64, how: impl FnOnce(&LinkedCall)) {
        if let Some(flight) = self.link.flight(flight) {
            how(&flight);
            self.link.forget(&flight);
        }
    }

    fn news(&self, news: wire::News) -> Result<(), LinkError> {
        let params = RawJson::parse_text(news.params)
            .map_err(|_| LinkError::protocol("news whose parameters are not JSON"))?;
        // Nobody listens before the worker is taken in.
        let _ = self.peer.news.send(BusEvent::ResourceUpdated {
            uri: news.uri,
            params,
        });
        Ok(())
    }
}
