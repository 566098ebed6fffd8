//! The ports as everybody gets them: each operation says how long it took and how it ended.

mod ending;

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use bytes::Bytes;
use shoal_ports::{
    Append, Appended, Begin, Begun, Binding, Bus, BusEvent, BusSubscription, CallId, Claim,
    DeliveryId, Directory, Epoch, EventLog, Evidence, Journal, LogError, Membership, NewSession,
    NodeId, NodeInfo, OpenStream, Page, Placement, Renewal, RunningStream, SessionId, Store,
    StoreError,
};
use shoal_protocol::{EventId, StreamId};
use shoal_telemetry::metrics::{StoreOutcome, metrics};
use shoal_telemetry::trace::{self, attributes, names};

use crate::store::RedisStore;
use ending::Ending;
pub(crate) use ending::LATE;

/// The store behind all seams, measured.
pub(crate) fn ports(store: RedisStore) -> Store {
    let measured = Arc::new(Measured(store));
    Store {
        directory: measured.clone(),
        log: measured.clone(),
        journal: measured.clone(),
        membership: measured.clone(),
        bus: measured,
    }
}

struct Measured(RedisStore);

/// Carries an operation out, which is called by its port and method. Inside a span of a trace that is kept it
/// gets a span of its own; the ports carry no trace themselves.
///
/// An operation that is dropped before its end is not counted: nobody knows how it would have ended.
async fn measured<T, E: Ending>(
    operation: &'static str,
    work: impl Future<Output = Result<T, E>>,
) -> Result<T, E> {
    let began = Instant::now();
    let mut span = match trace::current() {
        Some(parent) => trace::client(|| names::store_name(operation))
            .parent(Some(&parent))
            .start_with(|set| {
                set.set(attributes::DB_SYSTEM_NAME, "redis")
                    .set(attributes::DB_OPERATION_NAME, operation);
            }),
        None => trace::Span::none(),
    };
    let ended = work.await;
    let outcome = ended
        .as_ref()
        .map_or_else(Ending::outcome, |_| StoreOutcome::Done);
    match outcome {
        StoreOutcome::Unavailable | StoreOutcome::Timeout | StoreOutcome::Failed => {
            span.record_error(outcome.as_str());
        }
        _ => span.set(attributes::OUTCOME, outcome.as_str()),
    }
    metrics()
        .store
        .operated(began.elapsed(), operation, outcome);
    ended
}

#[async_trait]
impl Directory for Measured {
    async fn renew_lease(&self, node: &NodeId, lease: Duration) -> Result<Renewal, StoreError> {
        measured(
            "directory.renew_lease",
            Directory::renew_lease(&self.0, node, lease),
        )
        .await
    }

    async fn end_lease(&self, node: &NodeId) -> Result<(), StoreError> {
        measured("directory.end_lease", Directory::end_lease(&self.0, node)).await
    }

    async fn create(&self, new: NewSession) -> Result<Epoch, StoreError> {
        measured("directory.create", Directory::create(&self.0, new)).await
    }

    async fn lookup(&self, session: &SessionId) -> Result<Option<Placement>, StoreError> {
        measured("directory.lookup", Directory::lookup(&self.0, session)).await
    }

    async fn claim(&self, session: &SessionId, node: &NodeId) -> Result<Claim, StoreError> {
        measured("directory.claim", Directory::claim(&self.0, session, node)).await
    }

    async fn claim_on_evidence(
        &self,
        session: &SessionId,
        node: &NodeId,
        evidence: &Evidence,
    ) -> Result<Claim, StoreError> {
        measured(
            "directory.claim",
            Directory::claim_on_evidence(&self.0, session, node, evidence),
        )
        .await
    }

    async fn restore(
        &self,
        session: &SessionId,
        claim: Claim,
        owner: &NodeId,
        idle: Duration,
    ) -> Result<(), StoreError> {
        measured(
            "directory.restore",
            Directory::restore(&self.0, session, claim, owner, idle),
        )
        .await
    }

    async fn held(&self, sessions: &[(SessionId, Epoch)]) -> Result<Vec<bool>, StoreError> {
        measured("directory.held", Directory::held(&self.0, sessions)).await
    }

