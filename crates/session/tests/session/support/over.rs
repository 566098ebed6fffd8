use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use shoal_ports::{
    Append, Appended, Begin, Begun, Binding, CallId, Claim, DeliveryId, Directory, Epoch, EventLog,
    Evidence, Journal, LogError, NewSession, NodeId, OpenStream, Page, Placement, Renewal,
    RunningStream, SessionId, StoreError,
};
use shoal_protocol::{EventId, StreamId};

/// Makes a test's store usable as a port.
pub struct Over<T>(pub Arc<T>);

macro_rules! over {
    ($(#[$doc:meta])* $over:ident = $port:ident over $under:ident;
        $(fn $step:ident($($name:ident: $type:ty),*) -> $answer:ty;)*
    ) => {
        $(#[$doc])*
        #[async_trait]
        pub trait $over: Send + Sync + 'static {
            fn $under(&self) -> &dyn $port;

            $(async fn $step(&self, $($name: $type),*) -> $answer {
                self.$under().$step($($name),*).await
            })*
        }

        #[async_trait]
        impl<T: $over> $port for Over<T> {
            $(async fn $step(&self, $($name: $type),*) -> $answer {
                self.0.$step($($name),*).await
            })*
        }
    };
}

over! {
    DirectoryOver = Directory over directory;
    fn renew_lease(node: &NodeId, lease: Duration) -> Result<Renewal, StoreError>;
    fn end_lease(node: &NodeId) -> Result<(), StoreError>;
    fn create(new: NewSession) -> Result<Epoch, StoreError>;
    fn lookup(session: &SessionId) -> Result<Option<Placement>, StoreError>;
    fn claim(session: &SessionId, node: &NodeId) -> Result<Claim, StoreError>;
    fn claim_on_evidence(session: &SessionId, node: &NodeId, evidence: &Evidence) -> Result<Claim, StoreError>;
    fn restore(session: &SessionId, claim: Claim, owner: &NodeId, idle: Duration) -> Result<(), StoreError>;
    fn held(sessions: &[(SessionId, Epoch)]) -> Result<Vec<bool>, StoreError>;
    fn save(session: &SessionId, epoch: Epoch, record: Bytes, idle: Duration) -> Result<(), StoreError>;
    fn release(session: &SessionId, epoch: Epoch, record: Bytes, idle: Duration) -> Result<(), StoreError>;
    fn remove(session: &SessionId, epoch: Epoch) -> Result<(), StoreError>;
    fn sweep() -> Result<usize, StoreError>;
}

over! {
    EventLogOver = EventLog over log;
    fn append(session: &SessionId, epoch: Epoch, append: Append) -> Result<Appended, LogError>;
    fn last(session: &SessionId, stream: StreamId) -> Result<EventId, LogError>;
    fn oldest(session: &SessionId, stream: StreamId) -> Result<EventId, LogError>;
    fn read(session: &SessionId, cursor: EventId, limit: usize) -> Result<Page, LogError>;
}

over! {
    JournalOver = Journal over journal;
    fn begin(session: &SessionId, epoch: Epoch, begin: Begin) -> Result<Begun, LogError>;
    fn rebind(session: &SessionId, epoch: Epoch, call: CallId, binding: &Binding) -> Result<(), StoreError>;
    fn running(session: &SessionId, epoch: Epoch) -> Result<Vec<RunningStream>, LogError>;
    fn restore(session: &SessionId, epoch: Epoch, stream: OpenStream) -> Result<(), StoreError>;
    fn delivered(session: &SessionId, delivery: DeliveryId) -> Result<Option<EventId>, LogError>;
}
