//! The way to the owners of sessions, and how it outlives them.

use std::time::Duration;

use super::definition::{Kind, WAIT_SECONDS, definitions};
use super::instrument::{Counter, Factory, Histogram};

definitions! {
    WAITS = Kind::Histogram(WAIT_SECONDS), "shoal.route.wait.duration", "s",
        "How long requests and streams waited whose session lost its owner, until they went on at the next.", [];
    REATTACHED = Kind::Counter, "shoal.route.reattached", "{stream}",
        "Streams that went on at another owner, or after the way to it broke.", [];
    LOST = Kind::Counter, "shoal.route.lost_streams", "{stream}",
        "Streams that could not go on; their clients have to come back.", [];
    RELAYED = Kind::Counter, "shoal.route.relayed", "{request}",
        "Requests and streams that reached the owner by way of another node.", [];
    GIVEN_UP = Kind::Counter, "shoal.route.given_up", "{request}",
        "Requests and streams for which no owner was found in time.", [];
}

/// The way to the owners.
#[derive(Debug)]
pub struct RouteMetrics {
    waits: Histogram,
    reattached: Counter,
    lost: Counter,
    relayed: Counter,
    given_up: Counter,
}

impl RouteMetrics {
    pub(super) fn new(factory: &Factory) -> Self {
        Self {
            waits: factory.histogram(&WAITS),
            reattached: factory.counter(&REATTACHED),
            lost: factory.counter(&LOST),
            relayed: factory.counter(&RELAYED),
            given_up: factory.counter(&GIVEN_UP),
        }
    }

    /// A request or stream goes on at an owner, after a wait.
    pub fn waited(&self, duration: Duration) {
        self.waits.record(duration, || []);
    }

    /// A stream goes on.
    pub fn reattached(&self) {
        self.reattached.add(1, || []);
    }

    /// A stream cannot go on.
    pub fn lost_stream(&self) {
        self.lost.add(1, || []);
    }

    /// Something went by way of another node.
    pub fn relayed(&self) {
        self.relayed.add(1, || []);
    }

    /// No owner was found in time.
    pub fn given_up(&self) {
        self.given_up.add(1, || []);
    }
}
