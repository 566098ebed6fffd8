//! Many streams or sessions that do nothing.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::ensure;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use crate::connection::{Goodbye, Reply};
use crate::failure::Failure;
use crate::mcp::Mode;
use crate::mcp::client::Client;
use crate::target::Target;

/// More streams at once would overflow a server's accept queue.
const OPENING: usize = 48;
const OPEN_TIMEOUT: Duration = Duration::from_secs(30);
const LATE: Duration = Duration::from_secs(1);
const LOOK_EVERY: Duration = Duration::from_millis(100);
const STUCK: Duration = Duration::from_secs(60);
const EACH: Duration = Duration::from_millis(20);
/// One address has only about 28,000 ports for connections to one server.
const PER_ADDRESS: usize = 4_000;

#[derive(Debug, Clone)]
pub(super) struct Wanted {
    pub(super) targets: Vec<Target>,
    pub(super) mode: Mode,
    /// Open only sessions, without streams.
    pub(super) bare: bool,
    /// Number of members of earlier crowds.
    pub(super) first: usize,
    pub(super) count: usize,
    pub(super) keep_alive: Duration,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Seen {
    pub(super) open: usize,
    pub(super) refused: u64,
    /// Streams that ended before this tool released them.
    pub(super) dropped: u64,
    /// Keep-alives that had not come when the next one was due.
    pub(super) missed: u64,
    /// The first failure.
    pub(super) example: Option<String>,
}

impl Seen {
    pub(super) fn lost(&self) -> u64 {
        self.refused + self.dropped
    }
}

/// Streams that stay open until this is dropped.
pub(super) struct Crowd {
    seen: Arc<Mutex<Seen>>,
    _members: JoinSet<()>,
}

impl Crowd {
    pub(super) async fn open(wanted: &Wanted) -> anyhow::Result<Self> {
        let seen = Arc::<Mutex<Seen>>::default();
        let gate = Arc::new(Semaphore::new(OPENING));
        let mut members = JoinSet::new();
        for number in wanted.first..wanted.first + wanted.count {
            let target = wanted.targets[number % wanted.targets.len()].clone();
            let member = Member {
                source: source(number, target.address.ip()),
                target,
                mode: wanted.mode,
                bare: wanted.bare,
                keep_alive: wanted.keep_alive,
                seen: Arc::clone(&seen),
            };
            members.spawn(member.live(Arc::clone(&gate)));
        }
        let crowd = Self {
            seen,
            _members: members,
        };
        let what = if wanted.bare { "sessions" } else { "streams" };
        let deadline = Instant::now() + STUCK + EACH.mul_f64(wanted.count as f64);
        loop {
            sleep(LOOK_EVERY).await;
            let (seen, count) = (crowd.now(), wanted.count);
            let (open, lost) = (seen.open, seen.lost());
            if open as u64 + lost >= count as u64 {
                crate::progress(&format!("{open} {what} open, {lost} lost"));
                return Ok(crowd);
            }
            ensure!(
                Instant::now() < deadline,
                "only {open} of {count} {what} could be opened, and {lost} were lost; a server that may open too few \
                 files (`ulimit -n`) does not take more"
            );
        }
    }

    pub(super) fn now(&self) -> Seen {
        lock(&self.seen).clone()
    }
}

struct Member {
    source: Option<IpAddr>,
    target: Target,
    mode: Mode,
    bare: bool,
    keep_alive: Duration,
    seen: Arc<Mutex<Seen>>,
}

impl Member {
    async fn live(self, gate: Arc<Semaphore>) {
        let permit = gate.acquire().await;
        let opened = timeout(OPEN_TIMEOUT, self.open()).await;
        drop(permit);
        let late = |_| Failure::Transport("opening took too long".to_owned());
        let reply = match opened.map_err(late).flatten() {
            Ok(reply) => reply,
            Err(failure) => {
                let mut seen = lock(&self.seen);
                seen.refused += 1;
                seen.example.get_or_insert(failure.to_string());
                return;
            }
        };
        lock(&self.seen).open += 1;
        let why = match reply {
            Some(reply) => self.watch(reply).await,
            None => std::future::pending().await,
        };
        let mut seen = lock(&self.seen);
        seen.open -= 1;
        seen.dropped += 1;
        seen.example.get_or_insert(why);
    }

    /// Returns `None` for a bare session, which needs no connection.
    async fn open(&self) -> Result<Option<Reply>, Failure> {
        // Resetting avoids one TIME_WAIT per stream.
        let goodbye = Goodbye::Reset;
        let opening = Client::open_with(self.source, &self.target, self.mode, goodbye, "{}");
        let mut client = opening.await?;
        if self.bare {
            return Ok(None);
        }
        let reply = client.listen(r#"{"toolsListChanged":true}"#).await?;
        match reply.is_streamed() {
            true => Ok(Some(reply)),
            false => Err(Failure::Wrong("the answer is no stream".to_owned())),
        }
    }

    /// Returns why the stream ended.
    async fn watch(&self, mut reply: Reply) -> String {
        loop {
            match timeout(self.keep_alive * 2 + LATE, reply.next_bytes()).await {
                Ok(Ok(Some(_))) => {}
                Ok(Ok(None)) => return "the server ended the stream".to_owned(),
                Ok(Err(failure)) => return failure.to_string(),
                Err(_) => lock(&self.seen).missed += 1,
            }
        }
    }
}

/// `None` for IPv6, which has only one loopback address. The first address is left for the calls.
fn source(number: usize, server: IpAddr) -> Option<IpAddr> {
    let host = u32::try_from(2 + number / PER_ADDRESS).ok()?;
    let loopback = u32::from(Ipv4Addr::new(127, 0, 0, 0));
    (server.is_ipv4()).then(|| Ipv4Addr::from(loopback + host).into())
}

fn lock(seen: &Mutex<Seen>) -> MutexGuard<'_, Seen> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::source;

    #[test]
    fn addresses_change_before_their_ports_are_used_up() {
        let server = "127.0.0.1".parse().unwrap();
        let at = |number| source(number, server).unwrap().to_string();
        assert_eq!(at(0), "127.0.0.2");
        assert_eq!(at(4_000), "127.0.0.3");
        assert_eq!(at(4_000 * 254), "127.0.1.0");
        assert_eq!(source(0, "::1".parse().unwrap()), None);
    }
}
