//! One process of the crowd holds its streams until standard input ends.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::crowd::{Seen, Wanted};
use crate::connection::{Goodbye, Reply};
use crate::failure::Failure;
use crate::mcp::Mode;
use crate::mcp::client::Client;
use crate::servers::serve_while;
use crate::target::Target;

/// More streams at once would overflow a server's accept queue.
const OPENING: usize = 48;
const OPEN_TIMEOUT: Duration = Duration::from_secs(30);
const LATE: Duration = Duration::from_secs(1);
const SAY_EVERY: Duration = Duration::from_millis(250);
/// Open files besides the connections.
pub(super) const OTHER_FILES: u64 = 100;
/// One address has only about 28,000 ports for connections to one server.
const PER_ADDRESS: usize = 4_000;

pub(crate) fn execute(wanted: &Wanted) -> anyhow::Result<bool> {
    crate::files::raise_limit(wanted.count as u64 + OTHER_FILES)
        .context("could not read the limit of open files")?;
    crate::runtime(Some(1))?.block_on(serve_while(true, hold(wanted)))?;
    Ok(true)
}

async fn hold(wanted: &Wanted) -> anyhow::Result<()> {
    let targets = Target::resolve_all(&wanted.urls).await?;
    let seen = Arc::<Mutex<Seen>>::default();
    let gate = Arc::new(Semaphore::new(OPENING));
    let mut members = JoinSet::new();
    for number in wanted.first..wanted.first + wanted.count {
        let target = targets[number % targets.len()].clone();
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
    loop {
        sleep(SAY_EVERY).await;
        let line = serde_json::to_string(&*lock(&seen))?;
        crate::say(&line);
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
        let client = opening.await?;
        if self.bare {
            return Ok(None);
        }
        let reply = client.listen().await?;
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

fn lock(seen: &Mutex<Seen>) -> std::sync::MutexGuard<'_, Seen> {
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
