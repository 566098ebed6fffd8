use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use parking_lot::Mutex;
use shoal_ports::CallFailure;
use shoal_protocol::{Era, Method, RawObject, RpcError};

use crate::http_client::Reachability;
use crate::upstream::{Lead, RequestError, ServerConnection};

pub(super) struct Presence {
    lead: Mutex<PresenceState>,
    pub(super) reachability: Reachability,
    interval: Duration,
}

#[derive(Default)]
struct PresenceState {
    connection: Option<Arc<ServerConnection>>,
    refuses: bool,
    why: String,
}

pub(super) enum Way {
    Lead(Arc<ServerConnection>),
    OfCallers,
}

impl Presence {
    pub(super) fn new(interval: Duration, reachability: Reachability) -> Self {
        Self {
            lead: Mutex::default(),
            reachability,
            interval,
        }
    }

    pub(super) fn lead(&self) -> Result<Arc<ServerConnection>, CallFailure> {
        let lead = self.lead.lock();
        lead.connection
            .clone()
            .ok_or_else(|| CallFailure::not_executed(&*lead.why))
    }

    pub(super) fn way(&self) -> Result<Way, CallFailure> {
        if self.lead.lock().refuses {
            return Ok(Way::OfCallers);
        }
        self.lead().map(Way::Lead)
    }

    /// Checks the server periodically, and at once on a hint that it is away.
    async fn watch(
        self: Arc<Self>,
        connection: std::sync::Weak<ServerConnection>,
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

async fn ask(connection: &ServerConnection) -> Result<(), String> {
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
    fn joins(&self, connection: &Arc<ServerConnection>) {
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
        // Running calls keep the former connection until they end.
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

    /// The supervisor retries the lead connection soon anyway, so calls need not wake it.
    fn wanted(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::pending())
    }
}
