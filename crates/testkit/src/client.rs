//! A legacy MCP client (2025-11-25) that records everything it does and sees.
//!
//! Like a patient SDK, the client resumes broken streams with `Last-Event-ID` after the server's `retry`, honours
//! `Retry-After` on 429 and 503, answers questions by separate POSTs, and replaces lost sessions. After a break
//! before any event id, it repeats only repeatable calls.

mod call;
mod listener;
mod modern;
mod reply;
mod session;
mod standalone;
mod task;
pub(crate) mod wire;
mod works;

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::task::JoinSet;

pub use self::listener::Listener;
pub use self::modern::ModernClient;
pub(crate) use self::reply::reply_to;
use self::session::Session;
use self::wire::Wire;
use self::works::Works;
use crate::history::{History, Recorder, Tool, Work};

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

#[derive(Debug)]
struct Shared {
    wire: Wire,
    recorder: Recorder,
    session: Mutex<Option<Session>>,
    sessions: AtomicU64,
    works: Works,
    requests: AtomicU64,
    replies: std::sync::Mutex<JoinSet<()>>,
}

/// How a client drops a call's connection on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leave {
    /// Drops the stream, and resumes it later.
    Return {
        /// Number of events before the client leaves.
        after: usize,
        /// How long the client stays away.
        away: Duration,
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
        let number = recorder.history().client;
        let shared = Shared {
            wire: Wire::to(url, number)?,
            recorder,
            session: Mutex::default(),
            sessions: AtomicU64::new(1),
            works: Works::of(number),
            requests: AtomicU64::new(1),
            replies: std::sync::Mutex::default(),
        };
        Ok(Self {
            shared: Arc::new(shared),
        })
    }

    /// Creates a call with its own nonce.
    #[must_use]
    pub fn work(&self, tool: Tool, steps: u32, ms: u64) -> Work {
        self.shared.works.next(tool, steps, ms)
    }

    /// Makes a call, with as many requests as it needs.
    pub async fn call(&self, work: Work, leave: Option<Leave>) -> End {
        call::Call::new(&self.shared, work, leave).run().await
    }

    /// Reads the standalone stream until the future is dropped.
    pub async fn listen(&self) {
        standalone::listen(&self.shared).await;
    }

    /// Returns the history so far.
    #[must_use]
    pub fn history(&self) -> History {
        self.shared.recorder.history()
    }
}
