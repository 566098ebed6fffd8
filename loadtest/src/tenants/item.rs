use std::fmt;

use clap::ValueEnum;

use super::hostile::LONG_URI;
use shoal_testkit::cluster::Role::{self, Edge, Session, Worker};

/// An item of the table of shares, and how it is used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Item {
    /// Requests whose bodies never arrive.
    Requests,
    /// Large bodies that arrive slowly.
    RequestBytes,
    /// Calls of one minute that fill all workers.
    Places,
    /// More calls than the tenant may run at the same time.
    Queue,
    /// Large answers that the client does not read.
    AnswerBytes,
    /// Streams of calls that the client does not read.
    UnreadStreams,
    /// Legacy sessions that stay open.
    Sessions,
    /// Sessions that store as much as the limit allows.
    StoredBytes,
    /// Standalone streams (GET).
    Streams,
    /// WebSockets.
    Websockets,
    /// WebSockets that request large answers without reading them.
    UnreadWebsockets,
    /// Unanswered elicitation.
    Questions,
    /// `requestState` that the client never sends back.
    WaitingCalls,
    /// Resource subscriptions of sessions.
    Subscriptions,
    /// `subscriptions/listen` for many resources.
    Listen,
    /// Tasks whose results the client never requests.
    Tasks,
    /// Silent connections, before authentication.
    IdleConnections,
}

/// How to measure how much of an item is in use.
#[derive(Debug, Clone, Copy)]
pub(super) enum Gauge {
    /// The hostile tenant counts what it holds, in units of this size.
    Own(usize),
    /// A metric of the role's processes, including the good tenant's share.
    Metric(&'static str),
    /// The workers' queues, as an edge sees them.
    Queued,
}

impl Item {
    /// Returns the role whose processes hold the item, the settings whose product limits it in each of them, and its
    /// gauge.
    pub(super) fn share(self) -> (Role, &'static [&'static str], Gauge) {
        use Gauge::{Metric, Own, Queued};
        match self {
            Self::Requests => (Edge, &["limits.requests_per_principal"], Own(1)),
            // A request counts until its answer ends, also if it is streamed.
            Self::UnreadStreams => {
                let gauge = Metric("shoal_stream_open");
                (Edge, &["limits.requests_per_principal"], gauge)
            }
            Self::RequestBytes => {
                let gauge = Metric("shoal_http_bodies_size_bytes");
                (
                    Edge,
                    &["limits.bodies_in_flight_bytes_per_principal"],
                    gauge,
                )
            }
            Self::AnswerBytes | Self::UnreadWebsockets => {
                let gauge = Metric("shoal_http_answers_size_bytes");
                (Edge, &["limits.answers_waiting_bytes_per_principal"], gauge)
            }
            Self::Streams | Self::Websockets | Self::Listen => {
                (Edge, &["limits.streams_per_principal"], Own(1))
            }
            Self::IdleConnections => (Edge, &["limits.connections"], Own(1)),
            Self::Places => {
                let gauge = Metric("shoal_worker_running");
                (Worker, &["pools.demo.concurrency_per_principal"], gauge)
            }
            Self::Queue => (Worker, &["pools.demo.queue"], Queued),
            // In either era, a call of an rmcp tool that asks waits at its worker.
            Self::Questions | Self::WaitingCalls => {
                (Worker, &["pools.demo.asking_per_principal"], Own(1))
            }
            Self::Sessions | Self::Tasks => (Session, &["limits.sessions_per_principal"], Own(1)),
            Self::StoredBytes => (
                Session,
                &["limits.stored_bytes_per_principal"],
                Own(LONG_URI),
            ),
            Self::Subscriptions => {
                let limits = &[
                    "limits.sessions_per_principal",
                    "limits.subscriptions_per_session",
                ];
                (Session, limits, Own(1))
            }
        }
    }
}

impl fmt::Display for Item {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.to_possible_value();
        out.write_str(value.as_ref().map_or("", |value| value.get_name()))
    }
}