    async fn save(
        &self,
        session: &SessionId,
        epoch: Epoch,
        record: Bytes,
        idle: Duration,
    ) -> Result<(), StoreError> {
        measured(
            "directory.save",
            Directory::save(&self.0, session, epoch, record, idle),
        )
        .await
    }

    async fn release(
        &self,
        session: &SessionId,
        epoch: Epoch,
        record: Bytes,
        idle: Duration,
    ) -> Result<(), StoreError> {
        measured(
            "directory.release",
            Directory::release(&self.0, session, epoch, record, idle),
        )
        .await
    }

    async fn remove(&self, session: &SessionId, epoch: Epoch) -> Result<(), StoreError> {
        measured(
            "directory.remove",
            Directory::remove(&self.0, session, epoch),
        )
        .await
    }

    async fn sweep(&self) -> Result<usize, StoreError> {
        Directory::sweep(&self.0).await
    }
}

#[async_trait]
impl EventLog for Measured {
    async fn append(
        &self,
        session: &SessionId,
        epoch: Epoch,
        append: Append,
    ) -> Result<Appended, LogError> {
        measured(
            "event_log.append",
            EventLog::append(&self.0, session, epoch, append),
        )
        .await
    }

    async fn last(&self, session: &SessionId, stream: StreamId) -> Result<EventId, LogError> {
        measured("event_log.last", EventLog::last(&self.0, session, stream)).await
    }

    async fn read(
        &self,
        session: &SessionId,
        cursor: EventId,
        limit: usize,
    ) -> Result<Page, LogError> {
        measured(
            "event_log.read",
            EventLog::read(&self.0, session, cursor, limit),
        )
        .await
    }
}

#[async_trait]
impl Journal for Measured {
    async fn begin(
        &self,
        session: &SessionId,
        epoch: Epoch,
        begin: Begin,
    ) -> Result<Begun, LogError> {
        measured(
            "journal.begin",
            Journal::begin(&self.0, session, epoch, begin),
        )
        .await
    }

    async fn rebind(
        &self,
        session: &SessionId,
        epoch: Epoch,
        call: CallId,
        binding: &Binding,
    ) -> Result<(), StoreError> {
        measured(
            "journal.rebind",
            Journal::rebind(&self.0, session, epoch, call, binding),
        )
        .await
    }

    async fn restore(
        &self,
        session: &SessionId,
        epoch: Epoch,
        stream: OpenStream,
    ) -> Result<(), StoreError> {
        measured(
            "journal.restore",
            Journal::restore(&self.0, session, epoch, stream),
        )
        .await
    }

    async fn running(
        &self,
        session: &SessionId,
        epoch: Epoch,
    ) -> Result<Vec<RunningStream>, LogError> {
        measured("journal.running", Journal::running(&self.0, session, epoch)).await
    }

    async fn delivered(
        &self,
        session: &SessionId,
        delivery: DeliveryId,
    ) -> Result<Option<EventId>, LogError> {
        measured(
            "journal.delivered",
            Journal::delivered(&self.0, session, delivery),
        )
        .await
    }
}

#[async_trait]
impl Membership for Measured {
    async fn announce(&self, node: &NodeInfo, life: Duration) -> Result<(), StoreError> {
        measured(
            "membership.announce",
            Membership::announce(&self.0, node, life),
        )
        .await
    }

    async fn withdraw(&self, node: &NodeId) -> Result<(), StoreError> {
        measured("membership.withdraw", Membership::withdraw(&self.0, node)).await
    }

    async fn nodes(&self) -> Result<Vec<NodeInfo>, StoreError> {
        measured("membership.nodes", Membership::nodes(&self.0)).await
    }

    async fn remember_pools(&self, pools: &[String], life: Duration) -> Result<(), StoreError> {
        measured(
            "membership.remember_pools",
            Membership::remember_pools(&self.0, pools, life),
        )
        .await
    }

    async fn remembered_pools(&self) -> Result<Vec<String>, StoreError> {
        measured(
            "membership.remembered_pools",
            Membership::remembered_pools(&self.0),
        )
        .await
    }
}

#[async_trait]
impl Bus for Measured {
    async fn publish(&self, event: BusEvent) -> Result<(), StoreError> {
        measured("bus.publish", Bus::publish(&self.0, event)).await
    }

    fn subscribe(&self) -> BusSubscription {
        self.0.subscribe()
    }
}
