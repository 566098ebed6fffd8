//! A legacy MCP client (2025-11-25) that records everything it does and sees.
//!
//! Like a patient SDK, the client resumes broken streams with `Last-Event-ID` after the server's `retry`, honours
//! `Retry-After` on 429 and 503, answers questions by separate POSTs, and replaces lost sessions. After a break
//! before any event id, it repeats only repeatable calls.

mod common;
pub mod connection;
pub mod failure;
mod listener;
mod modern;
mod session;
mod stream;
pub mod target;
mod task;
pub(crate) mod wire;

use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;

use self::common::Common;
use self::connection::Goodbye;
pub use self::listener::Listener;
pub use self::modern::ModernClient;
use self::session::Shared;
use self::stream::Stream;
use self::target::Target;
use self::wire::Wire;
use crate::history::{Channel, History, Recorder, Tool, Work};

/// How long an idle connection is kept. The SDKs' HTTP clients keep it for 4 s (JavaScript) or 5 s
/// (Python).
const KEEP_IDLE: Duration = Duration::from_secs(5);

const PAUSE: Duration = Duration::from_millis(250);

const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// A client with one session. Clones share the session.
#[derive(Clone, Debug)]
pub struct Client {
    shared: Arc<Shared>,
}

/// How a client drops the connection of a stream on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leave {
    /// Drops the stream, and resumes it later.
    Return {
        /// Number of events after which the client leaves.
        after: usize,
        /// How long the client stays at most, if it has an event id by then.
        within: Duration,
        /// How long the client stays away.
        away: Duration,
        /// Whether the connection stays open and unread meanwhile, like a path that failed silently.
        unread: bool,
    },
    /// Gives up the call if nothing arrives in time.
    HangUp {
        /// How long the client waits. A response that begins in time is read to its end.
        after: Duration,
    },
}

/// How a call ended for its client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// With an answer.
    Answered,
    /// The session is gone, and the answer with it.
    Forgotten,
    /// Without an answer, for the reason in the history.
    GivenUp,
}

impl Client {
    /// Creates a client, which opens its session with the first call.
    pub fn new(url: &str, recorder: Recorder) -> anyhow::Result<Self> {
        let wire = Wire::to(url, recorder.client())?;
        Ok(Self::on(wire, None, recorder))
    }

    /// Creates a client for several endpoints of one server. The client goes on to the next endpoint when a stream
    /// or a connection breaks. It can subscribe to a resource.
    #[must_use]
    pub fn to_each(
        targets: Vec<Target>,
        goodbye: Goodbye,
        subscription: Option<&'static str>,
        recorder: Recorder,
    ) -> Self {
        let wire = Wire::to_each(targets, goodbye, recorder.client());
        Self::on(wire, subscription, recorder)
    }

    fn on(wire: Wire, subscription: Option<&'static str>, recorder: Recorder) -> Self {
        let shared = Shared::new(Common::new(wire, recorder), subscription);
        Self {
            shared: Arc::new(shared),
        }
    }

    /// Opens the session.
    pub async fn open(&self) {
        self.shared.session().await;
    }

    /// Creates a call with its own nonce.
    #[must_use]
    pub fn work(&self, tool: Tool, steps: u32, ms: u64) -> Work {
        self.shared.common.work(tool, steps, ms)
    }

    /// Makes a call, with as many requests as it needs. The client leaves the call's streams in the given ways, one
    /// after the other.
    pub async fn call(
        &self,
        work: Work,
        leaves: impl IntoIterator<Item = Leave, IntoIter: Send>,
    ) -> End {
        self.shared.call(&work, &mut leaves.into_iter()).await
    }

    /// Reads the standalone stream until the future is dropped, and leaves it in the given ways.
    pub async fn listen(&self, leaves: impl IntoIterator<Item = Leave, IntoIter: Send>) {
        let (shared, mut leaves) = (&self.shared, leaves.into_iter());
        loop {
            let session = shared.session().await;
            let stream = Stream::new(shared, &session, Channel::Standalone, &mut leaves);
            stream.follow(None).await;
            sleep(PAUSE).await;
        }
    }

    /// Requests the stream of the last call again, after the event at this share of its length.
    pub async fn replay(&self, share: f64) {
        self.shared.replay(share).await;
    }

    /// Ends the session.
    pub async fn end(&self) {
        self.shared.end().await;
    }

    /// Returns the history so far.
    #[must_use]
    pub fn history(&self) -> History {
        self.look(Clone::clone)
    }

    /// Reads the history so far.
    pub fn look<T>(&self, read: impl FnOnce(&History) -> T) -> T {
        self.shared.common.recorder.look(read)
    }
}

/// Up to a second, determined by the question.
fn thinking(question: &str) -> Duration {
    let sum: u64 = question.bytes().map(|byte| u64::from(byte) * 97).sum();
    Duration::from_millis(sum % 1000)
}
