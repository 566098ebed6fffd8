//! How the links to a worker come and go.

use std::collections::HashMap;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::super::flight::Flight;
use super::{Link, Way, WorkerPeer, push};
use crate::link::outbox::Outbox;
use crate::proto::worker::v1::node_frame::Frame;
use crate::proto::worker::v1::{NodeFrame, Welcome};

impl WorkerPeer {
    /// Takes in a new link: welcomes the worker, and goes on with what was open. Replaces a link that
    /// is still there. The link's number; `None` when the worker was given up meanwhile.
    pub(in crate::worker) fn join(
        &self,
        outbox: &Arc<Outbox<NodeFrame>>,
        stop: &CancellationToken,
        mut welcome: Welcome,
    ) -> Option<u64> {
        self.broke(None);
        let mut table = self.table.lock();
        if !matches!(table.way, Way::Down) {
            return None;
        }
        table.links += 1;
        let link = table.links;
        let mut numbers: Vec<u64> = table.flights.keys().copied().collect();
        numbers.sort_unstable();
        welcome.memory = self.memory;
        welcome.flights.clone_from(&numbers);
        push(outbox, 0, Frame::Welcome(welcome));
        for number in numbers {
            let Some(flight) = table.flights.get(&number) else {
                continue;
            };
            let (frames, stays) = flight.resume(link);
            for frame in frames {
                push(outbox, number, frame);
            }
            if !stays
                && let Some(left) = table.flights.remove(&number)
                && left.is_start
            {
                self.gauge.ended();
            }
        }
        self.resume_subscriptions(&mut table, outbox);
        Self::resume_ends(&mut table, outbox);
        table.way = Way::Up(Link {
            number: link,
            outbox: Arc::clone(outbox),
            stop: stop.clone(),
        });
        Some(link)
    }

    /// The link with this number (none: whichever) broke: calls that can be run elsewhere end. Whether
    /// it was the present one.
    pub(in crate::worker) fn broke(&self, link: Option<u64>) -> bool {
        let mut table = self.table.lock();
        match &table.way {
            Way::Up(up) if link.is_none_or(|link| link == up.number) => {
                up.stop.cancel();
                table.way = Way::Down;
            }
            _ => return false,
        }
        table.end_requests();
        let (ends, waits) = std::mem::take(&mut table.flights)
            .into_iter()
            .partition(|(_, flight)| flight.ends_with_link());
        table.flights = waits;
        drop(table);
        self.end(ends);
        true
    }

    /// Gives the worker up, if it has not come back since the link with this number (none: in any case).
    pub(in crate::worker) fn give_up(&self, link: Option<u64>) -> bool {
        let mut table = self.table.lock();
        let current = match &table.way {
            Way::Up(up) | Way::Parting(up) => {
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

    /// The worker has said goodbye: nothing new is started on it.
    pub(in crate::worker) fn part(&self) {
        let mut table = self.table.lock();
        table.way = match std::mem::replace(&mut table.way, Way::Gone) {
            Way::Up(link) => Way::Parting(link),
            other => other,
        };
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
