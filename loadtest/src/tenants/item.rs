use clap::ValueEnum;

use crate::servers::cluster::member::Role;

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

#[derive(Debug, Clone, Copy)]
pub(super) enum Gauge {
    /// The hostile tenant counts what it holds.
    Own,
    /// A metric of a role's processes, including the good tenant's share.
    Metric(Role, &'static str),
    /// The workers' queues, as an edge sees them.
    Queued,
}

impl Item {
    pub(super) fn name(self) -> String {
        let value = self.to_possible_value();
        value
            .map(|value| value.get_name().to_owned())
            .unwrap_or_default()
    }

    /// Returns the settings whose product limits the resource in each process.
    pub(super) fn limits(self) -> &'static [&'static str] {
        match self {
            // A request counts until its answer ends, also if it is streamed.
            Self::Requests | Self::UnreadStreams => &["limits.requests_per_principal"],
            Self::RequestBytes => &["limits.bodies_in_flight_bytes_per_principal"],
            Self::Places => &["pools.demo.concurrency_per_principal"],
            Self::Queue => &["pools.demo.queue"],
            Self::AnswerBytes | Self::UnreadWebsockets => {
                &["limits.answers_waiting_bytes_per_principal"]
            }
            Self::Streams | Self::Websockets | Self::Listen => &["limits.streams_per_principal"],
            Self::Sessions | Self::Tasks => &["limits.sessions_per_principal"],
            Self::StoredBytes => &["limits.stored_bytes_per_principal"],
            // In either era, a call of an rmcp tool that asks waits at its worker.
            Self::Questions | Self::WaitingCalls => &["pools.demo.asking_per_principal"],
            Self::Subscriptions => &[
                "limits.sessions_per_principal",
                "limits.subscriptions_per_session",
            ],
            Self::IdleConnections => &["limits.connections"],
        }
    }

    pub(super) fn of(self) -> Role {
        match self {
            Self::Places | Self::Queue | Self::Questions | Self::WaitingCalls => Role::Worker,
            Self::Sessions | Self::Tasks | Self::StoredBytes | Self::Subscriptions => Role::Session,
            _ => Role::Edge,
        }
    }

    pub(super) fn gauge(self) -> Gauge {
        match self {
            Self::Places => Gauge::Metric(Role::Worker, "shoal_worker_running"),
            Self::Queue => Gauge::Queued,
            Self::UnreadStreams => Gauge::Metric(Role::Edge, "shoal_stream_open"),
            Self::RequestBytes => Gauge::Metric(Role::Edge, "shoal_http_bodies_size_bytes"),
            Self::AnswerBytes | Self::UnreadWebsockets => {
                Gauge::Metric(Role::Edge, "shoal_http_answers_size_bytes")
            }
            _ => Gauge::Own,
        }
    }
}
