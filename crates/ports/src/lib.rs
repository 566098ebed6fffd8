//! Shoal's seams: the interfaces between its crates, as traits whose documentation is the contract. Also the in-memory
//! engines.
//!
//! | seam | trait | who calls it | engines |
//! |---|---|---|---|
//! | edge → session | [`SessionGateway`] | edges, the stdio bridge | `shoal-session` |
//! | edge, session → tools | [`Dispatcher`] | edges (modern), sessions (legacy) | `shoal-dispatch` |
//! | dispatch → worker | [`Worker`] | `shoal-dispatch` | `shoal-worker` |
//! | ownership and session records | [`Directory`] | `shoal-session`, `shoal-cluster` | [`memory`], `shoal-store-redis` |
//! | resumable streams | [`EventLog`] | `shoal-session` | [`memory`], `shoal-store-redis` |
//! | presence of nodes, validity of leases | [`Liveness`] | `shoal-session` | `shoal-cluster` |
//! | running calls | [`Journal`] | `shoal-session` | [`memory`], `shoal-store-redis` |
//! | nodes, pools and tool names | [`Membership`] | `shoal-cluster` | [`memory`], `shoal-store-redis` |
//! | token buckets of quotas | [`QuotaCells`] | edges | [`memory`], `shoal-store-redis` |
//! | events for every node | [`ClusterBus`] | sessions, edges, `shoal-cluster` | [`memory`], `shoal-store-redis` |
//! | authentication | [`Authenticator`] | edges | `shoal-auth` |
//! | reports to operators | [`Inspector`] | the operators' console | `shoal-node`, `shoal-rpc` |
//!
//! [`contract`] holds one test suite for each storage trait; every engine runs it.

mod auth_error;
mod authenticator;
mod backoff;
mod binding;
mod call;
mod call_events;
mod call_outcome;
mod catalog;
mod client_info;
mod cluster_bus;
#[cfg(feature = "contract")]
pub mod contract;
mod defaults;
mod directory;
mod dispatcher;
mod ending;
mod event_log;
mod failures;
mod file_watch;
mod forwarded;
mod gateway;
mod grant;
mod grant_watch;
mod hint;
mod identity;
mod inspector;
mod items;
mod journal;
mod kind;
mod last_token;
mod lazy;
pub mod listen_address;
mod liveness;
mod membership;
mod memo;
pub mod memory;
mod network;
mod own_lists;
mod pattern;
mod period;
mod plan;
mod principal_counts;
mod quota;
mod read_file;
mod secret;
mod secret_source;
mod sections;
mod session_state;
mod store;
mod store_error;
mod tasks;
mod worker;

pub use auth_error::{AuthError, ProofFault, TokenFault};
pub use authenticator::{
    Authenticated, Authenticator, ClientCertificate, Credentials, Operation, ResourceMetadata,
    Scheme,
};
pub use backoff::Backoff;
pub use binding::{Binding, Bound, Drawn, LedgerNumber};
pub use call::{Answered, Call, CallControl, Caller, LogFilter, MayStart, RunningCall, answered};
pub use call_events::{AskId, CallEvent, CallEventKind, CallEvents};
pub use call_outcome::{CallFailure, CallOutcome};
pub use catalog::{PoolCatalog, RawObjectOrEmpty, Repeat, ServerFacts, SettledFacts};
pub use client_info::ClientInfo;
pub use cluster_bus::{ClusterBus, ClusterEvent, ClusterSubscription, Lagged};
pub use directory::{Claim, Directory, NewSession, Placement, Renewal};
pub use dispatcher::Dispatcher;
pub use event_log::{Append, Appended, CallProgress, EventLog, LogError, LoggedEvent, Page};
pub use failures::{FailureKey, FailureTable};
pub use file_watch::FileWatch;
pub use forwarded::ForwardedHeaders;
pub use gateway::{
    Delivered, EventStream, GatewayError, OpenSession, Opened, Post, SessionGateway, SessionRef,
    SessionTransport,
};
pub use grant::Grant;
pub use grant_watch::{GrantNews, GrantWatch};
pub use hint::{NodeTag, stable_hash};
pub use identity::{CallId, DeliveryId, Epoch, NodeId, Principal, SessionId, WorkerId};
pub use inspector::{
    CallReport, CallState, ErrorReport, InspectError, Inspector, LATENCY_BOUNDS, LatencyHistogram,
    Listing, NodeReport, Outcomes, PoolReport, RecentCalls, Remembered, SessionDetail,
    SessionReport, Step, StreamReport, ToolAnnotations, ToolDetail, ToolReport, WorkerReport,
    mark_of, quantile,
};
pub use items::{StreamItem, StreamItems};
pub use journal::{Begin, Begun, Journal, JournalEntry, JournaledCall, OpenStream, RunningStream};
pub use kind::{Kind, Retry};
pub use last_token::{LastToken, TokenDigest, digest_of};
pub use lazy::{LazyReceiver, LazySender, NobodyReceives, Unsent, lazy_channel};
pub use listen_address::listen_address;
pub use liveness::{Evidence, Liveness};
pub use membership::{Membership, NodeInfo};
pub use memo::Memo;
pub use network::Network;
pub use own_lists::{ListOwner, ListScope, OwnLists, changed_owners};
pub use pattern::matches_pattern;
pub use period::Period;
pub use plan::{CallPlan, Planned, Planning, Route, Started, Starting, at_once, later};
pub use principal_counts::PrincipalCounts;
pub use quota::{CellRate, QuotaCells, QuotaConfig, QuotaKey, QuotaPer, QuotaSubject, Rate, Taken};
pub use read_file::{read_file, read_text, read_text_or_pipe};
pub use secret::{REDACTED, Secret};
pub use secret_source::SecretSource;
pub use sections::kubernetes;
pub use sections::{
    CacheScope, CallSettings, CatalogSettings, ClusterSettings, ClusterTls, NEWEST_PROTOCOL,
    NodeLimits, ServerInfo, SessionSettings, StreamSettings, TaskSettings,
};
pub use session_state::{
    STATE_KEY_BYTES, SessionState, StateDoor, StateRequest, no_session, not_kept, perhaps_kept,
};
pub use shoal_protocol::shown;
pub use store::Store;
pub use store_error::StoreError;
pub use tasks::{AdoptCall, SessionTasks, TaskAnswer, TaskClient, TaskMark, TaskRequest};
pub use worker::{
    Announcement, Attach, Expected, ResourceUpdated, Worker, WorkerHere, WorkerLoad, WorkerSet,
};
