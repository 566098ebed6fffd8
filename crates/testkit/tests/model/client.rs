//! The steps of the client and of its edge, which is as volatile as the client's connection.

use super::state::{CallId, Cursor, Delivery, Event, NodeId, Phase, Request, RequestId, State};

impl Request {
    /// Whether the client has an answer of any kind.
    pub(crate) fn is_answered(&self) -> bool {
        self.phase == Phase::Rejected || self.has_answer()
    }

    /// Whether the client has read an answer on a stream.
    pub(crate) fn has_answer(&self) -> bool {
        self.seen.iter().any(|(_, event)| event.is_answer())
    }

    /// The client gets the event after its cursor.
    pub(crate) fn get(&mut self, event: Event) {
        let cursor = self.cursor.as_mut().expect("it reads a stream");
        cursor.position += 1;
        self.seen.push((*cursor, event));
    }

    /// The edge loses the node: it will deliver again.
    pub(crate) fn lose_node(&mut self) {
        self.phase = Phase::Waiting;
        self.attempt += 1;
    }
}

impl State {
    /// The edge sends a request to a node.
    pub(crate) fn deliver(&mut self, request: RequestId, node: NodeId) {
        let entry = &mut self.requests[usize::from(request)];
        entry.phase = Phase::Delivering(node);
        self.deliveries.push(Delivery {
            request,
            attempt: entry.attempt,
            node,
            unchecked: entry.attempt > 0,
            unconfirmed: false,
        });
        self.deliveries.sort_unstable();
    }

    /// The node has a stream for a delivery. An edge that has given up on that delivery never learns of it.
    pub(crate) fn answer_delivery(&mut self, delivery: Delivery, call: CallId) {
        self.deliveries.retain(|other| *other != delivery);
        let request = &mut self.requests[usize::from(delivery.request)];
        if !is_awaited(request, delivery) {
            return;
        }
        request.phase = Phase::Reading(delivery.node);
        if request.cursor.is_none_or(|cursor| cursor.stream != call) {
            request.cursor = Some(Cursor {
                stream: call,
                position: 0,
            });
        }
    }

    /// The node cannot own the session: the edge asks elsewhere.
    pub(crate) fn refuse(&mut self, delivery: Delivery) {
        self.deliveries.retain(|other| *other != delivery);
        let request = &mut self.requests[usize::from(delivery.request)];
        if is_awaited(request, delivery) {
            request.phase = Phase::Waiting;
        }
    }

    /// The client is told that its request is not executed.
    pub(crate) fn reject(&mut self, delivery: Delivery) {
        self.deliveries.retain(|other| *other != delivery);
        let request = &mut self.requests[usize::from(delivery.request)];
        if is_awaited(request, delivery) {
            request.phase = Phase::Rejected;
        }
    }

    /// The delivery was looked up, and nothing was found.
    pub(crate) fn check_off(&mut self, delivery: Delivery) {
        let entry = self.delivery_mut(delivery);
        entry.unchecked = false;
        self.deliveries.sort_unstable();
    }

    /// What was found, or not found, holds no longer; the node may have begun a call without learning so.
    pub(crate) fn recheck(&mut self, delivery: Delivery, unconfirmed: bool) {
        let entry = self.delivery_mut(delivery);
        entry.unchecked = entry.attempt > 0 || unconfirmed;
        entry.unconfirmed = unconfirmed;
        self.deliveries.sort_unstable();
    }

    fn delivery_mut(&mut self, delivery: Delivery) -> &mut Delivery {
        let mut deliveries = self.deliveries.iter_mut();
        let entry = deliveries.find(|other| **other == delivery);
        entry.expect("it is under way")
    }

    /// The event after the client's cursor, if the log has it.
    pub(crate) fn next_event(&self, request: RequestId) -> Option<Event> {
        let cursor = self.requests[usize::from(request)].cursor?;
        let events = &self.store.streams[usize::from(cursor.stream)].events;
        events.get(usize::from(cursor.position)).copied()
    }
}

fn is_awaited(request: &Request, delivery: Delivery) -> bool {
    request.phase == Phase::Delivering(delivery.node) && request.attempt == delivery.attempt
}
