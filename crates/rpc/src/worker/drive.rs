use std::sync::Arc;

use futures::{StreamExt as _, stream};
use shoal_ports::{AskId, NodeInfo, ResourceUpdated};
use shoal_protocol::RawJson;
use tokio::sync::watch;
use tokio_stream::wrappers::WatchStream;
use tokio_util::sync::CancellationToken;
use tonic::Streaming;

use super::link::LinkToWorker;
use super::linked_call::{Arrived, LinkedCall};
use super::peer::WorkerPeer;
use crate::convert::catalog::{load_in, own_lists_in};
use crate::convert::node::node_out;
use crate::convert::outcome::{error_in, failure_in};
use crate::error::LinkError;
use crate::link::events::LinkEvents;
use crate::link::inbox::Inbox;
use crate::proto::worker::v1::node_frame::Frame as NodeKind;
use crate::proto::worker::v1::worker_frame::Frame;
use crate::proto::worker::v1::{self as wire, NodeFrame, WorkerFrame};

pub(super) type WorkerInbox = Inbox<Streaming<WorkerFrame>, WorkerFrame, NodeFrame>;

pub(super) struct WorkerDrive {
    pub(super) peer: Arc<WorkerPeer>,
    pub(super) link: Arc<LinkToWorker>,
    inbox: WorkerInbox,
    events: LinkEvents<Happened>,
}

enum Happened {
    GoesOn(Result<(), LinkError>),
    Nodes(Vec<NodeInfo>),
}

pub(super) enum WorkerNews {
    Announce(Box<wire::Announce>),
    Goodbye,
}

impl WorkerDrive {
    pub(super) fn new(
        peer: Arc<WorkerPeer>,
        link: Arc<LinkToWorker>,
        inbox: WorkerInbox,
        nodes: watch::Receiver<Vec<NodeInfo>>,
        closing: CancellationToken,
    ) -> Self {
        let ends = |by: CancellationToken, why| {
            let end = move |()| Happened::GoesOn(Err(LinkError::Left(why)));
            stream::once(by.cancelled_owned()).map(end)
        };
        let events = LinkEvents::new()
            .or(inbox.pulse(&peer.config).map(Happened::GoesOn))
            .or(WatchStream::from_changes(nodes).map(Happened::Nodes))
            .or(ends(
                link.replaced.clone(),
                "a newer link of this worker replaces it",
            ))
            .or(ends(closing, "the node is leaving"));
        Self {
            peer,
            link,
            inbox,
            events,
        }
    }

    pub(super) async fn next(&mut self) -> Result<WorkerNews, LinkError> {
        loop {
            // Receiving frames spends none of Tokio's task budget. Spend it here, so that a busy
            // link lets other tasks run.
            tokio::task::consume_budget().await;
            tokio::select! {
                biased;
                frame = self.inbox.next() => {
                    if let Some(said) = self.handle(frame?)? {
                        return Ok(said);
                    }
                }
                happened = self.events.next() => match happened {
                    Happened::GoesOn(goes_on) => {
                        goes_on?;
                        self.peer.tell_acknowledged();
                    }
                    Happened::Nodes(nodes) => self.tell_nodes(&nodes),
                },
            }
        }
    }

    pub(super) async fn hear_out(&mut self) {
        while let Ok(_) | Err(LinkError::Left(_)) = self.next().await {}
    }

    fn tell_nodes(&self, nodes: &[NodeInfo]) {
        let nodes = nodes.iter().map(node_out).collect();
        self.link.send(0, NodeKind::Nodes(wire::Nodes { nodes }));
    }

    fn handle(&mut self, frame: WorkerFrame) -> Result<Option<WorkerNews>, LinkError> {
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
            Frame::ResourceUpdated(said) => self.resource_updated(said)?,
            Frame::OwnLists(said) => {
                let own = &self.peer.own_lists;
                let now = own_lists_in(&own.borrow(), said);
                own.send_if_modified(|before| {
                    let changed = *before != now;
                    *before = now;
                    changed
                });
            }
            Frame::Announce(said) => return Ok(Some(WorkerNews::Announce(Box::new(said)))),
            Frame::Goodbye(wire::Goodbye {}) => return Ok(Some(WorkerNews::Goodbye)),
            Frame::Hello(_) => return Err(LinkError::protocol("a second hello")),
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
        let tells_stops = self.link.tells_stops();
        match flight.event(event, self.link.most_unread(), tells_stops) {
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

    fn resource_updated(&self, said: wire::ResourceUpdated) -> Result<(), LinkError> {
        let params = RawJson::parse_text(said.params)
            .map_err(|_| LinkError::protocol("a resource update whose parameters are not JSON"))?;
        let _ = self.peer.updates.send(ResourceUpdated {
            uri: said.uri,
            params,
        });
        Ok(())
    }
}
