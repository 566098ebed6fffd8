//! The client's side of MCP towards a server of either era, over any transport.
//!
//! | file | part |
//! |---|---|
//! | `server` | every backend's state for its server |
//! | `launcher`, `supervisor`, `restart_delay` | opening and reopening connections; the transport interface |
//! | `connection` | a connection's life and end |
//! | `binding`, `era`, `greeting`, `params` | a connection's owner; the handshake and its result; a call's parameters |
//! | `link`, `pending`, `router` | requests in flight; routing of the server's messages |
//! | `outgoing`, `lines` | bounded messages to and from the server |
//! | `last_words` | a failed server's last stderr lines |
//! | `carry` | one call, from its queue to its outcome |
//! | `server_task` | a task that a server makes of a call |
//! | `sessions` | connections of a session or a principal |
//! | `modern_side` | tools that ask in the modern era, of a server with both eras |
//! | `lists`, `list_pace`, `subscriptions`, `subscribing` | the server's catalog; its refresh; its changes |
//! | `list_call`, `own_lists` | one caller's lists; whether they differ from everyone's |

mod binding;
mod carry;
mod connection;
mod era;
mod error;
mod greeting;
#[cfg(test)]
pub(crate) mod harness;
mod last_words;
mod launcher;
mod lines;
mod link;
mod list_call;
mod list_pace;
mod lists;
mod modern_side;
mod outgoing;
mod own_lists;
mod params;
mod pending;
mod restart_delay;
mod router;
mod server;
mod server_task;
mod sessions;
mod settings;
mod subscribing;
mod subscriptions;
mod supervisor;
mod throttle;

pub(crate) use self::binding::ConnectionBinding;
pub(crate) use self::carry::{ConnectionShare, OpenQuestion, carry};
pub(crate) use self::connection::ServerConnection;
pub(crate) use self::error::{Denied, NeverWritten, RequestError, StartError};
pub(crate) use self::launcher::{Launcher, Transport};
pub use self::lines::{Line, Lines};
pub(crate) use self::lines::{Readable, readable};
pub(crate) use self::link::ServerLink;
pub(crate) use self::modern_side::ModernSide;
#[cfg(test)]
pub(crate) use self::outgoing::WriteState;
pub(crate) use self::outgoing::{OutgoingMessage, OutgoingRequest, QUEUE};
pub(crate) use self::pending::{Quarantine, RequestOrigin, RequestOutcome};
pub(crate) use self::restart_delay::{RestartDelay, SHORT_PAUSE, STABLE};
pub(crate) use self::router::quote;
pub(crate) use self::server::Server;
pub(crate) use self::sessions::{ServerSessions, SessionOwner, failure_key};
pub use self::settings::EraChoice;
pub(crate) use self::settings::UpstreamSettings;
pub(crate) use self::subscribing::catch_up;
pub(crate) use self::subscriptions::ServerSubscriptions;
pub(crate) use self::supervisor::Lead;
pub(crate) use self::throttle::Throttle;
