//! An MCP client that records everything it does and sees.
//!
//! Like a patient SDK, a client of 2025-11-25 resumes broken streams with `Last-Event-ID` after the server's `retry`, honours
//! `Retry-After` on 429 and 503, answers questions by separate POSTs, and replaces lost sessions. After a break
//! before any event id, it repeats only repeatable calls.

pub mod connection;
pub mod failure;
mod listener;
mod modern;
mod session;
mod shared;
mod stream;
pub mod target;
mod task;
pub(crate) mod wire;

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::sleep;

use self::connection::Goodbye;
pub use self::listener::Listener;
pub(crate) use self::shared::Era;
use self::shared::{Became, Shared};
use self::stream::Stream;
use self::target::Target;
use self::wire::Wire;
use crate::history::{Channel, History, Recorder, Tool, Work, reply_to};

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
        Self::of(Era::Legacy(None), url, recorder)
    }

    pub(crate) fn of(era: Era, url: &str, recorder: Recorder) -> anyhow::Result<Self> {
        let wire = Wire::to(url, recorder.client())?;
        Ok(Self::on(wire, era, recorder))
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
        Self::on(wire, Era::Legacy(subscription), recorder)
    }

    fn on(wire: Wire, era: Era, recorder: Recorder) -> Self {
        let shared = Arc::new(Shared::new(wire, era, recorder));
        Self { shared }
    }

    /// Opens the session.
    pub async fn open(&self) {
        self.shared.session().await;
    }

    /// Creates a call with its own nonce.
    #[must_use]
    pub fn work(&self, tool: Tool, steps: u32, ms: u64) -> Work {
        self.shared.work(tool, steps, ms)
    }

    /// Makes a call, with as many requests as it needs. The client leaves the call's streams in the given ways, one
    /// after the other.
    pub async fn call(
        &self,
        work: Work,
        leaves: impl IntoIterator<Item = Leave, IntoIter: Send>,
    ) -> End {
        let mut leaves = leaves.into_iter().peekable();
        let hang_up = match leaves.peek() {
            Some(Leave::HangUp { after }) => *after,
            _ => Duration::MAX,
        };
        loop {
            let became = match self.shared.era {
                Era::Legacy(_) => self.shared.request(&work, hang_up, &mut leaves).await,
                Era::Modern { .. } => self.shared.modern_request(&work, hang_up).await,
            };
            match became {
                Became::Over(end) => return end,
                Became::Nothing(pause) => sleep(pause).await,
            }
        }
    }

    /// Reads the standalone stream, or streams of changes, until the future is dropped. A client with a session leaves
    /// its stream in the given ways.
    pub async fn listen(&self, leaves: impl IntoIterator<Item = Leave, IntoIter: Send>) {
        let (shared, mut leaves) = (&self.shared, leaves.into_iter());
        loop {
            let mut pause = PAUSE;
            if let Era::Modern { .. } = shared.era {
                pause = shared.listen_once().await;
            } else {
                let session = shared.session().await;
                let stream = Stream::new(shared, &session, Channel::Standalone, &mut leaves);
                stream.follow(None).await;
            }
            sleep(pause).await;
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
        self.shared.recorder.look(read)
    }
}

/// Returns the answer to a question of the server.
fn accepted(question: &str) -> Value {
    json!({ "action": "accept", "content": { "text": reply_to(question) } })
}

/// Up to a second, determined by the question.
fn thinking(question: &str) -> Duration {
    let sum: u64 = question.bytes().map(|byte| u64::from(byte) * 97).sum();
    Duration::from_millis(sum % 1000)
}
