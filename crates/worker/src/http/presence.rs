//! Whether the server is there: the lead connection, and what is doubted of it.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use shoal_ports::CallFailure;
use shoal_protocol::{Era, Method, RawObject, RpcError};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::upstream::{Connection, Lead, RequestError};

/// How long a server that is away stays listed where no other one takes its calls: they wait for it meanwhile.
const LISTED: Duration = Duration::from_secs(15);

/// The lead connection of a server.
pub(super) struct Presence {
    lead: Mutex<State>,
    /// Whether the server was there when it was heard of last.
    there: watch::Sender<bool>,
    /// How often it is asked.
    interval: Duration,
    /// Whether no other server takes its calls.
    alone: bool,
}

#[derive(Default)]
struct State {
    connection: Option<Arc<Connection>>,
    away_since: Option<Instant>,
    why: String,
}

impl Presence {
    /// Nothing is known.
    pub(super) fn new(interval: Duration, alone: bool) -> Self {
        Self {
            lead: Mutex::default(),
            there: watch::Sender::new(false),
            interval,
            alone,
        }
    }

    /// The lead connection.
    ///
    /// # Errors
    /// `NotExecuted`: why there is none.
    pub(super) fn lead(&self) -> Result<Arc<Connection>, CallFailure> {
        let lead = self.lead.lock();
        lead.connection
            .clone()
            .ok_or_else(|| CallFailure::not_executed(&*lead.why))
    }

    /// Somebody could not reach the server.
    pub(super) fn doubt(&self) {
        self.there.send_replace(false);
    }

    /// Whether the server is there, as far as is known.
    pub(super) fn is_there(&self) -> bool {
        *self.there.borrow()
    }

    /// Waits until the server is there.
    pub(super) async fn back(&self) {
        let mut there = self.there.subscribe();
        // Whoever waits holds the sender.
        let _ = there.wait_for(|there| *there).await;
    }

    /// Asks the server from time to time, and at once when it is doubted, until the connection is of no use.
    async fn watch(
        self: Arc<Self>,
        connection: std::sync::Weak<Connection>,
        over: tokio_util::sync::CancellationToken,
    ) {
        let mut there = self.there.subscribe();
        loop {
            let doubted = async {
                let _ = there.wait_for(|there| !there).await;
            };
            tokio::select! {
                () = over.cancelled() => return,
                () = tokio::time::sleep(self.interval) => {}
                () = doubted => {}
            }
            let Some(connection) = connection.upgrade() else {
                return;
            };
            match ask(&connection).await {
                Ok(()) => {
                    self.there.send_replace(true);
                }
                Err(why) => {
                    connection.link.lose(&why);
                    over.cancel();
                    return;
                }
            }
        }
    }
}

/// Whether the server answers.
async fn ask(connection: &Connection) -> Result<(), String> {
    let link = &connection.link;
    let answered = match link.greeting().era {
        Era::Legacy => link.request(Method::Ping, None).await,
        Era::Modern => {
            let params = link.with_own_meta(RawObject::default());
            link.request(Method::Discover, Some(params)).await
        }
    };
    match answered {
        Ok(_) | Err(RequestError::Rpc(RpcError { .. }) | RequestError::TooLarge) => Ok(()),
        Err(error) => Err(error.to_string()),
    }
}

impl Lead for Arc<Presence> {
    fn joins(&self, connection: &Arc<Connection>) {
        let before = {
            let mut lead = self.lead.lock();
            lead.away_since = None;
            lead.connection.replace(connection.clone())
        };
        drop(before);
        self.there.send_replace(true);
        let (weak, over) = (Arc::downgrade(connection), connection.over());
        tokio::spawn(self.clone().watch(weak, over));
    }

    fn fails(&self, reason: &str, _: Duration) -> bool {
        self.there.send_replace(false);
        let (before, away_since) = {
            let mut lead = self.lead.lock();
            lead.why = reason.to_owned();
            let now = Instant::now();
            (lead.connection.take(), *lead.away_since.get_or_insert(now))
        };
        // Calls that are under way over it keep it until they have ended.
        drop(before);
        !self.alone || away_since.elapsed() >= LISTED
    }
}
