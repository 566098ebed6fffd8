//! A legacy MCP client (2025-11-25) that writes down everything it does and sees.
//!
//! It behaves as an SDK does, at its most patient: it resumes every broken stream with `Last-Event-ID` after
//! the server's `retry`, comes back after `Retry-After` when it is refused with 429 or 503, answers questions
//! by POSTs of their own, and opens a new session when it is told that the old one is gone. It repeats a
//! request whose connection broke before any event id came only if the tool is safe to repeat.

mod call;
mod listener;
mod modern;
mod reply;
mod session;
mod standalone;
mod task;
mod wire;
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

/// How long a connection is kept that idles: the HTTP clients of the SDKs keep it for 4 s (JavaScript) and 5 s
/// (Python).
pub(crate) const KEEP_IDLE: Duration = Duration::from_secs(5);

/// When to come back if the server does not say.
const PAUSE: Duration = Duration::from_millis(250);

/// The longest time that a server may keep this client away.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// A client with one session at a time. Clones share it.
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
    /// Answers to questions, under way.
    replies: std::sync::Mutex<JoinSet<()>>,
}

/// How a client drops a call's connection on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leave {
    /// It drops the stream, and comes back to it.
    Return {
        /// After how many events.
        after: usize,
        /// For how long it stays away. The call may be over when it comes back.
        away: Duration,
    },
    /// It gives the call up before anything has come, as a client does whose own time is over.
    HangUp {
        /// After how long. What is answered sooner is read to its end.
        after: Duration,
    },
}

/// How a call ended for its client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// With an answer.
    Answered,
    /// The session is gone, and with it the answer.
    Forgotten,
    /// Otherwise: the history says how.
    GivenUp,
}

impl Client {
    /// A client of the server at `url`. It opens its session when it needs one.
    ///
    /// # Errors
    /// When no HTTP client can be built.
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

    /// A call to make, with a nonce of its own.
    #[must_use]
    pub fn work(&self, tool: Tool, steps: u32, ms: u64) -> Work {
        self.shared.works.next(tool, steps, ms)
    }

    /// Makes a call, in as many requests as it takes; on the way, it may leave the stream on purpose.
    pub async fn call(&self, work: Work, leave: Option<Leave>) -> End {
        call::Call::new(&self.shared, work, leave).run().await
    }

    /// Reads the session's standalone stream, over and over, until the future is dropped.
    pub async fn listen(&self) {
        standalone::listen(&self.shared).await;
    }

    /// What it did and saw until now.
    #[must_use]
    pub fn history(&self) -> History {
        self.shared.recorder.history()
    }
}
