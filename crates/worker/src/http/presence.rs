//! Whether the server is there: the lead connection, and what is doubted of it.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use parking_lot::Mutex;
use shoal_ports::CallFailure;
use shoal_protocol::{Era, Method, RawObject, RpcError};

use crate::http_client::Reachability;
use crate::upstream::{Connection, Lead, RequestError};

/// The lead connection of a server.
pub(super) struct Presence {
    lead: Mutex<State>,
    /// What was heard of the server last.
    pub(super) reachability: Reachability,
    /// How often it is asked.
    interval: Duration,
}

#[derive(Default)]
struct State {
    connection: Option<Arc<Connection>>,
    /// Whether the server is there, and takes requests only in callers' names.
    refuses: bool,
    why: String,
}

/// How calls get to the server.
pub(super) enum Way {
    /// By the lead, or as it shows.
    Lead(Arc<Connection>),
    /// By connections of their callers alone.
    OfCallers,
}

impl Presence {
    /// Nothing is known.
    pub(super) fn new(interval: Duration, reachability: Reachability) -> Self {
        Self {
            lead: Mutex::default(),
            reachability,
            interval,
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

    /// How a call gets to the server.
    ///
    /// # Errors
    /// `NotExecuted`: why there is no way.
    pub(super) fn way(&self) -> Result<Way, CallFailure> {
        if self.lead.lock().refuses {
            return Ok(Way::OfCallers);
        }
        self.lead().map(Way::Lead)
    }

    /// Asks the server from time to time, and at once when it is doubted, until the connection is of no use.
    async fn watch(
        self: Arc<Self>,
        connection: std::sync::Weak<Connection>,
        over: tokio_util::sync::CancellationToken,
    ) {
        loop {
            tokio::select! {
                () = over.cancelled() => return,
                () = self.reachability.ask_again(self.interval) => {}
            }
            let Some(connection) = connection.upgrade() else {
                return;
            };
            match ask(&connection).await {
                Ok(()) => self.reachability.found(),
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
            lead.refuses = false;
            lead.connection.replace(connection.clone())
        };
        drop(before);
        self.reachability.found();
        let (weak, over) = (Arc::downgrade(connection), connection.over());
        tokio::spawn(self.clone().watch(weak, over));
    }

    fn fails(&self, reason: &str, _: Duration) -> bool {
        let deserted = self.reachability.missed();
        let before = {
            let mut lead = self.lead.lock();
            lead.why = reason.to_owned();
            lead.refuses = false;
            lead.connection.take()
        };
        // Calls that are under way over it keep it until they have ended.
        drop(before);
        deserted
    }

    fn refused(&self) -> BoxFuture<'_, ()> {
        let before = {
            let mut lead = self.lead.lock();
            lead.refuses = true;
            lead.connection.take()
        };
        drop(before);
        self.reachability.found();
        Box::pin(self.reachability.ask_again(self.interval))
    }

    /// It is tried again soon after it was there, and nothing is started for it.
    fn wanted(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::pending())
    }
}
