//! Every seam of Shoal as a trait whose documentation is its contract, with the in-memory engines.
//!
//! | seam | trait | who calls it | engines |
//! |---|---|---|---|
//! | edge → session | [`SessionGateway`] | edges, the stdio bridge | `shoal-session` |
//! | edge, session → tools | [`Dispatcher`] | edges (modern), sessions (legacy) | `shoal-dispatch` |
//! | dispatch → worker | [`Worker`] | `shoal-dispatch` | `shoal-worker` |
//! | ownership and session records | [`Directory`] | `shoal-session` | [`memory`] |
//! | resumable streams | [`EventLog`] | `shoal-session` | [`memory`] |
//! | running calls | [`Journal`] | `shoal-session` | [`memory`] |
//! | news for every node | [`Bus`] | sessions, edges, dispatch | [`memory`] |
//! | who is calling | [`Authenticator`] | edges | `shoal-edge` |
//!
//! [`contract`] holds one test suite for each storage seam; every engine runs it.

mod authenticator;
mod bus;
mod call;
mod call_events;
mod catalog;
#[cfg(feature = "contract")]
pub mod contract;
mod directory;
mod dispatcher;
mod event_log;
mod gateway;
mod identity;
mod journal;
mod kind;
pub mod memory;
mod store;
mod worker;

pub use authenticator::{AuthError, Authenticator};
pub use bus::{Bus, BusEvent, BusSubscription, Lagged};
pub use call::{
    AskId, Call, CallControl, CallEvent, CallEventKind, CallFailure, CallOutcome, Caller,
    LogFilter, RunningCall,
};
pub use call_events::CallEvents;
pub use catalog::{Durability, PoolCatalog, RawObjectOrEmpty, ServerFacts};
pub use directory::{Claim, Directory, Placement};
pub use dispatcher::Dispatcher;
pub use event_log::{Appended, EventLog, LogError, LoggedEvent, Page};
pub use gateway::{
    Delivered, EventStream, GatewayError, OpenSession, Opened, SessionGateway, SessionRef,
    SessionTransport, StreamItem,
};
pub use identity::{CallId, Epoch, NodeId, Principal, SessionId, WorkerId};
pub use journal::{Journal, JournalEntry};
pub use kind::{Kind, Retry};
pub use store::{Store, StoreError};
pub use worker::{Announcement, Worker, WorkerLoad};
